//! A cluster whose authentication service has certificates of a company's own authority.

use kube::api::{Patch, PatchParams, PostParams};
use kube::{Api, ResourceExt};
use liqo_api::foreign_cluster::{ForeignIdentity, PeeringConditionType};
use liqo_api::{Fingerprint, ForeignCluster, ForeignClusterSpec, annotations};
use liqo_authentication::client::{Trust, identify};
use liqo_authentication::tokens::{self, Token};
use prometheus_client::registry::Registry;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use serde_json::{Value, json};

use crate::authority::{Authority, Leaf};
use crate::world::{House, NAMESPACE, Process, eventually, value};

const PEER: &str = "provider";

/// The caller knows nothing of `b` but its authority, and is known by nobody.
pub(crate) async fn a_peer_is_known_by_its_authority_however_often_its_certificate_changes(
    b: &House<'_>,
    caller: &House<'_>,
    token: &Token,
) {
    let (at_b, _at_caller) = (b.start().await, caller.start().await);
    b.fingerprint(&at_b).await;
    let (ours, other) = (Authority::new("ours"), Authority::new("other"));
    show(b, &ours.leaf("127.0.0.1")).await;

    tokens::keep_remote(&caller.client, NAMESPACE, &b.identity.id, token).await.unwrap();
    add(caller, b, "-----BEGIN CERTIFICATE-----\nx\n-----END CERTIFICATE-----").await;
    caller.wait_condition(PEER, "Error InvalidCaBundle").await;
    vouch(caller, &other.pem).await;
    wait_untrusted(caller, "none of the authorities in spec.authCaBundle vouches").await;

    show(b, &ours.leaf("auth.example.com")).await;
    vouch(caller, &ours.pem).await;
    wait_untrusted(caller, "its certificate is for another host").await;
    assert_eq!(asked(&at_b), 0, "whoever is not trusted is shown no token");
    assert!(caller.identity_secret(b).await.is_none() && b.tenant(caller).await.is_none());

    show(b, &ours.deputy("deputy").leaf("127.0.0.1")).await;
    vouch(caller, &format!("{}{}", other.pem, ours.pem)).await;
    caller.wait_condition(PEER, "Established Authenticated").await;
    another_certificate_of_the_same_authority_is_as_good(b, caller, &ours).await;
}

async fn another_certificate_of_the_same_authority_is_as_good(
    b: &House<'_>,
    caller: &House<'_>,
    ours: &Authority,
) {
    let certificate = async || value(&caller.identity_secret(b).await.unwrap(), "certificate");
    let before = certificate().await;
    let leaf = ours.leaf("127.0.0.1");
    show(b, &leaf).await;
    change(caller, &json!({ "metadata": { "annotations": { annotations::ROTATE: "now" } } })).await;
    eventually("a renewed identity", || async {
        let cluster = caller.clusters().get(PEER).await.map_err(|error| error.to_string())?;
        let done = !cluster.annotations().contains_key(annotations::ROTATE) && certificate().await != before;
        done.then_some(()).ok_or_else(|| format!("{:?}", cluster.status))
    })
    .await;
    caller.wait_condition(PEER, "Established Authenticated").await;
    // It is over in less than a year, and not ours to replace, though the mark of ours is still on the Secret.
    let kept = b.secrets(NAMESPACE).get("liqo-auth-tls").await.unwrap();
    assert!(kept.annotations().contains_key("authentication.liqo.io/self-signed"));
    assert_eq!(value(&kept, "tls.crt"), leaf.chain);
}

/// Puts a certificate where the documents say, and waits until it is shown.
async fn show(house: &House<'_>, leaf: &Leaf) {
    let patch = json!({ "stringData": { "tls.crt": leaf.chain, "tls.key": leaf.key } });
    let secrets = house.secrets(NAMESPACE);
    secrets.patch("liqo-auth-tls", &PatchParams::default(), &Patch::Merge(&patch)).await.unwrap();
    let der = CertificateDer::from_pem_slice(leaf.chain.as_bytes()).unwrap();
    let trust = Trust::Fingerprint(Fingerprint::of_certificate(&der));
    eventually("the certificate is shown", || async {
        identify(&house.url(), &trust).await.map(|_| ()).map_err(|error| error.to_string())
    })
    .await;
}

async fn add(caller: &House<'_>, peer: &House<'_>, authorities: &str) {
    let mut spec = ForeignClusterSpec::new(peer.url());
    spec.auth_ca_bundle = Some(authorities.to_owned());
    spec.cluster_identity =
        Some(ForeignIdentity { cluster_id: Some(peer.id().to_owned()), cluster_name: None });
    let cluster = ForeignCluster::new(PEER, spec);
    caller.clusters().create(&PostParams::default(), &cluster).await.unwrap();
}

async fn vouch(caller: &House<'_>, authorities: &str) {
    change(caller, &json!({ "spec": { "authCaBundle": authorities } })).await;
}

async fn change(caller: &House<'_>, patch: &Value) {
    let clusters: Api<ForeignCluster> = caller.clusters();
    clusters.patch(PEER, &PatchParams::default(), &Patch::Merge(patch)).await.unwrap();
}

async fn wait_untrusted(caller: &House<'_>, says: &str) {
    eventually(says, || async {
        let condition = caller.condition(PEER, PeeringConditionType::AuthenticationStatus).await;
        let condition = condition.ok_or("no condition")?;
        let told = condition.reason == "CertificateNotTrusted" && condition.message.contains(says);
        told.then_some(()).ok_or_else(|| format!("{}: {}", condition.reason, condition.message))
    })
    .await;
}

/// How many requests for a certificate came, whatever became of them.
fn asked(process: &Process) -> u64 {
    let (mut registry, mut text) = (Registry::default(), String::new());
    process.room.metrics().register(&mut registry);
    prometheus_client::encoding::text::encode(&mut text, &registry).unwrap();
    let counts = text.lines().filter_map(|line| line.strip_prefix("liqo_authentication_requests_total{"));
    let counts: Vec<u64> = counts.map(|line| line.rsplit(' ').next().unwrap().parse().unwrap()).collect();
    assert!(!counts.is_empty(), "{text}");
    counts.iter().sum()
}
