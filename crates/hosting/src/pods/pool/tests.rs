//! Pods of pools run on their nodes, and are counted there.

use liqo_api::SharingPolicy;
use liqo_core::contract::Enforcement;
use liqo_kit::{Index as _, Key};
use serde_json::{Value, json};

use crate::index::testing::{World, sized};
use crate::index::{Bid, Deal, Grant, House};
use crate::pods::{Deed, PodFacts, Shadow, plan};

use super::*;

fn resources(amounts: &[(&str, &str)]) -> Resources {
    Resources::parse(amounts.iter().copied()).resources
}

/// A consumer with a contract about two pools, and the policy that it comes from.
fn world() -> World {
    let mut world = World::new().consumer("milan", &[("cpu", "3"), ("pods", "20")]).map(
        "milan",
        "map",
        &[("shop", "shop-milan")],
    );
    world.build("shop-milan");
    lend(&mut world, &[("gpu", "1"), ("plain", "2")]);
    let policy: SharingPolicy = serde_json::from_value(json!({
        "metadata": { "name": "pools" },
        "spec": { "pools": [
            { "name": "gpu", "nodeSelector": { "matchLabels": { "kind": "gpu" } } }, { "name": "plain" },
        ] },
    }))
    .unwrap();
    world.index.apply(&Key::cluster("pools"), House::read(&policy));
    let bid = Bid { from: "provider-id".into(), policy: Some("pools".into()) };
    world.index.apply(&Key::namespaced("liqo-tenant-milan", "provider"), bid);
    world.reckon();
    world
}

fn lend(world: &mut World, pools: &[(&str, &str)]) {
    let pools = pools
        .iter()
        .map(|(name, cpu)| (name.parse().unwrap(), resources(&[("cpu", cpu), ("pods", "10")])))
        .collect();
    let grant = Grant {
        resources: resources(&[("cpu", "3"), ("pods", "20")]),
        pools,
        enforcement: Enforcement::Hard,
    };
    let key = Key::namespaced("liqo-tenant-milan", "c-one");
    world.index.apply(&key, Deal::test(World::peer("provider-id"), World::peer("milan"), grant));
    world.reckon();
}

/// A ShadowPod that says for which pool it is.
fn shadow(world: &mut World, name: &str, pool: Option<&str>, cpu: &str) -> Key {
    let key = Key::namespaced("shop-milan", name);
    let labels = pool.map_or_else(|| json!({}), |pool| json!({ "liqo.io/pool": pool }));
    let object = json!({
        "metadata": { "name": name, "namespace": "shop-milan", "uid": format!("shadow-{name}"),
                      "resourceVersion": "3", "labels": labels },
        "spec": { "pod": sized(cpu) }, "status": {},
    });
    world.index.apply(&key, Shadow::read(serde_json::from_value(object).unwrap()).unwrap());
    key
}

fn told(world: &World, key: &Key) -> String {
    match plan(&world.index, key, world.now) {
        Some(Deed::Refuse(refusal)) => format!("{}: {}", refusal.reason, refusal.message),
        Some(Deed::Create { .. }) => "made".to_owned(),
        other => format!("{other:?}"),
    }
}

fn made(world: &World, key: &Key) -> Value {
    let Some(Deed::Create { pod, .. }) = plan(&world.index, key, world.now) else {
        panic!("{}", told(world, key))
    };
    serde_json::to_value(pod).unwrap()
}

/// The pod that was made runs.
fn run(world: &mut World, key: &Key) {
    let mut pod = made(world, key);
    pod["metadata"]["uid"] = json!(format!("pod-{}", key.name()));
    let pod = PodFacts::read(serde_json::from_value(pod).unwrap()).unwrap();
    world.index.apply(key, pod);
}

#[test]
fn a_pod_runs_on_the_nodes_of_its_pool() {
    let mut world = world();
    let expected = [
        ("gpu", json!([{ "key": "kind", "operator": "In", "values": ["gpu"] }])),
        ("plain", json!([{ "key": "kind", "operator": "NotIn", "values": ["gpu"] }])),
    ];
    for (pool, requirements) in expected {
        let key = shadow(&mut world, pool, Some(pool), "100m");
        let pod = made(&world, &key);
        let required =
            &pod["spec"]["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"];
        assert_eq!(*required, json!({ "nodeSelectorTerms": [{ "matchExpressions": requirements }] }));
        assert_eq!(pod["metadata"]["labels"]["liqo.io/pool"], pool);
    }
}

#[test]
fn a_pod_of_no_pool_of_the_contract_is_refused() {
    let mut world = world();
    let key = shadow(&mut world, "one", Some("other"), "100m");
    assert_eq!(told(&world, &key), "UnknownPool: the contract has no pool other");
    let key = shadow(&mut world, "two", None, "100m");
    assert_eq!(
        told(&world, &key),
        "UnknownPool: the contract is about pools, and the pod says for none that it is"
    );
    let key = shadow(&mut world, "three", Some("gpu"), "100m");
    lend(&mut world, &[]);
    assert_eq!(told(&world, &key), "UnknownPool: the contract has no pool gpu");
    lend(&mut world, &[("gpu", "1"), ("gone", "2")]);
    let key = shadow(&mut world, "four", Some("gone"), "100m");
    assert_eq!(told(&world, &key), "UnknownPool: the provider's policy has no pool gone any more");
}

#[test]
fn a_pool_takes_what_was_agreed_for_it_and_no_more() {
    let mut world = world();
    let first = shadow(&mut world, "first", Some("gpu"), "800m");
    run(&mut world, &first);
    let second = shadow(&mut world, "second", Some("gpu"), "300m");
    assert!(
        told(&world, &second).starts_with("QuotaExceeded: in pool gpu, the contract does not allow it: cpu"),
        "{}",
        told(&world, &second)
    );
    let other = shadow(&mut world, "other", Some("plain"), "1");
    assert_eq!(told(&world, &other), "made", "the other pool has room");
    // What is about to be made counts as well.
    let account = Account { peer: World::peer("milan"), pool: Some("plain".parse().unwrap()) };
    world.index.ledger.reserve(
        &other,
        account.clone(),
        std::sync::Arc::new(resources(&[("cpu", "1")])),
        world.now,
    );
    let third = shadow(&mut world, "third", Some("plain"), "1500m");
    assert!(told(&world, &third).contains("QuotaExceeded"), "{}", told(&world, &third));
    world.index.ledger.release(&other);
    assert!(world.index.ledger.used_in(&account).is_zero());
    liqo_kit::Index::<PodFacts>::delete(&mut world.index, &first);
    assert_eq!(told(&world, &second), "made", "there is room again");
}

#[test]
fn a_pod_cannot_change_its_pool_while_it_runs() {
    let mut world = world();
    let key = shadow(&mut world, "one", Some("gpu"), "100m");
    run(&mut world, &key);
    assert_eq!(plan(&world.index, &key, world.now), None);
    shadow(&mut world, "one", Some("plain"), "100m");
    assert_eq!(plan(&world.index, &key, world.now), Some(Deed::Delete { uid: "pod-one".to_owned() }));
}
