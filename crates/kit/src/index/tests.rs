use super::*;

fn names<'a, T: 'a>(objects: impl Iterator<Item = (&'a Key, &'a T)>) -> Vec<String> {
    objects.map(|(key, _)| key.to_string()).collect()
}

#[test]
fn a_namespace_is_listed_without_its_neighbours() {
    let mut store = Store::default();
    for key in ["a/x", "a-b/x", "a/y", "b/x", "a0/x"] {
        let (namespace, name) = key.split_once('/').unwrap();
        store.apply(&Key::namespaced(namespace, name), ());
    }
    store.apply(&Key::cluster("a"), ());
    assert_eq!(names(store.in_namespace("a")), ["a/x", "a/y"]);
    assert!(names(store.in_namespace("none")).is_empty());
}

#[test]
fn an_object_moves_from_group_to_group_and_leaves_when_deleted() {
    let mut pods = Grouped::by(|_, node: &Option<&'static str>| *node);
    let pod = Key::namespaced("ns", "pod");
    pods.apply(&pod, None);
    assert_eq!(pods.groups().count(), 0);
    pods.apply(&pod, Some("node-1"));
    pods.apply(&pod, Some("node-2"));
    assert_eq!(names(pods.group(&"node-1")), Vec::<String>::new());
    assert_eq!(names(pods.group(&"node-2")), ["ns/pod"]);
    pods.delete(&pod);
    assert_eq!(pods.groups().count(), 0);
    assert!(pods.store().is_empty());
}

#[tokio::test]
async fn many_changes_wake_a_planner_once() {
    let shared = Shared::new(Store::default());
    let mut changes = shared.subscribe();
    for n in 0..100 {
        Sink::apply(&shared, &Key::cluster(&format!("n{n}")), n);
        Sink::<i32>::changed(&shared);
    }
    changes.changed().await.unwrap();
    assert!(!changes.has_changed().unwrap());
    assert_eq!(shared.read().len(), 100);
}

#[test]
fn a_fan_tells_each_of_its_sinks_everything() {
    let (all, by_node) =
        (Shared::new(Store::default()), Shared::new(Grouped::by(|_, node: &&'static str| Some(*node))));
    let fan = Fan::to(all.clone()).and(by_node.clone());
    let (a, b) = (Key::namespaced("ns", "a"), Key::namespaced("ns", "b"));
    fan.apply(&a, "node-1");
    fan.apply(&b, "node-2");
    fan.delete(&a);
    fan.synced();
    assert_eq!(names(all.read().iter()), ["ns/b"]);
    assert_eq!(by_node.read().groups().collect::<Vec<_>>(), [&"node-2"]);
    assert!(all.read().is_synced() && by_node.read().store().is_synced());
}

#[tokio::test(start_paused = true)]
async fn what_changes_all_the_time_wakes_a_planner_at_once_and_then_seldom() {
    let shared = Shared::new(Store::default());
    let mut changes = shared.subscribe();
    let (sink, waking) = Seldom::new(shared.clone(), Duration::from_millis(100));
    let mut tasks = tokio::task::JoinSet::new();
    tasks.spawn(waking);
    let started = tokio::time::Instant::now();
    let mut woken = Vec::new();
    for n in 0..250 {
        sink.apply(&Key::cluster(&format!("n{n}")), n);
        Sink::<i32>::changed(&sink);
        assert_eq!(shared.read().len(), n as usize + 1);
        if tokio::time::timeout(Duration::from_millis(1), changes.changed()).await.is_ok() {
            woken.push(started.elapsed().as_millis());
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }
    // The last change is not forgotten.
    changes.changed().await.unwrap();
    assert!(started.elapsed() >= Duration::from_millis(300), "{:?}", started.elapsed());
    assert_eq!(woken.len(), 3, "{woken:?}");
    assert!(woken[0] <= 1, "{woken:?}");
}
