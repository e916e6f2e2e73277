use super::*;

fn launch<'a>(root: &'a Path, script: &str) -> Launch<'a> {
    Launch {
        root,
        part: "a/test",
        inside: Inside::Host,
        argv: ["sh", "-c", script].map(OsString::from).to_vec(),
        log: root.join("log"),
        env: vec![],
    }
}

fn scratch(name: &str) -> PathBuf {
    let dir = std::env::temp_dir().join(format!("liqo-process-{name}-{}", std::process::id()));
    fs::create_dir_all(&dir).unwrap();
    dir
}

#[test]
fn a_process_and_its_children_are_found_by_their_mark_and_killed() {
    let root = scratch("mark");
    launch(&root, "sleep 60 & echo ready; exec sleep 61 >/dev/null").start_and_hear_ready().unwrap();
    let found = of(&root);
    assert_eq!(found.len(), 2, "{found:?}");
    assert!(found.iter().all(|process| process.part == "a/test" && !process.paused));
    assert!(all_roots().contains(&root));

    let pids: Vec<i32> = found.iter().map(|process| process.pid).collect();
    signal(&pids, Signal::SIGSTOP);
    let deadline = tokio::time::Instant::now() + Duration::from_secs(5);
    while !of(&root).iter().all(|process| process.paused) {
        assert!(tokio::time::Instant::now() < deadline, "{:?}", of(&root));
    }
    kill_all(&pids).unwrap();
    assert_eq!(of(&root), []);
    fs::remove_dir_all(root).unwrap();
}

#[test]
fn a_start_that_fails_tells_what_the_program_said() {
    let root = scratch("fails");
    let error =
        launch(&root, "echo no such thing >&2; exit 3").start_and_hear_ready().unwrap_err().to_string();
    assert!(error.contains("starting a/test") && error.contains("no such thing"), "{error}");
    fs::remove_dir_all(root).unwrap();
}

#[test]
fn a_failing_command_is_reported_with_its_own_words() {
    let error =
        Inside::Host.run("asking", ["sh", "-c", "echo because >&2; exit 1"], b"").unwrap_err().to_string();
    assert_eq!(error, "asking failed: because");
}
