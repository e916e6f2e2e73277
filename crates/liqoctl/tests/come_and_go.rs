//! A sandbox comes and goes without a trace: also when it is interrupted, killed, or started twice.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test can do nothing else about it")]

#[path = "support/cli.rs"]
mod support;

use std::process::Stdio;
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use support::{Cli, all_text, machine, until};

#[test]
fn ten_times_up_and_down_three_of_them_killed_in_the_middle_leave_nothing() {
    let before = machine();
    let cli = Cli::new("ten");
    // Real nodes are killed while they have processes, mounts, cgroups and containers; the rest is quick.
    let killed_after =
        [(0, Duration::from_millis(400)), (3, Duration::from_secs(3)), (6, Duration::from_secs(8))];
    for round in 0..10 {
        if let Some((_, wait)) = killed_after.iter().find(|(killed, _)| *killed == round) {
            let mut up = cli.start(&["up", "--clusters", "one"]);
            std::thread::sleep(*wait);
            until(
                "it has begun",
                60,
                || if cli.traces().is_empty() { Err("not yet".into()) } else { Ok(()) },
            );
            up.kill().unwrap();
            up.wait().unwrap();
            assert!(!cli.traces().is_empty(), "it was killed in the middle");
        } else {
            cli.ok(&["up", "--clusters", "one", "--nodes", "0"]);
        }
        cli.ok(&["down"]);
        cli.assert_no_traces();
    }
    assert_eq!(machine(), before);
}

#[test]
fn an_interrupted_start_cleans_up_after_itself() {
    let before = machine();
    for (signal, name) in [(Signal::SIGINT, "int"), (Signal::SIGTERM, "term")] {
        let cli = Cli::new(name);
        let mut up = cli.start(&["up", "--clusters", "one"]);
        until("something is there", 60, || {
            if cli.root().join("one/logs/apiserver.log").exists() { Ok(()) } else { Err("not yet".into()) }
        });
        kill(Pid::from_raw(i32::try_from(up.id()).unwrap()), signal).unwrap();
        assert_eq!(up.wait().unwrap().code(), Some(130));
        cli.assert_no_traces();
    }
    assert_eq!(machine(), before);
}

#[test]
fn up_repairs_what_a_killed_up_left_and_does_nothing_when_it_runs() {
    let cli = Cli::new("again");
    let mut killed = cli.start(&["up", "--clusters", "one", "--nodes", "0"]);
    until("it has started something", 60, || {
        if cli.root().join("one/logs/etcd.log").exists() { Ok(()) } else { Err("not yet".into()) }
    });
    let said = cli.refused(&["up", "--clusters", "one", "--nodes", "0"]);
    assert!(said.contains("is being changed by process"), "two at once: {said}");
    killed.kill().unwrap();
    killed.wait().unwrap();
    let said = cli.refused(&["status"]);
    assert!(said.contains("interrupted") && said.contains("sandbox down"), "{said}");

    let up = cli.run(&["up", "--clusters", "one", "--nodes", "0"]);
    assert!(up.status.success() && all_text(&up).contains("left behind"), "{}", all_text(&up));
    let table = String::from_utf8(up.stdout).unwrap();
    assert!(table.starts_with("CLUSTER") && table.contains("export KUBECONFIG="), "{table}");

    let again = cli.run(&["up", "--clusters", "one", "--nodes", "0"]);
    assert!(again.status.success() && all_text(&again).contains("running already"), "{}", all_text(&again));
    assert!(cli.run(&["up"]).status.success(), "without a wish of its own, up takes what runs");
    let said = cli.refused(&["up", "--clusters", "other", "--nodes", "0"]);
    assert!(said.contains("running with other clusters (one)"), "{said}");
    cli.ok(&["down"]);
    cli.assert_no_traces();
}

#[test]
fn two_sandboxes_with_the_same_cluster_names_do_not_disturb_each_other() {
    let (one, two) = (Cli::new("left"), Cli::new("right"));
    let starting = [&one, &two].map(|cli| {
        let mut up = cli.command(&["up", "--clusters", "same", "--nodes", "0"]);
        up.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap()
    });
    for up in starting {
        let ended = up.wait_with_output().unwrap();
        assert!(ended.status.success(), "{}", all_text(&ended));
    }
    one.ok(&["kubectl", "same", "--", "create", "namespace", "left"]);
    let names = two.ok(&["kubectl", "same", "--", "get", "namespaces", "-o", "name"]);
    assert!(names.contains("namespace/default") && !names.contains("left"), "{names}");
    one.ok(&["down"]);
    one.assert_no_traces();
    two.ok(&["kubectl", "same", "--", "get", "namespaces"]);
    two.ok(&["down"]);
    two.assert_no_traces();
}

#[test]
fn a_sandbox_whose_owner_is_gone_is_debris_and_others_are_not() {
    let (orphan, owned) = (Cli::new("orphan"), Cli::new("owned"));
    let mut owner = std::process::Command::new("sleep").arg("300").spawn().unwrap();
    let up = ["up", "--clusters", "one", "--nodes", "0"];
    assert!(
        orphan.command(&up).env("LIQO_SANDBOX_OWNER", owner.id().to_string()).status().unwrap().success()
    );
    owned.ok(&up);
    owner.kill().unwrap();
    owner.wait().unwrap();
    // Tests that start at this moment remove what is abandoned as well, and whoever comes second is refused.
    until("what is abandoned is gone", 60, || {
        let down = owned.run(&["down", "--abandoned"]);
        let left = orphan.traces();
        let gone = down.status.success() && left.is_empty();
        if gone { Ok(()) } else { Err(format!("{}{}", all_text(&down), left.join("\n"))) }
    });
    owned.ok(&["status"]);
}
