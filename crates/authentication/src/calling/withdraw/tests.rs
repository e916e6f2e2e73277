use jiff::Timestamp;
use liqo_api::annotations::ADMITTED_BY;
use liqo_kit::Index as _;
use serde_json::{Value, json};

use super::*;
use crate::index::{Held, RemoteToken};
use crate::testing::{Put, binding, foreign_cluster, later, merge, milan, now, own_token, tenant};
use crate::tokens::{Token, testing_record};

/// Milan is in, we are in Milan, and its ForeignCluster is being deleted.
fn world(metadata: &Value, admitted_by: &str) -> Index {
    let mut index = Index::default();
    index.book.own = Some(own_token());
    let mut whole = json!({ "deletionTimestamp": now(), "finalizers": [finalizers::AUTHENTICATION] });
    merge(&mut whole, metadata);
    let spec = json!({
        "foreignAuthUrl": "https://b", "clusterIdentity": { "clusterID": milan().id.as_str(), "clusterName": "milan" },
    });
    index.put_cluster(foreign_cluster("milan", whole, spec));
    let tenant = tenant(&milan().id, &[(ADMITTED_BY, admitted_by)]);
    index.put_binding(&tenant.name, binding());
    let held = Held {
        key: Key::namespaced(&tenant.name, "liqo-identity-milan"),
        uid: String::new(),
        resource_version: String::new(),
        peer: milan().id.clone(),
        certificate: Err(String::new()),
        remote_namespace: None,
        token_digest: None,
    };
    index.apply(&held.key.clone(), held);
    index.put_tenant(tenant);
    let token = RemoteToken { name: "t".to_owned(), uid: String::new(), token: Token::new("x") };
    index.remote_tokens.insert(milan().id.to_string(), token);
    index
}

fn words(index: &Index, at: Timestamp) -> Vec<String> {
    let cluster = index.clusters.store().get(&Key::cluster("milan")).unwrap();
    plan(&View { index, me: None, autojoin: true, now: at }, cluster).steps.iter().map(Step::word).collect()
}

const EVERYTHING: [&str; 5] =
    ["deny", "delete binding", "delete identity", "delete remote token", "delete tenant"];

#[test]
fn when_nobody_else_is_at_work_everything_goes_at_once() {
    let index = world(&json!({}), "own");
    assert_eq!(words(&index, now()), EVERYTHING);
}

#[test]
fn who_came_without_a_token_does_not_come_back_by_itself() {
    let mut index = world(&json!({}), "open");
    assert_eq!(words(&index, now()), EVERYTHING);
    // Also where there is no own token.
    index.book.own = None;
    assert_eq!(words(&index, now())[0], "deny");
}

#[test]
fn what_others_do_first_is_waited_for_but_not_for_ever() {
    let others = json!({ "finalizers": [finalizers::AUTHENTICATION, "peering.liqo.io/offers"] });
    let index = world(&others, "own");
    // From the first moment, it does not come back; for a while, it may take part.
    assert_eq!(words(&index, later(9)), ["deny"]);
    assert_eq!(words(&index, later(10)), ["deny", "delete binding"]);
    assert_eq!(words(&index, later(59)), ["deny", "delete binding"]);
    assert_eq!(words(&index, later(60)), EVERYTHING);
    // If that cannot be done either, the object goes all the same.
    assert!(words(&index, later(70)).contains(&"remove finalizer".to_owned()));
    let cluster = index.clusters.store().get(&Key::cluster("milan")).unwrap();
    let wake = |at| plan(&View { index: &index, me: None, autojoin: true, now: at }, cluster).wake;
    assert_eq!((wake(now()), wake(later(20))), (Some(later(10)), Some(later(60))));
}

#[test]
fn whoever_is_in_a_hurry_need_not_wait() {
    let forced = json!({
        "finalizers": [finalizers::AUTHENTICATION, "peering.liqo.io/offers"], "annotations": { annotations::FORCE: "true" },
    });
    assert_eq!(words(&world(&forced, "own"), now()), EVERYTHING);
}

#[test]
fn finalizers_of_strangers_are_not_waited_for() {
    let strangers = json!({ "finalizers": ["example.com/backup", finalizers::AUTHENTICATION] });
    assert_eq!(words(&world(&strangers, "own"), now()), EVERYTHING);
}

#[test]
fn when_all_is_gone_the_object_may_go_and_other_finalizers_stay() {
    let mut index = Index::default();
    let metadata =
        json!({ "deletionTimestamp": now(), "finalizers": ["example.com/x", finalizers::AUTHENTICATION] });
    index.put_cluster(foreign_cluster("milan", metadata, json!({ "foreignAuthUrl": "https://b" })));
    assert_eq!(words(&index, now()), ["remove finalizer"]);
    let cluster = index.clusters.store().get(&Key::cluster("milan")).unwrap();
    let planned = plan(&View { index: &index, me: None, autojoin: true, now: now() }, cluster);
    let Some(Step::PatchCluster { patch, .. }) = planned.steps.first() else { panic!("{planned:?}") };
    assert_eq!(patch["metadata"]["finalizers"], json!(["example.com/x"]));
    // A namespace that Kubernetes is removing is no reason to wait.
    let mut index = world(&json!({}), "own");
    let mut leaving = tenant(&milan().id, &[]);
    leaving.deleting = true;
    index.put_tenant(leaving);
    assert!(!words(&index, now()).contains(&"delete tenant".to_owned()));
}

#[test]
fn by_what_it_came_in_it_does_not_come_back_unless_it_left_by_itself() {
    let (record, _) = testing_record(now());
    let mut index = world(&json!({}), &record.id);
    index.book.peers.insert(record.id.clone(), record.clone());
    assert_eq!(words(&index, now())[0], format!("revoke {}", record.id));
    let left = json!({ "annotations": { annotations::WITHDRAWN: "true" } });
    assert_eq!(words(&world(&left, "own"), now()), EVERYTHING[1..]);
}

#[test]
fn a_token_for_a_cluster_that_is_found_by_itself_is_kept() {
    let found = json!({ "labels": { labels::DISCOVERY_TYPE: "LAN" } });
    let words = words(&world(&found, "own"), now());
    assert!(!words.contains(&"delete remote token".to_owned()), "{words:?}");
}

#[test]
fn where_another_foreign_cluster_is_the_same_peer_nothing_of_it_goes() {
    let mut index = world(&json!({}), "own");
    let spec = json!({
        "foreignAuthUrl": "https://b", "clusterIdentity": { "clusterID": milan().id.as_str(), "clusterName": "milan" },
    });
    index.put_cluster(foreign_cluster("other", json!({}), spec));
    assert_eq!(words(&index, now()), ["remove finalizer"]);
}
