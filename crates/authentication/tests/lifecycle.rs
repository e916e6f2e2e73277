//! From the first refusal to the parting, and back again, on real API servers.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that cannot go on has failed"
)]

#[path = "support/sweep.rs"]
#[allow(dead_code, reason = "another test uses the rest")]
mod sweep;
#[path = "support/world.rs"]
mod world;

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use k8s_openapi::api::rbac::v1::Role;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams};
use kube::{Api, ResourceExt};
use liqo_api::foreign_cluster::PeeringConditionType;
use liqo_api::{Fingerprint, ForeignCluster, ResourceRequest, SearchDomain, SearchDomainSpec, labels};
use liqo_authentication::tokens::{self, NewToken, Token};
use liqo_sandbox::{ClusterSpec, TestSandbox};
use serde_json::{Value, json};
use sweep::peer_client;
use tokio::time::Instant;
use world::{House, NAMESPACE, Process, eventually, value, wait_root_ca};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_identity_lives_as_long_as_it_should() {
    let sandbox = TestSandbox::start([ClusterSpec::hollow("b", 1), ClusterSpec::hollow("a", 1)]).await;
    let (a, mut b) = (House::new(&sandbox, "a").await, House::new(&sandbox, "b").await);
    wait_root_ca(&b.client).await;
    // As short as Kubernetes allows.
    b.settings.certificate_lifetime = Duration::from_secs(600);
    let (mut at_a, at_b) = (a.start().await, b.start().await);
    let fingerprint = b.fingerprint(&at_b).await;

    whoever_is_not_the_one_that_is_meant_is_denied(&a, &b, fingerprint).await;
    a_cluster_that_was_only_found_is_not_asked(&a, &b, fingerprint).await;
    let token = without_a_token_it_is_denied_and_with_one_it_is_not(&a, &b, fingerprint).await;
    a_second_foreign_cluster_of_the_same_peer_is_denied(&a, &b, fingerprint).await;
    it_is_renewed_without_a_token(&a, &b).await;
    it_is_rotated_when_somebody_asks(&a, &b).await;
    at_b.kill();
    b.settings.certificate_lifetime = Duration::from_secs(24 * 3600);
    let at_b = b.start().await;
    b.fingerprint(&at_b).await;
    at_a.kill();
    at_a = it_recovers_after_a_missed_renewal(&a, &b).await;
    what_somebody_changes_is_put_right(&a, &b).await;
    a_revoked_peer_is_out_within_seconds(&a, &b, &token).await;
    a_new_token_lets_it_in_again(&a, &b).await;
    another_certificate_is_shown_without_a_restart(&b, &at_b, fingerprint).await;
    drop((at_a, at_b));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_parting_is_ordered_bounded_and_leaves_nothing() {
    let sandbox = TestSandbox::start([ClusterSpec::hollow("b", 1), ClusterSpec::hollow("a", 1)]).await;
    let (a, b) = (House::new(&sandbox, "a").await, House::new(&sandbox, "b").await);
    wait_root_ca(&b.client).await;
    let (_a, at_b) = (a.start().await, b.start().await);
    let fingerprint = b.fingerprint(&at_b).await;
    let token = b.own_token().await;
    a.add("b", &b, fingerprint, Some(&token)).await;
    a.wait_condition("b", "Established Authenticated").await;

    removed_by_the_called_side(&a, &b).await;
    re_peering_right_after_needs_a_new_token_and_works(&a, &b, fingerprint).await;
    removed_by_the_called_side(&a, &b).await;
    another_token_is_enough_to_be_let_in_again(&a, &b).await;
    what_others_do_first_is_waited_for(&b).await;
    at_b.kill();
    removed_by_the_caller_while_the_peer_is_dead(&a, &b).await;
    let at_b = b.start().await;
    let fingerprint = b.fingerprint(&at_b).await;
    re_peering_while_the_old_namespace_goes(&a, &b, fingerprint).await;
    re_peering_while_the_called_side_still_removes(&a, &b, fingerprint).await;
}

fn foreign_cluster(name: &str, spec: &Value) -> ForeignCluster {
    serde_json::from_value(json!({
        "apiVersion": "discovery.liqo.io/v1alpha1", "kind": "ForeignCluster", "metadata": { "name": name }, "spec": spec,
    }))
    .unwrap()
}

async fn remove(house: &House<'_>, name: &str) -> Duration {
    let started = Instant::now();
    house.clusters().delete(name, &DeleteParams::default()).await.unwrap();
    eventually(&format!("{name} goes"), || async {
        match house.clusters().get_opt(name).await.unwrap() {
            None => Ok(()),
            Some(cluster) => Err(format!("{:?}", cluster.finalizers())),
        }
    })
    .await;
    started.elapsed()
}

async fn whoever_is_not_the_one_that_is_meant_is_denied(a: &House<'_>, b: &House<'_>, right: Fingerprint) {
    let wrong = Fingerprint::of_certificate(b"another").to_string();
    let right = right.to_string();
    let nobody = "https://127.0.0.1:9";
    let cases = [
        (
            "mismatch",
            json!({ "foreignAuthUrl": b.url(), "authFingerprint": right, "clusterIdentity": { "clusterID": "x" } }),
            "Denied IdentityMismatch",
        ),
        (
            "pinned",
            json!({ "foreignAuthUrl": b.url(), "authFingerprint": wrong }),
            "Error CertificateNotTrusted",
        ),
        ("public", json!({ "foreignAuthUrl": b.url() }), "Error CertificateNotTrusted"),
        ("nobody", json!({ "foreignAuthUrl": nobody, "authFingerprint": right }), "Pending PeerUnreachable"),
        (
            "ourselves",
            json!({ "foreignAuthUrl": nobody, "clusterIdentity": { "clusterID": a.id(), "clusterName": "a" } }),
            "Denied OwnCluster",
        ),
    ];
    for (name, spec, expected) in &cases {
        a.clusters().create(&PostParams::default(), &foreign_cluster(name, spec)).await.unwrap();
        let condition = a.wait_condition(name, expected).await;
        println!("{name}: {}", condition.message);
    }
    for (name, ..) in &cases {
        remove(a, name).await;
    }
    assert!(b.tenant(a).await.is_none(), "nobody came in");
}

/// It is known who is there, and that is all until somebody wants something of it.
async fn a_cluster_that_was_only_found_is_not_asked(a: &House<'_>, b: &House<'_>, fingerprint: Fingerprint) {
    let domains: Api<SearchDomain> = Api::all(a.client.clone());
    let spec = SearchDomainSpec { domain: "example.org".to_owned(), autojoin: false };
    domains.create(&PostParams::default(), &SearchDomain::new("example", spec)).await.unwrap();
    let mut cluster = foreign_cluster(
        "found",
        &json!({
            "foreignAuthUrl": b.url(), "authFingerprint": fingerprint.to_string(),
            "clusterIdentity": { "clusterID": b.id(), "clusterName": "b" },
        }),
    );
    let labels = [(labels::DISCOVERY_TYPE, "WAN"), (labels::SEARCH_DOMAIN, "example")];
    cluster.metadata.labels =
        Some(labels.into_iter().map(|(key, value)| (key.to_owned(), value.to_owned())).collect());
    a.clusters().create(&PostParams::default(), &cluster).await.unwrap();
    let told = a.wait_condition("found", "None NotAsked").await;
    assert!(told.message.contains("liqoctl peer found"), "{}", told.message);
    assert!(a.tenant(b).await.is_none(), "nothing is made for a cluster that is only known");
    // Once its search domain joins what it finds, it is asked, and wants a token.
    let join = json!({ "spec": { "autojoin": true } });
    domains.patch("example", &PatchParams::default(), &Patch::Merge(join)).await.unwrap();
    a.wait_condition("found", "EmptyDenied TokenMissing").await;
    domains.delete("example", &DeleteParams::default()).await.unwrap();
    a.wait_condition("found", "None NotAsked").await;
    remove(a, "found").await;
    eventually("its namespace goes", || async {
        a.tenant(b).await.map_or(Ok(()), |tenant| Err(format!("{:?}", tenant.metadata)))
    })
    .await;
}

async fn without_a_token_it_is_denied_and_with_one_it_is_not(
    a: &House<'_>,
    b: &House<'_>,
    fingerprint: Fingerprint,
) -> tokens::Record {
    a.add("provider", b, fingerprint, None).await;
    a.wait_condition("provider", "EmptyDenied TokenMissing").await;
    tokens::keep_remote(&a.client, NAMESPACE, &b.identity.id, &Token::new("wrong")).await.unwrap();
    a.wait_condition("provider", "Denied TokenRefused").await;
    let note = NewToken { note: "for a".to_owned(), ..NewToken::default() };
    let (record, token) = tokens::create(&b.client, NAMESPACE, &note).await.unwrap();
    tokens::keep_remote(&a.client, NAMESPACE, &b.identity.id, &token).await.unwrap();
    a.wait_condition("provider", "Established Authenticated").await;
    record
}

async fn a_second_foreign_cluster_of_the_same_peer_is_denied(
    a: &House<'_>,
    b: &House<'_>,
    fingerprint: Fingerprint,
) {
    let spec = json!({ "foreignAuthUrl": b.url(), "authFingerprint": fingerprint.to_string() });
    a.clusters().create(&PostParams::default(), &foreign_cluster("again", &spec)).await.unwrap();
    a.wait_condition("again", "Denied DuplicateCluster").await;
    remove(a, "again").await;
    // The first has lost nothing.
    assert!(a.identity_secret(b).await.is_some());
    a.wait_condition("provider", "Established Authenticated").await;
}

async fn works(a: &House<'_>, b: &House<'_>) -> Result<(), String> {
    let requests: Api<ResourceRequest> = requests(a, b).await;
    requests.list(&ListParams::default()).await.map(|_| ()).map_err(|error| error.to_string())
}

async fn requests(a: &House<'_>, b: &House<'_>) -> Api<ResourceRequest> {
    let namespace = value(&a.identity_secret(b).await.unwrap(), "namespace");
    Api::namespaced(peer_client(a, b).await, &namespace)
}

async fn another_key(a: &House<'_>, b: &House<'_>, before: &Secret) -> Secret {
    let after = eventually("another certificate", || async {
        let found = a.identity_secret(b).await.ok_or("no identity")?;
        if value(&found, "certificate") == value(before, "certificate") {
            let condition = a.condition("provider", PeeringConditionType::AuthenticationStatus).await;
            return Err(format!("{condition:?}"));
        }
        Ok(found)
    })
    .await;
    assert_ne!(value(&after, "private-key"), value(before, "private-key"), "the key must be another one");
    assert_eq!(after.name_any(), before.name_any());
    eventually("it works", || works(a, b)).await;
    after
}

fn expires(secret: &Secret) -> Timestamp {
    secret.annotations()["discovery.liqo.io/certificate-expire-time"].parse().unwrap()
}

/// The token was for coming in; who is in proves its key.
async fn it_is_renewed_without_a_token(a: &House<'_>, b: &House<'_>) {
    let remote = format!("remote-token-{}", b.id());
    a.secrets(NAMESPACE).delete(&remote, &DeleteParams::default()).await.unwrap();
    let before = a.identity_secret(b).await.unwrap();
    let left = expires(&before).duration_since(Timestamp::now());
    assert!(left < SignedDuration::from_mins(16), "{left}");
    eventually("it works", || works(a, b)).await;
    // A minute before its end.
    a.set_clock(left - SignedDuration::from_mins(1));
    another_key(a, b, &before).await;
    a.set_clock(SignedDuration::ZERO);
    a.wait_condition("provider", "Established Authenticated").await;
}

async fn it_is_rotated_when_somebody_asks(a: &House<'_>, b: &House<'_>) {
    let before = a.identity_secret(b).await.unwrap();
    let rotate = json!({ "metadata": { "annotations": { "authentication.liqo.io/rotate": "now" } } });
    a.clusters().patch("provider", &PatchParams::default(), &Patch::Merge(rotate)).await.unwrap();
    another_key(a, b, &before).await;
    eventually("the annotation goes", || async {
        let cluster = a.clusters().get("provider").await.unwrap();
        let left = cluster.annotations().get("authentication.liqo.io/rotate").cloned();
        left.map_or(Ok(()), Err)
    })
    .await;
}

/// The certificate expired while nobody ran.
async fn it_recovers_after_a_missed_renewal(a: &House<'_>, b: &House<'_>) -> Process {
    let before = a.identity_secret(b).await.unwrap();
    a.set_clock(expires(&before).duration_since(Timestamp::now()) + SignedDuration::from_mins(10));
    let process = a.start().await;
    another_key(a, b, &before).await;
    a.set_clock(SignedDuration::ZERO);
    a.wait_condition("provider", "Established Authenticated").await;
    process
}

async fn what_somebody_changes_is_put_right(a: &House<'_>, b: &House<'_>) {
    let namespace = b.tenant(a).await.unwrap().name_any();
    let roles: Api<Role> = Api::namespaced(b.client.clone(), &namespace);
    let right = roles.get("liqo-peer").await.unwrap().rules;
    let more = json!({ "rules": [{ "apiGroups": ["*"], "resources": ["*"], "verbs": ["*"] }] });
    roles.patch("liqo-peer", &PatchParams::default(), &Patch::Merge(more)).await.unwrap();
    eventually("the role is put right", || async {
        let rules = roles.get("liqo-peer").await.unwrap().rules;
        if rules == right { Ok(()) } else { Err(format!("{rules:?}")) }
    })
    .await;
}

async fn a_revoked_peer_is_out_within_seconds(a: &House<'_>, b: &House<'_>, token: &tokens::Record) {
    let listed = tokens::list(&b.client, NAMESPACE).await.unwrap();
    let used = listed.iter().find(|record| record.id == token.id).unwrap();
    assert_eq!((used.used_by.as_ref(), used.note.as_str()), (Some(&a.identity.id), "for a"));
    eventually("it works", || works(a, b)).await;
    let requests = requests(a, b).await;
    let started = Instant::now();
    tokens::revoke(&b.client, NAMESPACE, &token.id).await.unwrap();
    eventually("its certificate does nothing", || async {
        match requests.list(&ListParams::default()).await {
            Err(kube::Error::Api(status)) if status.code == 403 => Ok(()),
            other => Err(format!("{other:?}")),
        }
    })
    .await;
    println!("a revoked peer is out after {} ms", started.elapsed().as_millis());
    assert!(started.elapsed() < Duration::from_secs(5));
    let part = PeeringConditionType::ProcessForeignClusterStatus;
    b.wait_part("a", part, "Error PeerPutOut").await;
    // Its key alone does not help it any more.
    let rotate = json!({ "metadata": { "annotations": { "authentication.liqo.io/rotate": "again" } } });
    a.clusters().patch("provider", &PatchParams::default(), &Patch::Merge(rotate)).await.unwrap();
    a.wait_condition("provider", "Established RenewalFailing").await;
}

async fn a_new_token_lets_it_in_again(a: &House<'_>, b: &House<'_>) {
    let (_, token) = tokens::create(&b.client, NAMESPACE, &NewToken::default()).await.unwrap();
    tokens::keep_remote(&a.client, NAMESPACE, &b.identity.id, &token).await.unwrap();
    a.wait_condition("provider", "Established Authenticated").await;
    eventually("it works again", || works(a, b)).await;
    eventually("nothing is told any more", || async {
        let left = b.condition("a", PeeringConditionType::ProcessForeignClusterStatus).await;
        left.map_or(Ok(()), |condition| Err(condition.message))
    })
    .await;
}

async fn another_certificate_is_shown_without_a_restart(b: &House<'_>, process: &Process, old: Fingerprint) {
    b.secrets(NAMESPACE).delete("liqo-auth-tls", &DeleteParams::default()).await.unwrap();
    let mut shown = process.room.fingerprint();
    let changed = shown.wait_for(|shown| shown.is_some_and(|shown| shown != old));
    tokio::time::timeout(Duration::from_secs(30), changed).await.expect("another certificate").unwrap();
    let new = b.fingerprint(process).await;
    assert_ne!(new, old);
}

/// Deleting the ForeignCluster at the called side puts the peer out, for good.
async fn removed_by_the_called_side(a: &House<'_>, b: &House<'_>) {
    eventually("it works", || works(a, b)).await;
    let requests = requests(a, b).await;
    let started = Instant::now();
    b.clusters().delete("a", &DeleteParams::default()).await.unwrap();
    eventually("its certificate does nothing", || async {
        match requests.list(&ListParams::default()).await {
            Err(kube::Error::Api(status)) if status.code == 403 => Ok(()),
            other => Err(format!("{other:?}")),
        }
    })
    .await;
    println!("a removed peer is out after {} ms", started.elapsed().as_millis());
    assert!(started.elapsed() < Duration::from_secs(5));
    eventually("everything of it goes", || async {
        let cluster = b.clusters().get_opt("a").await.unwrap();
        let tenant = b.tenant(a).await;
        if cluster.is_none() && tenant.is_none() {
            Ok(())
        } else {
            Err(format!("{:?} {:?}", cluster.map(|it| it.metadata), tenant.map(|it| it.metadata)))
        }
    })
    .await;
}

/// Without removing anything at the caller, whose certificate is valid all the time.
async fn another_token_is_enough_to_be_let_in_again(a: &House<'_>, b: &House<'_>) {
    let (_, token) = tokens::create(&b.client, NAMESPACE, &NewToken::default()).await.unwrap();
    tokens::keep_remote(&a.client, NAMESPACE, &b.identity.id, &token).await.unwrap();
    eventually("it works", || works(a, b)).await;
    a.wait_condition("b", "Established Authenticated").await;
}

async fn re_peering_right_after_needs_a_new_token_and_works(
    a: &House<'_>,
    b: &House<'_>,
    fingerprint: Fingerprint,
) {
    remove(a, "b").await;
    // The old token, which is the one for all: whoever removed the cluster meant it.
    a.add("b", b, fingerprint, Some(&b.own_token().await)).await;
    let condition = a.wait_condition("b", "Denied RefusedByPeer").await;
    assert!(condition.message.contains("was removed here"), "{}", condition.message);
    let (_, token) = tokens::create(&b.client, NAMESPACE, &NewToken::default()).await.unwrap();
    tokens::keep_remote(&a.client, NAMESPACE, &b.identity.id, &token).await.unwrap();
    a.wait_condition("b", "Established Authenticated").await;
    eventually("it works", || works(a, b)).await;
}

/// Another part of the peering is at work: it is waited for, but not for ever.
async fn what_others_do_first_is_waited_for(b: &House<'_>) {
    let spec = json!({ "clusterIdentity": { "clusterID": "third", "clusterName": "third" } });
    for (name, clock) in [("patient", false), ("bounded", true)] {
        let mut cluster = foreign_cluster(name, &spec);
        cluster.metadata.finalizers = Some(vec!["peering.liqo.io/test".to_owned()]);
        b.clusters().create(&PostParams::default(), &cluster).await.unwrap();
        b.wait_condition(name, "None NotCalled").await;
        b.clusters().delete(name, &DeleteParams::default()).await.unwrap();
        let finalizers = || async { b.clusters().get(name).await.unwrap().finalizers().to_vec() };
        assert_eq!(finalizers().await, ["peering.liqo.io/test", "authentication.liqo.io/identity"]);
        if clock {
            b.set_clock(SignedDuration::from_secs(61));
            eventually("ours goes after a minute", || async {
                let left = finalizers().await;
                if left == ["peering.liqo.io/test"] { Ok(()) } else { Err(format!("{left:?}")) }
            })
            .await;
            b.set_clock(SignedDuration::ZERO);
        }
        let others_done = json!({ "metadata": { "finalizers": finalizers().await.into_iter()
            .filter(|finalizer| finalizer != "peering.liqo.io/test").collect::<Vec<_>>() } });
        b.clusters().patch(name, &PatchParams::default(), &Patch::Merge(others_done)).await.unwrap();
        eventually("it goes at once", || async {
            let left = b.clusters().get_opt(name).await.unwrap();
            left.map_or(Ok(()), |cluster| Err(format!("{:?}", cluster.finalizers())))
        })
        .await;
    }
}

async fn removed_by_the_caller_while_the_peer_is_dead(a: &House<'_>, b: &House<'_>) {
    let took = remove(a, "b").await;
    println!("a dead peer is removed after {} ms", took.as_millis());
    assert!(took < Duration::from_secs(10), "{took:?}");
    assert!(a.identity_secret(b).await.is_none());
    assert!(a.secrets(NAMESPACE).get_opt(&format!("remote-token-{}", b.id())).await.unwrap().is_none());
}

/// Without waiting for anything.
async fn re_peering_while_the_old_namespace_goes(a: &House<'_>, b: &House<'_>, fingerprint: Fingerprint) {
    for round in 0..2 {
        let (_, token) = tokens::create(&b.client, NAMESPACE, &NewToken::default()).await.unwrap();
        let started = Instant::now();
        a.add("b", b, fingerprint, Some(&token)).await;
        a.wait_condition("b", "Established Authenticated").await;
        eventually("it works", || works(a, b)).await;
        println!("peered again after {} ms", started.elapsed().as_millis());
        if round == 0 {
            remove(a, "b").await;
        }
    }
}

/// How long a caller waits after the last of the earlier peering is gone at the called side.
const AFTER_THE_LAST: Duration = Duration::from_secs(2);

/// Not longer than it takes the called side to remove what there was.
async fn re_peering_while_the_called_side_still_removes(
    a: &House<'_>,
    b: &House<'_>,
    fingerprint: Fingerprint,
) {
    for _ in 0..3 {
        let old = b.tenant(a).await.unwrap();
        let (_, token) = tokens::create(&b.client, NAMESPACE, &NewToken::default()).await.unwrap();
        remove(a, "b").await;
        // What keeps the old namespace for a while, as contents do that others look after.
        hold(b, &old.name_any(), true).await;
        b.clusters().delete("a", &DeleteParams::default()).await.unwrap();
        // The called side has heard of it.
        eventually("the old namespace is being removed", || async {
            let tenant = b.tenant(a).await;
            let removed = tenant.as_ref().is_none_or(|it| it.metadata.deletion_timestamp.is_some());
            if removed { Ok(()) } else { Err(format!("{tenant:?}")) }
        })
        .await;
        a.add("b", b, fingerprint, Some(&token)).await;
        let condition = a.wait_condition("b", "Pending PeerBusy").await;
        assert!(condition.message.contains("is just being removed"), "{}", condition.message);
        hold(b, &old.name_any(), false).await;
        eventually("the old namespace goes", || async {
            let now = b.tenant(a).await;
            if now.as_ref().is_some_and(|now| now.uid() == old.uid()) {
                Err(format!("{now:?}"))
            } else {
                Ok(())
            }
        })
        .await;
        let gone = Instant::now();
        a.wait_condition("b", "Established Authenticated").await;
        println!("peered again {} ms after the last of the earlier peering", gone.elapsed().as_millis());
        assert!(gone.elapsed() < AFTER_THE_LAST, "{:?}", gone.elapsed());
    }
}

/// Puts something into a namespace that does not go, or lets it go.
async fn hold(house: &House<'_>, namespace: &str, held: bool) {
    let maps: Api<ConfigMap> = Api::namespaced(house.client.clone(), namespace);
    let finalizers = if held { json!(["example.org/held"]) } else { Value::Null };
    let metadata = json!({ "name": "held", "finalizers": finalizers });
    if held {
        let map = serde_json::from_value(json!({ "metadata": metadata })).unwrap();
        maps.create(&PostParams::default(), &map).await.unwrap();
    } else {
        let patch = json!({ "metadata": metadata });
        maps.patch("held", &PatchParams::default(), &Patch::Merge(patch)).await.unwrap();
    }
}
