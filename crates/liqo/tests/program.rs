//! The program as a person meets it: help, exit codes, environment, and what it says of its flags.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that cannot go on has failed"
)]

use std::process::{Command, Output};

/// Runs the program without a cluster: with good arguments, it gets as far as looking for one.
fn liqo(arguments: &[&str], environment: &[(&str, &str)]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_liqo"));
    command.args(arguments).env_clear().envs(environment.iter().copied()).output().unwrap()
}

fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

#[test]
fn help_explains_every_flag_and_the_exit_codes() {
    let output = liqo(&["manager", "--help"], &[("LIQO_CLUSTER_NAME", "hidden-from-help")]);
    assert_eq!(output.status.code(), Some(0));
    // Where lines break depends on the terminal.
    let text = stdout(&output).split_whitespace().collect::<Vec<_>>().join(" ");
    for part in [
        "--cluster-name <NAME>",
        "LIQO_CLUSTER_NAME",
        "[default: 10h]",
        "Exit codes: 0 ended as it was asked",
    ] {
        assert!(text.contains(part), "{part}\n{text}");
    }
    assert!(text.contains("Image of virtual kubelets (accepted, and nothing is needed"), "{text}");
    assert!(
        text.contains("Offer what other clusters offer to this one (no effect in this version)"),
        "{text}"
    );
    assert!(!text.contains("hidden-from-help"), "{text}");
}

#[test]
fn the_version_and_the_definitions_are_printed() {
    assert_eq!(stdout(&liqo(&["version"], &[])), format!("liqo {}\n", liqo::VERSION));
    assert_eq!(stdout(&liqo(&["--version"], &[])), format!("liqo {}\n", liqo::VERSION));
    let crds = stdout(&liqo(&["crds"], &[]));
    assert_eq!(crds.matches("---\n").count(), liqo_api::crds().len());
    assert!(crds.contains("name: clusterconfigs.config.liqo.io"));
}

#[test]
fn wrong_arguments_end_with_two_and_say_what_is_expected() {
    type Environment<'a> = &'a [(&'a str, &'a str)];
    let cases: [(&[&str], Environment<'_>, &str); 6] = [
        (&["manager", "--cluster-name=Bad Name"], &[], "is not a cluster name"),
        (&["manager"], &[("LIQO_CLUSTER_NAME", "Bad Name")], "is not a cluster name"),
        (&["manager"], &[("LIQO_RESOURCE_SHARING_PERCENTAGE", "half")], "from 0 to 100"),
        (&["manager", "--log-filter=a=b=c"], &[], "the log filter \"a=b=c\" is not valid"),
        (&["manager", "--lease-duration=1s"], &[], "must be shorter than"),
        (&["manger"], &[], "tip: a similar subcommand exists: 'manager'"),
    ];
    for (arguments, environment, says) in cases {
        let output = liqo(arguments, environment);
        assert_eq!(output.status.code(), Some(2), "{arguments:?} {}", stderr(&output));
        assert!(stderr(&output).contains(says), "{arguments:?} {}", stderr(&output));
        assert!(output.stdout.is_empty(), "stdout is for data");
    }
}

#[test]
fn a_failure_ends_with_one_and_says_what_to_do() {
    let output = liqo(&["manager"], &[]);
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("outside of a cluster, use --kubeconfig FILE"), "{}", stderr(&output));
    let output = liqo(&["manager", "--kubeconfig=/nowhere/kubeconfig"], &[]);
    assert_eq!(output.status.code(), Some(1));
    assert!(
        stderr(&output).contains("cannot read the kubeconfig /nowhere/kubeconfig"),
        "{}",
        stderr(&output)
    );
}

#[test]
fn a_port_that_is_taken_is_named_with_the_flag_to_change() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap();
    let config = "apiVersion: v1\nkind: Config\ncurrent-context: x\ncontexts: [{name: x, context: {cluster: x, user: x}}]\n\
                  clusters: [{name: x, cluster: {server: 'http://127.0.0.1:1'}}]\nusers: [{name: x, user: {token: t}}]\n";
    let file = std::env::temp_dir().join(format!("liqo-program-{}", std::process::id()));
    std::fs::write(&file, config).unwrap();
    let (kubeconfig, probes) =
        (format!("--kubeconfig={}", file.display()), format!("--health-probe-address={address}"));
    let output = liqo(&["manager", &kubeconfig, &probes], &[]);
    std::fs::remove_file(&file).unwrap();
    assert_eq!(output.status.code(), Some(1));
    let said = stderr(&output);
    assert!(said.contains(&format!("{address}: Address already in use")), "{said}");
    assert!(said.contains("choose another --health-probe-address"), "{said}");
}

#[test]
fn flags_win_over_the_environment_and_the_log_tells_the_outcome() {
    let environment = [
        ("LIQO_CLUSTER_NAME", "from-environment"),
        ("LIQO_LOG_FORMAT", "json"),
        ("LIQO_BROKER_MODE", "true"),
        ("LIQO_KUBELET_EXTRA_ARGS", "--token=hunter2"),
        ("POD_NAMESPACE", "elsewhere"),
    ];
    let output = liqo(&["manager", "--cluster-name=from-flag", "--kubelet-image=x"], &environment);
    let log = stderr(&output);
    let lines: Vec<serde_json::Value> =
        log.lines().map(|line| serde_json::from_str(line).expect("JSON alone")).collect();
    let configuration = lines[0]["configuration"].as_str().unwrap();
    for part in [
        "--cluster-name=from-flag",
        "--liqo-namespace=elsewhere",
        "--broker-mode=true",
        "--kubelet-extra-args=--token=…",
    ] {
        assert!(configuration.contains(part), "{part}: {configuration}");
    }
    assert!(!log.contains("hunter2"), "{log}");
    let saying = |text: &str| -> Vec<&serde_json::Value> {
        lines.iter().filter(|line| line["message"] == text).collect()
    };
    let needless = saying("nothing is needed for these flags");
    assert!(needless.iter().any(
        |line| line["flags"] == "--kubelet-image" && line["reason"].as_str().unwrap().contains("process")
    ));
    let later = saying("these flags have no effect in this version");
    assert_eq!(later.len(), 1, "{log}");
    assert_eq!(later[0]["flags"], "--broker-mode");
}
