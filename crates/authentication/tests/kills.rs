//! Either side killed after each single write: whoever comes after it finishes the same work, on real API servers.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that cannot go on has failed"
)]

#[path = "support/wire.rs"]
mod wire;
#[path = "support/world.rs"]
mod world;

use std::sync::Arc;

use k8s_openapi::api::rbac::v1::{Role, RoleBinding};
use kube::api::DeleteParams;
use kube::{Api, ResourceExt};
use liqo_api::annotations;
use liqo_api::foreign_cluster::PeeringConditionStatus;
use liqo_authentication::tokens::{self, NewToken, Token};
use liqo_identity::{Identity, Wanted};
use liqo_sandbox::{ClusterSpec, TestSandbox};
use serde_json::{Value, json};
use wire::{csr, exchange, post_text, request};
use world::{Fuse, House, NAMESPACE, eventually, wait_root_ca};

const HERE: std::net::IpAddr = std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST);
/// More writes than any of this takes; a test that reaches it never ends by itself.
const TOO_MANY: isize = 40;

fn identity(id: &str) -> Arc<Identity> {
    let name = id.parse().unwrap();
    Arc::new(Identity::generate(&Wanted { id: Some(id.parse().unwrap()), name: Some(name) }).unwrap())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_caller_killed_after_each_write_comes_to_the_same_end() {
    let sandbox = TestSandbox::start([ClusterSpec::hollow("b", 1), ClusterSpec::api_only("a")]).await;
    let (a, mut b) = (House::new(&sandbox, "a").await, House::new(&sandbox, "b").await);
    wait_root_ca(&b.client).await;
    // What the house needs is there, so that the writes are those about the peer.
    let first = a.start().await;
    a.own_token().await;
    a.fingerprint(&first).await;
    first.kill();
    let mut undisturbed = None;
    for writes in (1..TOO_MANY).rev().take(1).chain(1..TOO_MANY) {
        let name = format!("b-{writes}");
        b.identity = identity(&name);
        let at_b = b.start().await;
        let fingerprint = b.fingerprint(&at_b).await;
        let (_, token) = tokens::create(&b.client, NAMESPACE, &NewToken::default()).await.unwrap();
        a.add(&name, &b, fingerprint, Some(&token)).await;
        let fuse = Fuse::after(writes);
        let process = a.start_with(fuse.client(&a).await).await;
        tokio::select! {
            () = fuse.blown() => {}
            _ = a.wait_condition(&name, "Established Authenticated") => {}
        }
        let blown = fuse.is_blown();
        process.kill();
        let process = a.start().await;
        a.wait_condition(&name, "Established Authenticated").await;
        let end = caller_state(&a, &b, &name).await;
        let expected = &*undisturbed.get_or_insert(end);
        // The condition may be there since before it was killed, with something still to do.
        eventually(&format!("the same end, killed after {writes} writes"), || async {
            let end = caller_state(&a, &b, &name).await;
            if end == *expected { Ok(()) } else { Err(format!("{end:#}\ninstead of {expected:#}")) }
        })
        .await;
        process.kill();
        at_b.kill();
        if !blown && writes < TOO_MANY - 1 {
            println!("the caller makes {} writes", writes - 1);
            assert!(writes > 5, "{writes}");
            leaving(&a, &mut b).await;
            return;
        }
    }
    panic!("it never came to an end");
}

/// The ForeignCluster of a peer that we called is deleted, and the process is killed after each write of that.
async fn leaving(a: &House<'_>, b: &mut House<'_>) {
    for writes in 1..TOO_MANY {
        let name = format!("l-{writes}");
        b.identity = identity(&name);
        let at_b = b.start().await;
        let fingerprint = b.fingerprint(&at_b).await;
        let (_, token) = tokens::create(&b.client, NAMESPACE, &NewToken::default()).await.unwrap();
        a.add(&name, b, fingerprint, Some(&token)).await;
        let process = a.start().await;
        a.wait_condition(&name, "Established Authenticated").await;
        process.kill();
        at_b.kill();
        let fuse = Fuse::after(writes);
        let process = a.start_with(fuse.client(a).await).await;
        a.clusters().delete(&name, &DeleteParams::default()).await.unwrap();
        tokio::select! {
            () = fuse.blown() => {}
            () = left(a, b, &name) => {}
        }
        let blown = fuse.is_blown();
        process.kill();
        let process = a.start().await;
        left(a, b, &name).await;
        process.kill();
        if !blown {
            println!("leaving takes {} writes", writes - 1);
            assert!(writes > 3, "{writes}");
            return;
        }
    }
    panic!("it never came to an end");
}

async fn left(a: &House<'_>, b: &House<'_>, name: &str) {
    eventually(&format!("{name} goes"), || async {
        let cluster = a.clusters().get_opt(name).await.unwrap();
        let token = a.secrets(NAMESPACE).get_opt(&format!("remote-token-{}", b.id())).await.unwrap();
        let identity = a.identity_secret(b).await;
        let tenant = a.tenant(b).await;
        let leaving = tenant.as_ref().is_none_or(|tenant| tenant.metadata.deletion_timestamp.is_some());
        if cluster.is_none() && token.is_none() && identity.is_none() && leaving {
            Ok(())
        } else {
            Err(format!("{:?} {leaving}", cluster.map(|cluster| cluster.metadata)))
        }
    })
    .await;
}

/// What there is of a peer at the caller, without what differs from run to run.
async fn caller_state(a: &House<'_>, b: &House<'_>, name: &str) -> Value {
    let cluster = a.clusters().get(name).await.unwrap();
    let tenant = a.tenant(b).await.unwrap();
    let secret = a.identity_secret(b).await.unwrap();
    let status = cluster.status.clone().unwrap();
    let conditions: Vec<_> = status
        .peering_conditions
        .iter()
        .map(|it| format!("{:?} {:?} {}", it.type_, it.status, it.reason))
        .collect();
    let state = json!({
        "spec": cluster.spec,
        "labels": cluster.labels(),
        "finalizers": cluster.finalizers(),
        "tenants": status.tenant_namespace,
        "conditions": conditions,
        "namespace": [tenant.labels().clone(), tenant.annotations().clone()],
        "identity": [secret.namespace().unwrap(), secret.name_any()],
        "identity labels": secret.labels(),
        "identity keys": secret.data.as_ref().unwrap().keys().collect::<Vec<_>>(),
    });
    let key = &tenant.annotations()[annotations::PEER_PUBLIC_KEY];
    neutral(
        &state,
        &[
            (&tenant.name_any(), "TENANT"),
            (&secret.name_any(), "IDENTITY"),
            (key, "KEY"),
            (&cluster.spec.auth_fingerprint.clone().unwrap(), "FINGERPRINT"),
            (b.id(), "PEER"),
        ],
    )
}

fn neutral(state: &Value, names: &[(&str, &str)]) -> Value {
    let text = names.iter().fold(state.to_string(), |text, (name, word)| text.replace(name, word));
    serde_json::from_str(&text).unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_called_killed_after_each_write_comes_to_the_same_end() {
    let sandbox = TestSandbox::start([ClusterSpec::hollow("b", 1)]).await;
    let b = House::new(&sandbox, "b").await;
    wait_root_ca(&b.client).await;
    let first = b.start().await;
    b.own_token().await;
    b.fingerprint(&first).await;
    first.kill();
    admitting(&b).await;
    putting_out(&b).await;
}

/// A caller that tries until it is served, each time with another key, as ours does; or with the same, as Liqo's does.
async fn call(b: &House<'_>, caller: &Identity, token: &Token, same: bool) {
    let (first, _) = csr("liqo.io", caller.id.as_str(), &[]);
    eventually(&format!("{} gets a certificate", caller.id), || async {
        let csr = if same { first.clone() } else { csr("liqo.io", caller.id.as_str(), &[]).0 };
        let text = post_text(&request(caller, b.id(), token.reveal(), &csr).to_string());
        let answering = exchange(HERE, b.address, &text);
        let answer = tokio::time::timeout(std::time::Duration::from_secs(20), answering).await;
        match answer.map_err(|_| "no answer".to_owned())?.map_err(|error| error.to_string())? {
            answer if answer.status == 202 => Ok(()),
            // It was given, and the answer was lost.
            answer if same && answer.body.contains("already exists") => Ok(()),
            answer => Err(format!("{} {}", answer.status, answer.body)),
        }
    })
    .await;
}

async fn admitting(b: &House<'_>) {
    let mut undisturbed = None;
    for writes in (1..TOO_MANY).rev().take(1).chain(1..TOO_MANY) {
        let (record, token) = tokens::create(&b.client, NAMESPACE, &NewToken::default()).await.unwrap();
        let caller = identity(&format!("c{writes}"));
        let fuse = Fuse::after(writes);
        let process = b.start_with(fuse.client(b).await).await;
        tokio::select! {
            () = fuse.blown() => {}
            () = async {
                call(b, &caller, &token, false).await;
                b.wait_condition(caller.name.as_str(), "None NotCalled").await;
            } => {}
        }
        let blown = fuse.is_blown();
        process.kill();
        let process = b.start().await;
        b.fingerprint(&process).await;
        call(b, &caller, &token, writes % 2 == 0).await;
        b.wait_condition(caller.name.as_str(), "None NotCalled").await;
        let end = called_state(b, &caller, &record.id).await;
        let expected = &*undisturbed.get_or_insert(end);
        eventually(&format!("the same end, killed after {writes} writes"), || async {
            let end = called_state(b, &caller, &record.id).await;
            if end == *expected { Ok(()) } else { Err(format!("{end:#}\ninstead of {expected:#}")) }
        })
        .await;
        process.kill();
        if !blown && writes < TOO_MANY - 1 {
            println!("the called makes {} writes", writes - 1);
            assert!(writes > 8, "{writes}");
            return;
        }
    }
    panic!("it never came to an end");
}

async fn called_state(b: &House<'_>, caller: &Identity, token: &str) -> Value {
    let cluster = b.clusters().get(caller.name.as_str()).await.unwrap();
    let tenant = tenant(b, caller).await.unwrap();
    let namespace = tenant.name_any();
    let roles: Api<Role> = Api::namespaced(b.client.clone(), &namespace);
    let bindings: Api<RoleBinding> = Api::namespaced(b.client.clone(), &namespace);
    let records = tokens::list(&b.client, NAMESPACE).await.unwrap();
    let record = records.iter().find(|record| record.id == token).unwrap();
    let status = cluster.status.clone().unwrap();
    let statuses: Vec<PeeringConditionStatus> =
        status.peering_conditions.iter().map(|it| it.status).collect();
    let certificate = b.secrets(&namespace).get("liqo-remote-certificate").await.unwrap();
    let state = json!({
        "spec": cluster.spec,
        "labels": cluster.labels(),
        "finalizers": cluster.finalizers(),
        "tenants": status.tenant_namespace,
        "statuses": statuses,
        "namespace": [tenant.labels().clone(), tenant.annotations().clone()],
        "role": roles.get("liqo-peer").await.unwrap().rules,
        "binding": bindings.get("liqo-peer").await.unwrap().subjects,
        "token": record.used_by.as_ref().map(ToString::to_string),
        "certificate": certificate.data.unwrap().keys().collect::<Vec<_>>(),
    });
    let key = wire::public_key(caller);
    neutral(&state, &[(&namespace, "TENANT"), (&key, "KEY"), (token, "TOKEN"), (caller.id.as_str(), "PEER")])
}

async fn tenant(b: &House<'_>, caller: &Identity) -> Option<k8s_openapi::api::core::v1::Namespace> {
    let namespaces: Api<k8s_openapi::api::core::v1::Namespace> = Api::all(b.client.clone());
    let selector =
        format!("discovery.liqo.io/tenant-namespace=true,discovery.liqo.io/cluster-id={}", caller.id);
    let found = namespaces.list(&kube::api::ListParams::default().labels(&selector)).await.unwrap().items;
    assert!(found.len() <= 1);
    found.into_iter().next()
}

/// The ForeignCluster of an admitted peer is deleted, and the process is killed after each write of that.
async fn putting_out(b: &House<'_>) {
    for writes in 1..TOO_MANY {
        let (record, token) = tokens::create(&b.client, NAMESPACE, &NewToken::default()).await.unwrap();
        let caller = identity(&format!("d{writes}"));
        let process = b.start().await;
        b.fingerprint(&process).await;
        call(b, &caller, &token, false).await;
        b.wait_condition(caller.name.as_str(), "None NotCalled").await;
        process.kill();
        let fuse = Fuse::after(writes);
        let process = b.start_with(fuse.client(b).await).await;
        b.clusters().delete(caller.name.as_str(), &DeleteParams::default()).await.unwrap();
        tokio::select! {
            () = fuse.blown() => {}
            () = gone(b, &caller, &record.id) => {}
        }
        let blown = fuse.is_blown();
        process.kill();
        let process = b.start().await;
        gone(b, &caller, &record.id).await;
        process.kill();
        if !blown {
            println!("putting out takes {} writes", writes - 1);
            assert!(writes > 4, "{writes}");
            return;
        }
    }
    panic!("it never came to an end");
}

async fn gone(b: &House<'_>, caller: &Identity, token: &str) {
    eventually(&format!("{} goes", caller.id), || async {
        let cluster = b.clusters().get_opt(caller.name.as_str()).await.unwrap();
        let tenant = tenant(b, caller).await;
        let records = tokens::list(&b.client, NAMESPACE).await.unwrap();
        let revoked = records.iter().any(|record| record.id == token && record.revoked.is_some());
        // Kubernetes takes its time for namespaces.
        let leaving = tenant.as_ref().is_none_or(|tenant| tenant.metadata.deletion_timestamp.is_some());
        if cluster.is_none() && leaving && revoked {
            Ok(())
        } else {
            Err(format!("{:?} {leaving} {revoked}", cluster.map(|cluster| cluster.metadata)))
        }
    })
    .await;
}
