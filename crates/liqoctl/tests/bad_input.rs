//! Every mistake gets one clear message with what to do, a non-zero exit, and nothing is left behind.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test can do nothing else about it")]

#[path = "support/cli.rs"]
mod support;

use std::process::Command;

use support::{Cli, all_text, machine};

#[test]
fn unknown_names_and_missing_sandboxes_are_explained() {
    let cli = Cli::new("names");
    for (arguments, expected) in [
        (&["status"][..], "there is no sandbox"),
        (&["kubeconfig"], "Start it: liqoctl sandbox up"),
        (&["up", "--clusters", "Consumer"], "lower-case letters"),
        (&["up", "--clusters", "a,a"], "two clusters are named a"),
        (&["up", "--clusters", "host"], "means this machine"),
        (&["up", "--nodes", "500"], "hollowNodes for scale"),
        (&["--name", "../x", "up"], "sandbox name"),
        (&["up", "--file", "/no/such/file.yaml"], "cannot read /no/such/file.yaml"),
    ] {
        let said = cli.refused(arguments);
        assert!(said.contains(expected), "{arguments:?}: {said}");
        assert!(said.starts_with("error: "), "{said}");
    }
    let said = cli.ok(&["down"]);
    assert_eq!(said, "", "down without a sandbox is no error");
    cli.assert_no_traces();
}

#[test]
fn a_broken_file_is_refused_with_the_line_and_what_was_expected() {
    let cli = Cli::new("yaml");
    let file = std::env::temp_dir().join(format!("{}.yaml", cli.name));
    std::fs::write(&file, "clusters:\n- name: a\n  podCidr: 10.0.0.0/16\n").unwrap();
    let said = cli.refused(&["up", "--file", file.to_str().unwrap()]);
    std::fs::remove_file(&file).unwrap();
    for expected in ["line 3", "podCidr", "podCIDR", "expected something like"] {
        assert!(said.contains(expected), "{expected}: {said}");
    }
    cli.assert_no_traces();
}

#[test]
fn wrong_usage_ends_with_code_two() {
    let cli = Cli::new("usage");
    for arguments in [&["cut", "a"][..], &["delay", "a", "b", "soon"], &["up", "--nodes", "-1"], &["fly"]] {
        let output = cli.run(arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {}", all_text(&output));
    }
}

/// Runs `liqoctl sandbox …` after a shell script in a mount namespace of its own, where the machine can be broken.
fn on_broken_machine(cli: &Cli, script: &str, arguments: &str) -> String {
    let script = format!("set -e; {script}; exec {} sandbox {arguments}", env!("CARGO_BIN_EXE_liqoctl"));
    let output = Command::new("unshare")
        .args(["--mount", "--", "sh", "-c", &script])
        .envs(cli.environment())
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1), "{}", all_text(&output));
    all_text(&output)
}

#[test]
fn a_machine_that_lacks_something_is_told_what() {
    let cli = Cli::new("machine");
    let before = machine();
    let empty = std::env::temp_dir().join(format!("{}-empty", cli.name));
    std::fs::write(&empty, "").unwrap();
    let hide = |path: &str| format!("mount -n --bind {} {path}", empty.display());
    let runc = String::from_utf8(Command::new("sh").args(["-c", "command -v runc"]).output().unwrap().stdout)
        .unwrap();
    for (script, arguments, expected) in [
        (hide(runc.trim()), "up", "missing: runc. Install with: apt-get install runc"),
        (hide("/proc/filesystems"), "up", "overlayfs"),
        ("mount -n -t tmpfs -o size=20m tmpfs /mnt".into(), "up --state-dir /mnt", "not enough disk"),
        ("true".into(), "up --tools-dir /nonexistent", "Build them once with: make tools"),
    ] {
        let said = on_broken_machine(&cli, &script, arguments);
        assert!(said.contains(expected), "{script}: {said}");
    }
    std::fs::remove_file(&empty).unwrap();
    assert_eq!(machine(), before);
    cli.assert_no_traces();
}

#[test]
fn without_root_the_message_says_so() {
    let cli = Cli::new("root");
    // The build directory may be closed to others.
    let copy = std::env::temp_dir().join(&cli.name);
    std::fs::copy(env!("CARGO_BIN_EXE_liqoctl"), &copy).unwrap();
    for command in ["up", "down", "status"] {
        let output = Command::new("setpriv")
            .args(["--reuid=65534", "--clear-groups", "--"])
            .arg(&copy)
            .args(["sandbox", command, "--name", &cli.name])
            .current_dir("/")
            .output()
            .unwrap();
        let said = all_text(&output);
        assert_eq!(output.status.code(), Some(1), "{said}");
        assert!(said.contains("needs root") && said.contains("sudo"), "{command}: {said}");
    }
    std::fs::remove_file(copy).unwrap();
    cli.assert_no_traces();
}

#[test]
fn a_directory_of_someone_else_is_never_touched() {
    let cli = Cli::new("foreign");
    let precious = cli.root().join("precious");
    std::fs::create_dir_all(cli.root()).unwrap();
    std::fs::write(&precious, "mine").unwrap();
    for command in ["up", "down"] {
        let said = cli.refused(&[command]);
        assert!(said.contains("not a sandbox"), "{said}");
    }
    assert_eq!(std::fs::read_to_string(&precious).unwrap(), "mine");
    std::fs::remove_dir_all(cli.root()).unwrap();
}
