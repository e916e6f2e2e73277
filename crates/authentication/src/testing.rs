//! Worlds for the tests of plans and judgements.

use std::sync::OnceLock;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Namespace;
use liqo_api::names::{ClusterId, Identity as Names};
use liqo_api::{ForeignCluster, labels};
use liqo_identity::{Identity, Wanted};
use liqo_kit::{Index as _, Key};
use serde_json::json;

use crate::client::{Certified, Obtained};
use crate::csr::{NewKey, new_key};
use crate::index::{Index, PeerBinding, PeerRole, Tenant};
use crate::proof::prove;
use crate::tokens::Token;
use crate::wire::{Proof, ProofOf, Request};

/// The time in tests.
pub(crate) fn now() -> Timestamp {
    "2026-01-02T03:04:05Z".parse().unwrap()
}

/// So many seconds after [`now`].
pub(crate) fn later(seconds: i64) -> Timestamp {
    Timestamp::from_second(now().as_second() + seconds).unwrap()
}

fn cluster(id: &str) -> Identity {
    let wanted =
        Wanted { id: Some(id.parse().unwrap()), name: Some(id.trim_end_matches("-id").parse().unwrap()) };
    Identity::generate(&wanted).unwrap()
}

macro_rules! clusters {
    ($($name:ident),*) => { $(
        /// A cluster that has the same key throughout a test.
        pub(crate) fn $name() -> &'static Identity {
            static CLUSTER: OnceLock<Identity> = OnceLock::new();
            CLUSTER.get_or_init(|| cluster(concat!(stringify!($name), "-id")))
        }
    )* };
}

clusters!(home, milan, rome, stranger);

/// ID and name of a cluster.
pub(crate) fn names(identity: &Identity) -> Names {
    Names { id: identity.id.clone(), name: identity.name.clone() }
}

/// A token for all.
pub(crate) fn own_token() -> Token {
    Token::new("0123456789abcdef")
}

/// A request of `caller` to us, as it should be.
pub(crate) fn request(caller: &Identity, token: &str) -> Request {
    let NewKey { csr, .. } = new_key(&caller.id).unwrap();
    let of = ProofOf { called: &home().id, caller: &caller.id, csr: csr.as_bytes() };
    let proof = Proof { key: caller.public_key(), signature: prove(caller, &of) };
    Request { caller: names(caller), token: Token::new(token), csr: csr.into_bytes(), proof: Some(proof) }
}

/// The tenant namespace of a peer, with these annotations.
pub(crate) fn tenant(peer: &ClusterId, annotations: &[(&str, &str)]) -> Tenant {
    let annotations: serde_json::Map<_, _> =
        annotations.iter().map(|(key, value)| ((*key).to_owned(), json!(value))).collect();
    let namespace: Namespace = serde_json::from_value(json!({ "metadata": {
        "name": format!("liqo-tenant-{peer}"), "uid": "uid-of-tenant", "resourceVersion": "1",
        "creationTimestamp": now(),
        "labels": { labels::TENANT_NAMESPACE: "true", labels::CLUSTER_ID: peer.as_str() },
        "annotations": annotations,
    } }))
    .unwrap();
    Tenant::read(&namespace).unwrap()
}

/// A ForeignCluster with this metadata and this spec.
#[expect(clippy::needless_pass_by_value, reason = "json! makes values")]
pub(crate) fn foreign_cluster(
    name: &str,
    metadata: serde_json::Value,
    spec: serde_json::Value,
) -> ForeignCluster {
    let mut whole = json!({
        "name": name, "uid": format!("uid-of-{name}"), "resourceVersion": "1", "generation": 1,
        "creationTimestamp": "2026-01-01T00:00:00Z",
    });
    merge(&mut whole, &metadata);
    serde_json::from_value(json!({ "metadata": whole, "spec": spec })).unwrap()
}

/// What a merge patch does.
pub(crate) fn merge(base: &mut serde_json::Value, patch: &serde_json::Value) {
    match (base, patch) {
        (serde_json::Value::Object(base), serde_json::Value::Object(patch)) => {
            for (key, value) in patch {
                if value.is_null() {
                    base.remove(key);
                } else {
                    merge(base.entry(key.clone()).or_insert(serde_json::Value::Null), value);
                }
            }
        }
        (base, patch) => {
            *base = patch.clone();
            if base.is_object() {
                // What is inserted whole must lose its nulls, too.
                let inserted = std::mem::replace(base, json!({}));
                merge(base, &inserted);
            }
        }
    }
}

/// Puts things into an index.
pub(crate) trait Put {
    fn put_cluster(&mut self, cluster: ForeignCluster);
    fn put_tenant(&mut self, tenant: Tenant);
    fn put_role(&mut self, tenant: &str, right: bool);
    fn put_binding(&mut self, tenant: &str, binding: PeerBinding);
}

impl Put for Index {
    fn put_cluster(&mut self, cluster: ForeignCluster) {
        self.apply(&Key::cluster(cluster.metadata.name.as_deref().unwrap()), cluster);
    }

    fn put_tenant(&mut self, tenant: Tenant) {
        self.apply(&Key::cluster(&tenant.name.clone()), tenant);
    }

    fn put_role(&mut self, tenant: &str, right: bool) {
        self.apply(&Key::namespaced(tenant, "liqo-peer"), PeerRole { right });
    }

    fn put_binding(&mut self, tenant: &str, binding: PeerBinding) {
        self.apply(&Key::namespaced(tenant, "liqo-peer"), binding);
    }
}

/// A binding as it should be.
pub(crate) fn binding() -> PeerBinding {
    PeerBinding { uid: "uid-of-binding".to_owned(), created: Some(now()), right_peer: true, right_role: true }
}

/// What a peer gave us, valid from [`now`] for so many seconds.
pub(crate) fn obtained(me: &Identity, from: Timestamp, seconds: i64, digest: &str) -> Obtained {
    Obtained {
        private_key: zeroize::Zeroizing::new("private".to_owned()),
        csr: "csr".to_owned(),
        certificate: b"certificate".to_vec(),
        certified: Certified {
            not_before: from,
            not_after: Timestamp::from_second(from.as_second() + seconds).unwrap(),
            common_name: me.id.to_string(),
            public_key: vec![],
            digest: digest.to_owned(),
        },
        api_server_url: "https://203.0.113.7:6443".to_owned(),
        api_server_ca: None,
        namespace: "liqo-tenant-home".parse().unwrap(),
    }
}
