use jiff::Timestamp;
use liqo_api::{ForeignCluster, ResourceRequest, SharingPolicy};
use liqo_core::ledger::Ledger;
use liqo_core::policy::Percent;
use liqo_kit::{Index as _, Key};
use liqo_peering::stock::{NodeFacts, Stock};
use serde_json::{Value, json};

use super::*;
use crate::contract::tests::{identity, signed};
use crate::peering::testing::{cluster, offer, telling};

/// A world with one node of eight cores, two peers, and these policies.
fn world(policies: &[Value]) -> World {
    let node = json!({
        "metadata": {"name": "n", "uid": "u", "resourceVersion": "1"},
        "status": {
            "allocatable": {"cpu": "8", "memory": "16Gi", "pods": "110"},
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    });
    let mut stock = Stock::default();
    let facts = NodeFacts::read(serde_json::from_value(node).unwrap()).unwrap();
    stock.apply(&Key::cluster("n"), facts);
    let mut world = World {
        stock,
        percentage: Percent::new(90).unwrap(),
        clusters: vec![peer("rome", &[("tier", "gold")]), peer("bari", &[])],
        requests: Vec::new(),
        ledger: Ledger::default(),
        now: Timestamp::UNIX_EPOCH,
    };
    let all: Vec<SharingPolicy> = policies.iter().map(policy).collect();
    for policy in world.policies_with(&all) {
        world.stock.apply(&Key::cluster(policy.name()), policy);
    }
    world
}

fn peer(name: &str, labels: &[(&str, &str)]) -> ForeignCluster {
    let mut peer = telling(cluster(name, name), &[]);
    peer.metadata.labels = Some(labels.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect());
    peer
}

fn policy(spec: &Value) -> SharingPolicy {
    let name = spec["name"].as_str().unwrap().to_owned();
    let mut spec = spec.clone();
    spec.as_object_mut().unwrap().remove("name");
    SharingPolicy::new(&name, serde_json::from_value(spec).unwrap())
}

fn gold() -> Value {
    json!({"name": "gold-only", "peers": {"matchLabels": {"tier": "gold"}}, "share": {"percentage": 50}})
}

#[test]
fn an_offer_is_explained_line_by_line() {
    let world = world(&[]);
    let explained = explain::explain(&world, world.stock.policies(), &world.clusters[0]).unwrap();
    assert_eq!(explained.answer.resources["cpu"], "7200m");
    let text = explained.text();
    assert!(text.contains("cpu: allocatable on these nodes: 8\n"), "{text}");
    assert!(text.contains("cpu: 90 % of 8: 7200m\n") && text.ends_with("free of charge\n"), "{text}");
    let value = serde_json::to_value(&explained).unwrap();
    assert_eq!((&value["peer"], &value["verdict"]), (&json!("rome"), &json!("Offer")));
}

#[test]
fn what_a_cluster_asks_for_bounds_its_offer() {
    let mut world = world(&[]);
    let request = json!({
        "apiVersion": "discovery.liqo.io/v1alpha1", "kind": "ResourceRequest",
        "metadata": {"name": "rome", "namespace": "liqo-tenant-x"},
        "spec": {"clusterIdentity": {"clusterID": "rome", "clusterName": "rome"}, "resources": {"cpu": "2", "memory": "-1"}},
    });
    world.requests = vec![serde_json::from_value::<ResourceRequest>(request).unwrap()];
    let peer = world.peer(&world.clusters[0]).unwrap();
    assert_eq!(peer.wants.to_string(), "cpu=2");
    let explained = explain::explain(&world, world.stock.policies(), &world.clusters[0]).unwrap();
    assert_eq!(explained.answer.resources["cpu"], "2");
}

#[test]
fn a_policy_is_tried_before_it_is_there() {
    let world = world(&[]);
    let then = world.policies_with(&[policy(&gold())]);
    let changes = explain::changes(&world, &then);
    let text = explain::changes_text(&changes, false);
    let lines: Vec<&str> = text.lines().collect();
    assert!(lines[1].starts_with("rome") && lines[1].contains("cpu 7200m, memory"), "{text}");
    assert!(lines[1].contains("cpu 4, memory 8Gi, pods 55 by gold-only, free"), "{text}");
    assert!(
        lines[2].starts_with("bari") && lines[2].ends_with("refused: policy gold-only needs label tier=gold"),
        "{text}"
    );
}

#[test]
fn what_stays_the_same_is_not_in_the_way() {
    let now = world(&[gold()]);
    let then = now.policies_with(&[policy(&gold())]);
    assert_eq!(then.len(), 1, "a policy of the same name is replaced");
    let changes = explain::changes(&now, &then);
    assert_eq!(explain::changes_text(&changes, false), "nothing would change for any known cluster now\n");
    assert!(explain::changes_text(&changes, true).contains("the same"));
    assert!(explain::changes_text(&[], false).contains("no other cluster is known"));
}

#[test]
fn the_list_says_whom_a_policy_is_about_and_what_is_wrong_with_it() {
    let gold = list::view(&policy(&gold()));
    assert_eq!((gold.whom.as_str(), gold.percentage, gold.valid), ("tier=gold", Some(50), true));
    let deny = list::view(&policy(&json!({"name": "no", "action": "Deny", "peers": {
        "clusterIDs": ["a", "b"], "matchExpressions": [{"key": "tier", "operator": "Exists"}],
    }})));
    assert_eq!((deny.whom.as_str(), deny.action.as_str()), ("a or b and tier Exists", "Deny"));
    let typo = json!({"name": "typo", "resources": ["cpu"], "shares": {"nvidia.com/gpu": {"cap": "1"}}});
    let typo = list::view(&policy(&typo));
    assert!(
        !typo.valid && typo.problem.as_ref().unwrap().contains("spec.shares[nvidia.com/gpu]"),
        "{typo:?}"
    );
    let text = list::table(&[gold, deny, typo], true);
    assert!(text.contains("gold-only") && text.contains("Automatic"), "{text}");
}

#[test]
fn what_is_sold_by_an_offer_that_lies_at_the_consumer_counts_for_its_policy() {
    let (north, south) = (identity("north"), identity("south"));
    let peers = [telling(cluster("south", "south"), &[])];
    let key = liqo_peering::paper::party(&north).unwrap().key;
    let by = |contract: &liqo_api::Contract, offers: &[liqo_api::ResourceOffer]| {
        let ledger = world::ledger("north", Some(&key), &peers, offers, std::slice::from_ref(contract));
        let pots: Vec<_> = ledger.sales().map(|sale| sale.pot.clone()).collect();
        pots
    };
    let mut contract = signed(&north, &south);
    assert_eq!(by(&contract, &[]), [None]);
    contract.metadata.annotations = Some([(liqo_peering::SOLD_BY.to_owned(), "gold".to_owned())].into());
    assert_eq!(by(&contract, &[]), [None], "what others write onto the original means nothing");
    contract.metadata.labels = Some([("liqo.io/replicated".to_owned(), "true".to_owned())].into());
    assert_eq!(by(&contract, &[]), [Some("gold".to_owned())]);
    // Where the offer lies here, it says so itself.
    let mut here = offer("north", "Accepted", "");
    here.spec.policy = Some("silver".to_owned());
    assert_eq!(by(&contract, &[here]), [Some("silver".to_owned())]);
}
