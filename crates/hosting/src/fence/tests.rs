use serde_json::{Value, json};

use super::*;
use crate::index::testing::{World, sized};
use crate::pods;

fn world() -> World {
    let agreed = &[("cpu", "2"), ("memory", "4Gi"), ("pods", "9")];
    let mut world = World::new().consumer("milan", agreed).map("milan", "map", &[("shop", "shop-milan")]);
    world.build("shop-milan");
    world
}

fn place() -> Key {
    Key::namespaced("liqo-tenant-milan", "liqo-home")
}

fn seconds(seconds: i64) -> SignedDuration {
    SignedDuration::from_secs(seconds)
}

fn after(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// A Lease that was renewed at this time, as its consumer says and as our API server noted.
fn lease(said: Option<Timestamp>, noted: Timestamp) -> LeaseOnWire {
    let micros = |time: Timestamp| format!("{time:.6}");
    serde_json::from_value(json!({
        "metadata": { "namespace": "liqo-tenant-milan", "name": "liqo-home", "uid": "u", "resourceVersion": "1",
            "managedFields": [
                // That somebody labelled it a moment ago is no renewal, nor is a greeting.
                { "manager": "kubectl", "operation": "Update", "time": "2096-01-01T00:00:00Z" },
                { "manager": "liqo-reflection-clock", "operation": "Apply", "time": "2096-01-01T00:00:00Z" },
                { "manager": "liqo-reflection", "operation": "Apply", "time": noted.to_string() },
            ] },
        "spec": { "holderIdentity": "milan", "renewTime": said.map(micros) },
    }))
    .unwrap()
}

/// A consumer is heard of, `ago`.
fn hear(world: &mut World, ago: i64, now: Instant) {
    let at = world.now - seconds(ago);
    let renewal = Renewal::read(&lease(Some(at), at), world.now, now).unwrap();
    Indexed::apply(&mut world.index, &place(), renewal);
    world.index.listen(world.now, now);
}

fn fenced(world: &mut World, created: Timestamp, status: &Value) -> Key {
    let key = World::key("shop-milan/db-0");
    let object = json!({
        "metadata": { "name": "db-0", "namespace": "shop-milan", "uid": "shadow-db-0", "resourceVersion": "3",
                      "creationTimestamp": created.to_string(), "labels": { "liqo.io/fenced": "true" } },
        "spec": { "pod": sized("1m") }, "status": status,
    });
    let shadow = Shadow::read(serde_json::from_value(object).unwrap()).unwrap();
    Indexed::apply(&mut world.index, &key, shadow);
    key
}

fn running(world: &mut World, key: &Key, grace: u32, given: Option<u32>) {
    let mut object = json!({
        "metadata": { "name": "db-0", "namespace": "shop-milan", "uid": "pod-db-0", "labels": { "liqo.io/fenced": "true" },
                      "ownerReferences": [{ "uid": "shadow-db-0", "controller": true }] },
        "spec": sized("1m"), "status": { "phase": "Running" },
    });
    object["spec"]["terminationGracePeriodSeconds"] = json!(grace);
    if let Some(given) = given {
        object["metadata"]["deletionTimestamp"] = json!("2026-01-02T03:04:05Z");
        object["metadata"]["deletionGracePeriodSeconds"] = json!(given);
    }
    let pod = PodFacts::read(serde_json::from_value(object).unwrap()).unwrap();
    Indexed::apply(&mut world.index, key, pod);
}

fn deed(world: &World, key: &Key) -> Option<Deed> {
    pods::plan(&world.index, key, world.now)
}

fn stopped_with(world: &World, key: &Key) -> Option<u32> {
    match deed(world, key) {
        Some(Deed::Stop { grace, .. }) => Some(grace),
        // What else is to be done about it concerns others.
        _ => None,
    }
}

#[test]
fn a_renewal_is_good_for_sixteen_seconds_from_when_our_api_server_noted_it() {
    let (clock, now) = (Timestamp::from_second(1_000_000).unwrap(), Instant::now());
    let until = |said: Option<i64>, noted: i64| {
        let lease = lease(said.map(|ago| clock - seconds(ago)), clock - seconds(noted));
        Renewal::read(&lease, clock, now).map(|renewal| renewal.until.duration_since(now))
    };
    assert_eq!(until(Some(0), 0), Some(after(16)));
    assert_eq!(until(Some(4), 4), Some(after(12)));
    assert_eq!(until(Some(40), 40), Some(after(0)));
    // Clocks five minutes apart: one that is ahead lengthens nothing.
    assert_eq!(until(Some(-300), 4), Some(after(12)));
    assert_eq!(until(Some(-300), -300), Some(after(16)));
    // It was long on its way: what was sent a minute ago says nothing of now.
    assert_eq!(until(Some(60), 0), Some(after(0)));
    assert_eq!(until(None, 0), None, "only greeted");
    let mut unnoted = lease(Some(clock), clock);
    unnoted.metadata.managed_fields.clear();
    assert_eq!(Renewal::read(&unnoted, clock, now), None);
}

#[test]
fn a_fenced_pod_is_made_when_its_consumer_is_heard_of_and_not_before() {
    let (mut world, now) = (world(), Instant::now());
    let created = world.now;
    let key = fenced(&mut world, created, &json!({}));
    assert_eq!(deed(&world, &key), None, "it may be heard of in a moment");
    assert_eq!(world.index.fence.next(world.now, now), Some(after(16)));
    world.now = created + seconds(16);
    world.index.changed.pods.clear();
    world.index.listen(world.now, now);
    assert!(world.index.changed.pods.contains(&key));
    let Some(Deed::Refuse(refusal)) = deed(&world, &key) else { panic!("{:?}", deed(&world, &key)) };
    assert_eq!(refusal.reason, "Fenced");
    world.index.changed.pods.clear();
    hear(&mut world, 0, now);
    assert!(world.index.changed.pods.contains(&key));
    let Some(Deed::Create { pod, .. }) = deed(&world, &key) else { panic!("{:?}", deed(&world, &key)) };
    assert_eq!(pod.metadata.labels.as_ref().unwrap()["liqo.io/fenced"], "true");
}

#[test]
fn a_fenced_pod_is_stopped_when_its_consumer_is_silent_and_made_again_when_it_is_back() {
    let (mut world, now) = (world(), Instant::now());
    let created = world.now - seconds(1000);
    let key = fenced(&mut world, created, &json!({}));
    running(&mut world, &key, 30, None);
    hear(&mut world, 4, now);
    assert_eq!(stopped_with(&world, &key), None);
    assert_eq!(world.index.fence.next(world.now, now), Some(after(12)));
    world.index.listen(world.now, now + after(11));
    assert_eq!(stopped_with(&world, &key), None);
    world.index.changed.pods.clear();
    world.index.listen(world.now, now + after(12));
    assert!(world.index.changed.pods.contains(&key), "nobody else tells of it");
    assert_eq!(stopped_with(&world, &key), Some(6));
    // Seen again by another list, the Lease is as old as it was.
    hear(&mut world, 4, now + after(60));
    assert_eq!(stopped_with(&world, &key), Some(6));
    Indexed::<PodFacts>::delete(&mut world.index, &key);
    assert!(matches!(deed(&world, &key), Some(Deed::Refuse(_))));
    hear(&mut world, 0, now + after(60));
    // Whether it is counted first that it vanished is not decided here.
    let again = deed(&world, &key);
    assert!(matches!(again, Some(Deed::Create { .. } | Deed::Count { .. })), "{again:?}");
}

#[test]
fn a_fenced_pod_is_given_as_long_as_it_wants_and_six_seconds_at_most() {
    for (own, given, grace) in [
        (3, None, Some(3)),
        (600, None, Some(6)),
        // Deleted before, with more time than is left.
        (600, Some(600), Some(6)),
        (600, Some(6), None),
        (30, Some(2), None),
    ] {
        let mut world = world();
        let created = world.now - seconds(1000);
        let key = fenced(&mut world, created, &json!({}));
        running(&mut world, &key, own, given);
        assert_eq!(stopped_with(&world, &key), grace, "{own} {given:?}");
        // The same if its ShadowPod is gone already.
        Indexed::<Shadow>::delete(&mut world.index, &key);
        assert_eq!(stopped_with(&world, &key), grace, "{own} {given:?}");
    }
}

#[test]
fn other_pods_go_on_while_their_consumer_is_silent() {
    let mut world = world();
    let key = world.shadow("shop-milan/web", &sized("1m"), &json!({}));
    assert!(matches!(deed(&world, &key), Some(Deed::Create { .. })));
    world.pod(&key, "1m", "Running", false);
    assert_eq!(stopped_with(&world, &key), None);
    assert_eq!(world.index.fence.next(world.now, Instant::now()), None, "and nobody waits for anything");
}

#[test]
fn a_lease_that_is_deleted_is_silence() {
    let (mut world, now) = (world(), Instant::now());
    let created = world.now - seconds(1000);
    let key = fenced(&mut world, created, &json!({}));
    running(&mut world, &key, 30, None);
    hear(&mut world, 0, now);
    assert_eq!(stopped_with(&world, &key), None);
    Indexed::<Renewal>::delete(&mut world.index, &place());
    assert_eq!(stopped_with(&world, &key), Some(6));
}
