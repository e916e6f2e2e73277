use super::*;

type Never = std::convert::Infallible;

async fn until(stop: CancellationToken) -> Result<(), Never> {
    stop.cancelled().await;
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_panicking_task_stops_all_the_others_and_is_named() {
    let supervisor = Supervisor::new();
    supervisor.critical("steady", until);
    supervisor.spawn("broken", async { panic!("no more") });
    let error = supervisor.run(Signals::listen().unwrap(), Duration::from_secs(5)).await.unwrap_err();
    let reason = "it panicked: no more".to_owned();
    assert_eq!(error, SupervisorError::Ended { task: "broken".into(), reason });
}

#[tokio::test(start_paused = true)]
async fn a_critical_task_that_ends_stops_the_process_and_one_that_may_end_does_not() {
    let supervisor = Supervisor::new();
    supervisor.spawn("short", async {});
    supervisor.critical("watch", |_| async {
        tokio::time::sleep(Duration::from_secs(60)).await;
        Err("the disk is full")
    });
    let error = supervisor.run(Signals::listen().unwrap(), Duration::from_secs(5)).await.unwrap_err();
    assert_eq!(error.to_string(), "task watch has ended although nobody asked it to: the disk is full");
}

#[tokio::test(start_paused = true)]
async fn late_tasks_outlive_the_others() {
    let supervisor = Supervisor::new();
    let order = Arc::new(Mutex::new(Vec::new()));
    let (early, late) = (Arc::clone(&order), Arc::clone(&order));
    supervisor.late("probes", |stop| async move {
        stop.cancelled().await;
        late.lock().push("probes");
        Ok::<_, Never>(())
    });
    supervisor.critical("worker", |stop| async move {
        stop.cancelled().await;
        tokio::time::sleep(Duration::from_secs(2)).await;
        early.lock().push("worker");
        Ok::<_, Never>(())
    });
    supervisor.stop().cancel();
    assert_eq!(supervisor.run(Signals::listen().unwrap(), Duration::from_secs(5)).await, Ok(()));
    assert_eq!(*order.lock(), ["worker", "probes"]);
}

#[tokio::test(start_paused = true)]
async fn a_task_that_does_not_stop_is_dropped_at_the_deadline_and_named() {
    let supervisor = Supervisor::new();
    supervisor.critical("polite", until);
    supervisor.critical("stubborn", |_| std::future::pending::<Result<(), Never>>());
    supervisor.stop().cancel();
    let started = Instant::now();
    let error = supervisor.run(Signals::listen().unwrap(), Duration::from_secs(5)).await.unwrap_err();
    assert_eq!(error, SupervisorError::Deadline { tasks: vec!["stubborn".into()] });
    assert!(started.elapsed() < Duration::from_secs(7));
}
