//! Two clusters that get to know each other, on real API servers.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that cannot go on has failed"
)]

#[path = "support/authority.rs"]
mod authority;
#[path = "support/log.rs"]
mod log;
#[path = "support/sweep.rs"]
mod sweep;
#[path = "support/vouched.rs"]
mod vouched;
#[path = "support/world.rs"]
mod world;

use k8s_openapi::api::certificates::v1::CertificateSigningRequest;
use k8s_openapi::api::core::v1::Namespace;
use k8s_openapi::api::events::v1::Event;
use k8s_openapi::api::rbac::v1::{Role, RoleBinding};
use kube::api::ListParams;
use kube::{Api, ResourceExt};
use liqo_api::ForeignCluster;
use liqo_api::foreign_cluster::DiscoveryType;
use liqo_authentication::client::{CallError, Trust, identify};
use liqo_sandbox::{ClusterSpec, TestSandbox};
use log::Log;
use tokio::time::Instant;
use world::{Fuse, House, NAMESPACE, value, wait_root_ca};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cluster_gets_an_identity_at_another_and_no_more_rights_than_a_peer_has() {
    let log = Log::start();
    let callers = ["a", "c"].map(ClusterSpec::api_only);
    let sandbox = TestSandbox::start([ClusterSpec::hollow("b", 1)].into_iter().chain(callers)).await;
    let (a, b) = (House::new(&sandbox, "a").await, House::new(&sandbox, "b").await);
    let c = House::new(&sandbox, "c").await;
    wait_root_ca(&b.client).await;
    let (at_b, at_a) = (b.start().await, a.start().await);
    let fingerprint = b.fingerprint(&at_b).await;
    let token = b.own_token().await;

    it_is_asked_who_it_is(&b, fingerprint).await;
    let started = Instant::now();
    a.add("provider", &b, fingerprint, Some(&token)).await;
    a.wait_condition("provider", "Established Authenticated").await;
    println!("full exchange: {} ms", started.elapsed().as_millis());

    the_caller_has_what_liqo_would_have(&a, &b).await;
    the_called_has_what_it_should(&a, &b).await;
    events_tell_each_step(&a, &b).await;
    sweep::only_the_rights_of_a_peer(&a, &b).await;
    the_room_has_no_other_rights_than_it_asks_for(&b).await;
    at_a.kill();
    at_b.kill();
    restarts_write_nothing(&a, &b).await;
    vouched::a_peer_is_known_by_its_authority_however_often_its_certificate_changes(&b, &c, &token).await;
    let secret = a.identity_secret(&b).await.unwrap();
    nothing_secret_was_logged(&log, &[token.reveal(), &value(&secret, "private-key")]);
}

async fn it_is_asked_who_it_is(b: &House<'_>, fingerprint: liqo_api::Fingerprint) {
    let found = identify(&b.url(), &Trust::Fingerprint(fingerprint)).await.unwrap();
    assert_eq!(found.identity.id, b.identity.id);
    assert_eq!(found.public_key, Some(b.identity.public_key()));
    assert_eq!(found.fingerprint, Some(fingerprint));
    let other = liqo_api::Fingerprint::of_certificate(b"another");
    let refused = identify(&b.url(), &Trust::Fingerprint(other)).await.unwrap_err();
    assert!(
        matches!(&refused, CallError::Untrusted { reason, .. } if reason.contains("generate-add-command")),
        "{refused}"
    );
    let public = identify(&b.url(), &Trust::Authorities(Default::default())).await.unwrap_err();
    assert!(matches!(public, CallError::Untrusted { .. }), "{public}");
    assert!(identify(&b.url(), &Trust::Anyone).await.is_ok());
}

async fn the_caller_has_what_liqo_would_have(a: &House<'_>, b: &House<'_>) {
    let cluster = a.clusters().get("provider").await.unwrap();
    assert_eq!(cluster.identity().unwrap().unwrap().id, b.identity.id);
    assert_eq!(cluster.labels()["discovery.liqo.io/cluster-id"], b.id());
    let tenants = cluster.status.unwrap().tenant_namespace;
    let secret = a.identity_secret(b).await.unwrap();
    assert_eq!(secret.namespace(), tenants.local);
    assert_eq!(Some(value(&secret, "namespace")), tenants.remote);
    let keys: Vec<_> = secret.data.as_ref().unwrap().keys().map(String::as_str).collect();
    assert_eq!(keys, ["apiServerCa", "apiServerUrl", "certificate", "csr", "namespace", "private-key"]);
    assert!(secret.name_any().starts_with("liqo-identity-b-"));
    let expires = &secret.annotations()["discovery.liqo.io/certificate-expire-time"];
    let left = expires.parse::<jiff::Timestamp>().unwrap().duration_since(jiff::Timestamp::now());
    assert!(left.as_hours() > 364 * 24, "{expires}");
    let tenant = a.tenant(b).await.unwrap();
    assert_eq!(tenant.labels()["pod-security.kubernetes.io/enforce"], "restricted");
}

