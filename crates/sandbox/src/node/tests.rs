use super::*;
use crate::plan::Plan;
use crate::spec::{ClusterSpec, Spec};

#[test]
fn the_init_script_puts_back_what_its_own_mounts_hide() {
    let place = Place::new("/var/lib/liqo-sandbox", "default").unwrap();
    let plan = Plan::new(&place, &Spec::new([ClusterSpec::real("a", 1)]), "100.64.0.0/16".parse().unwrap());
    let script = init_script(&place, &plan.clusters[0].machines[0], &[place.root()]);
    let line = |text: &str| script.find(text).unwrap_or_else(|| panic!("no {text:?} in\n{script}"));
    assert!(line("mount -n --bind '/var/lib/liqo-sandbox/default' /mnt/0") < line("tmpfs /var/lib\n"));
    assert!(line("tmpfs /var/lib\n") < line("mount -n --bind /mnt/0 '/var/lib/liqo-sandbox/default'"));
    assert!(line("make-rprivate") < line("make-rshared"));
}

#[test]
fn a_digest_is_found_beside_the_whole_name_only() {
    let table = "REF TYPE DIGEST SIZE PLATFORMS LABELS\n\
                 docker.io/library/liqo:0.1.0 application/vnd.oci.image.manifest.v1+json sha256:ab 9.9 MiB linux/amd64 x=y\n";
    assert_eq!(digest_in(table, "docker.io/library/liqo:0.1.0").as_deref(), Some("sha256:ab"));
    assert_eq!(digest_in(table, "docker.io/library/liqo:0.1"), None);
    assert_eq!(digest_in("REF TYPE DIGEST\n", "a"), None);
}
