use super::*;

fn suggested(line: &str) -> String {
    suggest(&crate::command(), &line.split(' ').map(str::to_owned).collect::<Vec<_>>())
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
