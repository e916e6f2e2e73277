use std::collections::BTreeSet;

use jiff::{SignedDuration, Timestamp};
use liqo_core::ledger::Sale;
use liqo_core::names::ClusterId;
use liqo_kit::Index as _;
use serde_json::json;

use super::*;

fn now() -> Timestamp {
    "2026-03-01T12:00:00Z".parse().unwrap()
}

fn south() -> ClusterId {
    "south".parse().unwrap()
}

/// A contract of south in its namespace, with this version.
fn put_contract(index: &mut Index, version: &str) {
    let object = json!({
        "metadata": { "name": "c-1", "namespace": "liqo-tenant-south", "resourceVersion": version },
        "spec": { "providerID": "north", "consumerID": "south", "terms": "", "consumerSignature": "" },
    });
    index.apply(
        &Key::namespaced("liqo-tenant-south", "c-1"),
        Deal::read(serde_json::from_value(object).unwrap()),
    );
}

fn with_tenant() -> Index {
    let mut index = Index::default();
    let name = "liqo-tenant-south".to_owned();
    let tenant = Tenant {
        name: name.clone(),
        created: None,
        deleting: false,
        put_out: false,
        peer: south(),
        key: None,
    };
    index.apply(&Key::cluster(&name), tenant);
    index
}

fn reserved(version: &str) -> Reserved {
    let sale = Sale {
        contract: "c-1".parse().unwrap(),
        sequence: 0,
        peer: south(),
        pot: None,
        resources: [("cpu".parse().unwrap(), "2".parse().unwrap())].into_iter().collect(),
        pools: [].into(),
        since: now(),
    };
    Reserved { sale, version: version.to_owned(), since: now() }
}

#[test]
fn what_is_being_signed_is_reserved_until_the_contract_is_seen_to_have_changed() {
    let mut index = with_tenant();
    put_contract(&mut index, "5");
    index.memory.reserve(reserved("5"));
    index.release_seen(now());
    assert_eq!(index.memory.reserved.len(), 1);
    put_contract(&mut index, "6");
    index.release_seen(now());
    assert!(index.memory.reserved.is_empty());
}

#[test]
fn what_is_being_signed_is_not_reserved_for_ever() {
    let mut index = with_tenant();
    put_contract(&mut index, "5");
    index.memory.reserve(reserved("5"));
    index.release_seen(now().checked_add(SignedDuration::from_mins(2)).unwrap());
    assert!(index.memory.reserved.is_empty());
    // Nor for a contract that is gone.
    index.memory.reserve(reserved("5"));
    liqo_kit::Index::<Deal>::delete(&mut index, &Key::namespaced("liqo-tenant-south", "c-1"));
    index.release_seen(now());
    assert!(index.memory.reserved.is_empty());
}

#[test]
fn the_id_of_the_next_contract_stays_until_it_is_used() {
    let mut index = with_tenant();
    let peers = BTreeSet::from([south()]);
    index.draw_ids(&peers);
    let first = index.memory.fresh(&south()).cloned().unwrap();
    index.draw_ids(&peers);
    assert_eq!(index.memory.fresh(&south()), Some(&first));
    let object = json!({
        "metadata": { "name": first.as_str(), "namespace": "liqo-tenant-south", "resourceVersion": "1" },
        "spec": { "providerID": "south", "consumerID": "north", "terms": "", "consumerSignature": "" },
    });
    let key = Key::namespaced("liqo-tenant-south", first.as_str());
    index.apply(&key, Deal::read(serde_json::from_value(object).unwrap()));
    index.draw_ids(&peers);
    assert_ne!(index.memory.fresh(&south()), Some(&first));
}

#[test]
fn a_change_touches_whom_it_is_about() {
    let mut index = with_tenant();
    index.take_changed();
    put_contract(&mut index, "5");
    assert_eq!(index.take_changed(), Changed { peers: BTreeSet::from([south()]), all: false });
    assert_eq!(index.take_changed(), Changed::default());
    let domain =
        json!({ "metadata": { "name": "d" }, "spec": { "domain": "example.org", "autojoin": true } });
    index.apply(&Key::cluster("d"), serde_json::from_value::<SearchDomain>(domain).unwrap());
    assert!(index.take_changed().all);
}
