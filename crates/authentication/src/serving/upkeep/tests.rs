use liqo_api::annotations::{ADMITTED_BY, PUT_OUT};
use serde_json::json;

use super::*;
use crate::index::{Denied, PeerBinding};
use crate::testing::{Put, binding, foreign_cluster, later, milan, now, own_token, tenant};
use crate::tokens::{Token, testing_record};

/// Milan is in and known.
fn world() -> Index {
    let mut index = Index::default();
    index.book.own = Some(own_token());
    let tenant = tenant(&milan().id, &[(ADMITTED_BY, "own")]);
    index.put_role(&tenant.name, true);
    index.put_binding(&tenant.name, binding());
    index.put_tenant(tenant);
    index.put_cluster(foreign_cluster("milan", json!({ "creationTimestamp": now() }), spec()));
    index
}

fn spec() -> serde_json::Value {
    json!({ "clusterIdentity": { "clusterID": milan().id.as_str(), "clusterName": "milan" } })
}

fn words(index: &Index, at: Timestamp) -> Vec<String> {
    let tenant = index.tenant_of(&milan().id).unwrap();
    plan_tenant(index, tenant, at).steps.iter().map(Step::word).collect()
}

fn house(index: &Index) -> Vec<String> {
    plan_house(index, true, now()).iter().map(Step::word).collect()
}

fn denied(created: Timestamp) -> Denied {
    Denied { uid: String::new(), created: Some(created), token_digest: own_token().digest() }
}

#[test]
fn a_peer_that_is_in_is_left_alone() {
    assert_eq!(words(&world(), later(1_000_000)), Vec::<String>::new());
}

#[test]
fn who_was_put_out_loses_its_rights_at_once() {
    let mut index = world();
    index.denied.insert(milan().id.to_string(), denied(later(5)));
    assert_eq!(words(&index, now()), ["put out", "delete binding"]);
    let mut index = world();
    let (mut record, _) = testing_record(now());
    record.revoked = Some(now());
    index.put_tenant(tenant(&milan().id, &[(ADMITTED_BY, &record.id)]));
    index.book.peers.insert(record.id.clone(), record.clone());
    assert_eq!(words(&index, now()), ["put out", "delete binding"]);
    // The other rooms know it by that, also after a restart.
    let noted = [(ADMITTED_BY, record.id.as_str()), (PUT_OUT, "2026-01-01T00:00:00Z")];
    index.put_tenant(tenant(&milan().id, &noted));
    assert_eq!(words(&index, now()), ["delete binding"]);
    // Whoever came in otherwise meanwhile is in.
    index.put_tenant(tenant(&milan().id, &[(ADMITTED_BY, "own"), noted[1]]));
    assert_eq!(words(&index, now()), ["let in"]);
}

#[test]
fn who_is_removed_takes_part_in_parting() {
    let mut index = world();
    index.denied.insert(milan().id.to_string(), denied(later(5)));
    index.put_cluster(foreign_cluster("milan", json!({ "deletionTimestamp": now() }), spec()));
    assert_eq!(words(&index, now()), ["delete binding"]);
}

#[test]
fn rights_that_nobody_gave_are_taken_away() {
    let mut index = world();
    index.put_tenant(tenant(&milan().id, &[]));
    assert_eq!(words(&index, now()), ["delete binding"]);
    let name = index.tenant_of(&milan().id).unwrap().name.clone();
    let mut index = world();
    index.put_role(&name, false);
    index.put_binding(&name, PeerBinding { right_peer: false, ..binding() });
    assert_eq!(words(&index, now()), ["fix binding", "fix role"]);
    index.put_binding(&name, PeerBinding { right_role: false, ..binding() });
    assert_eq!(words(&index, now()), ["delete binding", "fix role"]);
}

#[test]
fn a_peer_without_a_foreign_cluster_is_put_out_and_then_removed() {
    let mut index = world();
    liqo_kit::Index::<liqo_api::ForeignCluster>::delete(&mut index, &Key::cluster("milan"));
    assert_eq!(words(&index, later(29)), Vec::<String>::new());
    assert_eq!(words(&index, later(30)), ["delete binding"]);
    assert_eq!(words(&index, later(600)), ["delete binding", "delete tenant"]);
    let tenant = index.tenant_of(&milan().id).unwrap();
    assert_eq!(plan_tenant(&index, tenant, now()).wake, Some(later(30)));
}

#[test]
fn a_house_without_token_and_certificate_gets_them() {
    let mut index = Index::default();
    assert_eq!(house(&index), ["create own token", "create serving certificate"]);
    index.own_token_exists = true;
    index.serving_exists = true;
    index.book.own = Some(Token::default());
    assert_eq!(house(&index), ["fill own token"]);
    index.book.own = Some(own_token());
    assert_eq!(house(&index), Vec::<String>::new());
}

#[test]
fn a_denial_is_lifted_by_another_token_or_by_whoever_adds_the_cluster_again() {
    let with = |denied: Denied| {
        let mut index = world();
        index.own_token_exists = true;
        index.serving_exists = true;
        index.denied.insert(milan().id.to_string(), denied);
        index
    };
    // The ForeignCluster was there before.
    assert_eq!(house(&with(denied(later(1)))), Vec::<String>::new());
    assert_eq!(house(&with(denied(now()))), ["lift denial"]);
    let mut index = with(denied(later(1)));
    index.book.own = Some(Token::new("another"));
    assert_eq!(house(&index), ["lift denial"]);
    // Where none is asked for, another one says nothing.
    assert!(plan_house(&index, false, now()).is_empty());
    // It came by itself: that lifts nothing.
    let mut index = with(denied(now()));
    let labels = json!({ "creationTimestamp": now(), "labels": { "discovery.liqo.io/discovery-type": "IncomingPeering" } });
    index.put_cluster(foreign_cluster("milan", labels, spec()));
    assert_eq!(house(&index), Vec::<String>::new());
}
