use super::*;

fn scratch(name: &str) -> PathBuf {
    let dir = std::env::temp_dir().join(format!("liqo-binaries-{name}-{}", std::process::id()));
    let _ = fs::remove_dir_all(&dir);
    fs::create_dir_all(&dir).unwrap();
    dir
}

fn program(dir: &Path, name: &str, text: &str) {
    fs::create_dir_all(dir).unwrap();
    fs::write(dir.join(name), text).unwrap();
    fs::set_permissions(dir.join(name), fs::Permissions::from_mode(0o755)).unwrap();
}

fn filled(base: &Path) -> Sources {
    let sources = Sources { cache: base.to_owned(), ..Sources::default() };
    let mut complete = String::new();
    for name in CONTROL_PLANE {
        program(&sources.cached(), name, "#!/bin/sh\n");
        complete.push_str(&format!("10 {name}\n"));
    }
    fs::write(sources.cached().join(COMPLETE), complete).unwrap();
    sources
}

#[test]
fn a_finished_cache_is_used() {
    let base = scratch("finished");
    let found = Binaries::find(&filled(&base), false, false).unwrap();
    assert_eq!(found.iter().count(), CONTROL_PLANE.len());
    fs::remove_dir_all(base).unwrap();
}

#[test]
fn an_empty_a_half_built_and_a_damaged_cache_are_told_apart() {
    let base = scratch("half");
    let sources = filled(&base);
    let why = || Binaries::find(&sources, false, false).unwrap_err().to_string();

    fs::write(sources.cached().join("etcd"), "#!").unwrap();
    assert!(
        why().contains("missing: etcd") && why().contains("is damaged") && why().contains("make tools"),
        "{}",
        why()
    );
    fs::remove_file(sources.cached().join(COMPLETE)).unwrap();
    assert!(why().contains("did not finish"), "{}", why());
    fs::remove_dir_all(sources.cached()).unwrap();
    assert!(why().contains("nothing in"), "{}", why());
    fs::remove_dir_all(base).unwrap();
}

#[test]
fn ready_made_binaries_are_preferred_only_in_a_fitting_version() {
    let base = scratch("assets");
    let assets = base.join("assets");
    program(&assets, "kube-apiserver", "#!/bin/sh\necho Kubernetes v1.34.9\n");
    program(&assets, "kube-scheduler", "#!/bin/sh\necho Kubernetes v1.29.1\n");
    let sources = Sources { assets: Some(assets.clone()), ..filled(&base) };
    let found = Binaries::find(&sources, false, false).unwrap();
    assert_eq!(found.path("kube-apiserver").unwrap(), assets.join("kube-apiserver"));
    assert_eq!(found.path("kube-scheduler").unwrap(), sources.cached().join("kube-scheduler"));
    fs::remove_dir_all(base).unwrap();
}

#[test]
fn versions_are_recognised() {
    assert!(version_fits("etcd", "etcd Version: 3.6.5\nGit SHA: x"));
    assert!(!version_fits("etcd", "etcd Version: 3.4.23"));
    assert!(version_fits("kubectl", "Client Version: v1.34.1\nKustomize Version: v5.7.1"));
    assert!(!version_fits("kubectl", "Client Version: v1.30.1"));
}

#[test]
fn what_is_looked_for_is_what_make_tools_builds() {
    let install = include_str!("../../../../tools/install");
    assert!(
        install.contains(&format!("\nKUBERNETES_VERSION={KUBERNETES_VERSION}\n")),
        "tools/install builds another version"
    );
}
