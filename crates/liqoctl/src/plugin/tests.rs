use super::*;

fn suggested(line: &str) -> String {
    let known = |_: &[String]| vec![("milan".to_owned(), "Established".to_owned())];
    suggest(&crate::command(), &line.split(' ').map(str::to_owned).collect::<Vec<_>>(), known)
}

#[test]
fn the_name_decides() {
    for (name, program) in [
        ("/usr/bin/liqoctl", Program::Liqoctl),
        ("kubectl-liqo", Program::KubectlLiqo),
        ("/root/.krew/bin/kubectl-liqo", Program::KubectlLiqo),
        ("kubectl_complete-liqo", Program::KubectlComplete),
        ("anything", Program::Liqoctl),
    ] {
        assert_eq!(Program::called(Some(OsStr::new(name))), program, "{name}");
    }
    assert_eq!(Program::called(None), Program::Liqoctl);
}

#[test]
fn help_of_the_plugin_says_what_its_users_type() {
    let mut command = Program::KubectlLiqo.rename(crate::command());
    let help = command.render_long_help().to_string();
    assert!(help.contains("Usage: kubectl liqo [OPTIONS] <COMMAND>"), "{help}");
    assert!(help.contains("sudo kubectl liqo sandbox up") && !help.contains("liqoctl "), "{help}");
}

#[test]
fn commands_flags_and_values_are_completed() {
    assert!(suggested("sand").starts_with("sandbox\tSeveral"), "{}", suggested("sand"));
    assert!(suggested("sand").ends_with(":4\n"));
    assert!(suggested("completion ").contains("fish\t"));
    assert!(suggested("--cont").starts_with("--context\t"));
    assert!(suggested("--colour ").contains("never\tNowhere"));
    assert_eq!(suggested("--context some-name compl").lines().count(), 2);
    assert!(suggested("sandbox status -o ").contains("yaml\t"));
    assert!(suggested("--kubeconfig ").ends_with(":0\n"), "a file");
    assert!(!suggested("--env").contains("--env"), "hidden");
}

#[test]
fn krew_s_manifest_has_its_shape_and_our_version() {
    use serde_json::Value;
    let text = include_str!("../../../../deploy/krew/liqo.yaml");
    let manifest: Value = serde_saphyr::from_str(text).unwrap();
    assert_eq!(manifest["apiVersion"], "krew.googlecontainertools.github.com/v1alpha2");
    assert_eq!((&manifest["kind"], &manifest["metadata"]["name"]), (&"Plugin".into(), &"liqo".into()));
    let spec = &manifest["spec"];
    let version = format!("v{}", env!("CARGO_PKG_VERSION"));
    assert_eq!(spec["version"], version.as_str(), "raise it together with the workspace's");
    let short = spec["shortDescription"].as_str().unwrap();
    assert!(short.len() <= 50 && !short.ends_with('.') && !short.contains("kubectl"), "{short}");
    let known = ["version", "homepage", "shortDescription", "description", "caveats", "platforms"];
    assert!(spec.as_object().unwrap().keys().all(|key| known.contains(&key.as_str())), "{spec}");
    let platforms = spec["platforms"].as_array().unwrap();
    let mut seen = Vec::new();
    for platform in platforms {
        let labels = &platform["selector"]["matchLabels"];
        let arch = labels["arch"].as_str().unwrap();
        assert_eq!(labels["os"], "linux", "the sandbox runs on nothing else");
        let uri = platform["uri"].as_str().unwrap();
        assert!(
            uri.starts_with("https://") && uri.ends_with(&format!("{version}-linux-{arch}.tar.gz")),
            "{uri}"
        );
        let sum = platform["sha256"].as_str().unwrap();
        assert!(sum.len() == 64 && sum.chars().all(|c| c.is_ascii_hexdigit()), "{sum}");
        assert_eq!(platform["bin"], "kubectl-liqo");
        let files = platform["files"].as_array().unwrap();
        assert!(files.iter().any(|file| file["from"] == "kubectl-liqo" && file["to"] == "."), "{platform}");
        seen.push(arch.to_owned());
    }
    assert_eq!(seen, ["amd64", "arm64"]);
}

#[test]
fn clusters_that_are_known_are_completed() {
    for line in [
        "peer ",
        "unpeer mi",
        "remove cluster ",
        "status peer ",
        "offer accept ",
        "policy explain --peer ",
        "policy approve m",
    ] {
        assert_eq!(suggested(line), "milan\tEstablished\n:4\n", "{line}");
    }
    assert!(suggested("peer x").starts_with(':'), "{}", suggested("peer x"));
    assert!(!suggested("contract show ").contains("milan"));
}
