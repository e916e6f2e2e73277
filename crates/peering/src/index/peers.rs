//! What is known of each peer: its namespace here, its key, and our identity there.

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Namespace;
use kube::ResourceExt;
use liqo_api::{ForeignCluster, annotations, labels};
use liqo_core::contract::PublicKey;
use liqo_core::names::ClusterId;

use crate::paper::key_from_spki;

/// The peer's ID, as far as it is known and legal.
pub(crate) fn cluster_id(cluster: &ForeignCluster) -> Option<ClusterId> {
    cluster.spec.cluster_identity.as_ref()?.cluster_id.as_deref()?.parse().ok()
}

/// A tenant namespace.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Tenant {
    pub(crate) name: String,
    pub(crate) created: Option<Timestamp>,
    pub(crate) deleting: bool,
    /// Whether the peer is put out: nothing is lent to it.
    pub(crate) put_out: bool,
    pub(crate) peer: ClusterId,
    /// By which what the peer signed is recognised.
    pub(crate) key: Option<PublicKey>,
}

impl Tenant {
    /// Reads a namespace; `None` if it is no peer's.
    pub(crate) fn read(namespace: &Namespace) -> Option<Self> {
        let is_tenant = namespace.labels().get(labels::TENANT_NAMESPACE).map(String::as_str);
        if is_tenant != Some(labels::TRUE) {
            return None;
        }
        let key = namespace.annotations().get(annotations::PEER_PUBLIC_KEY);
        Some(Self {
            name: namespace.name_any(),
            created: namespace.creation_timestamp().map(|time| time.0),
            deleting: namespace.metadata.deletion_timestamp.is_some(),
            put_out: namespace.annotations().contains_key(annotations::PUT_OUT),
            peer: namespace.labels().get(labels::CLUSTER_ID)?.parse().ok()?,
            key: key.and_then(|key| key_from_spki(key).ok()),
        })
    }
}
