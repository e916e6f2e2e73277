//! Signals, as Kubernetes and a person at a terminal send them.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::process::Command;
use std::time::Duration;

use liqo_kit::Supervisor;
use liqo_kit::supervise::{Signals, SupervisorError};
use tokio::task::JoinSet;
use tokio::time::Instant;

fn signal(name: &str) {
    let status = Command::new("kill").arg(format!("-{name}")).arg(std::process::id().to_string()).status();
    assert!(status.unwrap().success());
}

type Never = std::convert::Infallible;

// One test, because a signal reaches the whole process.
#[tokio::test]
async fn a_signal_ends_the_tasks_in_order_and_a_second_one_ends_the_wait() {
    let supervisor = Supervisor::new();
    supervisor.critical("worker", |stop| async move {
        stop.cancelled().await;
        Ok::<_, Never>(())
    });
    let mut running = JoinSet::new();
    let started = Instant::now();
    // One that comes before the supervisor runs is not lost, and does not end the process where it stands.
    let signals = Signals::listen().unwrap();
    signal("TERM");
    assert!(!supervisor.stop().is_cancelled());
    running.spawn(supervisor.clone().run(signals, Duration::from_secs(30)));
    assert_eq!(running.join_next().await.unwrap().unwrap(), Ok(()));
    assert!(started.elapsed() < Duration::from_secs(5));

    let supervisor = Supervisor::new();
    supervisor.critical("stubborn", |_| std::future::pending::<Result<(), Never>>());
    running.spawn(supervisor.clone().run(Signals::listen().unwrap(), Duration::from_secs(30)));
    signal("INT");
    supervisor.stop().cancelled().await;
    signal("TERM");
    let error = running.join_next().await.unwrap().unwrap().unwrap_err();
    assert_eq!(error, SupervisorError::Deadline { tasks: vec!["stubborn".into()] });
    assert!(started.elapsed() < Duration::from_secs(10));
}