async fn the_called_has_what_it_should(a: &House<'_>, b: &House<'_>) {
    let tenant: Namespace = b.tenant(a).await.unwrap();
    let namespace = tenant.name_any();
    assert!(namespace.starts_with("liqo-tenant-a-"), "{namespace}");
    assert_eq!(tenant.labels()["pod-security.kubernetes.io/enforce"], "restricted");
    assert_eq!(tenant.annotations()["authentication.liqo.io/admitted-by"], "own");
    let cluster: ForeignCluster = b.clusters().get("a").await.unwrap();
    assert_eq!(cluster.discovery_type(), DiscoveryType::IncomingPeering);
    assert_eq!(cluster.identity().unwrap().unwrap().id, a.identity.id);
    let bindings: Api<RoleBinding> = Api::namespaced(b.client.clone(), &namespace);
    let subjects = bindings.get("liqo-peer").await.unwrap().subjects.unwrap();
    assert_eq!(subjects.iter().map(|subject| subject.name.as_str()).collect::<Vec<_>>(), [a.id()]);
    let roles: Api<Role> = Api::namespaced(b.client.clone(), &namespace);
    assert!(roles.get("liqo-peer").await.is_ok());
    let requests: Api<CertificateSigningRequest> = Api::all(b.client.clone());
    let chosen = ListParams::default().labels("discovery.liqo.io/remote-tenant-csr=true");
    let requests = requests.list(&chosen).await.unwrap().items;
    assert_eq!(requests.len(), 1);
    assert_eq!(requests[0].spec.signer_name, "kubernetes.io/kube-apiserver-client");
    assert!(b.secrets(&namespace).get("liqo-remote-certificate").await.is_ok());
    b.wait_condition("a", "None NotCalled").await;
}

async fn events_tell_each_step(a: &House<'_>, b: &House<'_>) {
    for (house, name, reason) in [(a, "provider", "Authenticated"), (b, "a", "PeerAdmitted")] {
        let events: Api<Event> = Api::namespaced(house.client.clone(), "default");
        world::eventually(reason, || async {
            let found = events.list(&ListParams::default()).await.unwrap().items;
            let about = |event: &Event| {
                event.regarding.as_ref().and_then(|object| object.name.as_deref()) == Some(name)
                    && event.reason.as_deref() == Some(reason)
            };
            if found.iter().any(about) { Ok(()) } else { Err(format!("{found:?}")) }
        })
        .await;
    }
}

/// All these tests run with the rights that the room asks for; this one proves that those are the only ones.
async fn the_room_has_no_other_rights_than_it_asks_for(b: &House<'_>) {
    let pods: Api<k8s_openapi::api::core::v1::Pod> = Api::all(b.room_client().await);
    let refused = pods.list(&ListParams::default()).await.unwrap_err();
    assert!(matches!(&refused, kube::Error::Api(status) if status.code == 403), "{refused}");
}

/// A restart of both sides, when nothing changed, writes nothing.
async fn restarts_write_nothing(a: &House<'_>, b: &House<'_>) {
    const MANY: isize = 1_000_000;
    for (house, peer) in [(a, "provider"), (b, "a")] {
        let fuse = Fuse::after(MANY);
        let process = house.start_with(fuse.client(house).await).await;
        house.fingerprint(&process).await;
        // Once it has dealt with something new, it has dealt with everything that was there.
        let marker: ForeignCluster = serde_json::from_value(serde_json::json!({
            "apiVersion": "discovery.liqo.io/v1alpha1", "kind": "ForeignCluster", "metadata": { "name": "marker" },
            "spec": { "clusterIdentity": { "clusterID": "marker", "clusterName": "marker" } },
        }))
        .unwrap();
        house.clusters().create(&Default::default(), &marker).await.unwrap();
        house.wait_condition("marker", "None NotCalled").await;
        let marker = "/apis/discovery.liqo.io/v1alpha1/foreignclusters/marker";
        let expected = [marker.to_owned(), format!("{marker}/status")];
        assert_eq!(fuse.written(), expected, "the marker's finalizer and status, and nothing about {peer}");
    }
}

fn nothing_secret_was_logged(log: &Log, secrets: &[&str]) {
    let text = log.text();
    assert!(text.contains("gave a certificate"), "nothing was logged at all");
    for secret in secrets {
        for line in secret.lines().filter(|line| line.len() > 30 && !line.starts_with("-----")) {
            assert!(!text.contains(line), "a secret is in the log");
        }
    }
    let _ = NAMESPACE;
}
