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
