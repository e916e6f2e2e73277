//! The calling side: our identity at other clusters, from the first call to the day on which it is given up.
//!
//! ```text
//!  ForeignCluster ─▶ finalizer ─▶ GET /ids ─▶ its identity in the spec ─▶ tenant namespace
//!                                                                              │
//!        Secret liqo-identity-… ◀─ stored whole ◀─ POST /identity/certificate ◀┘   again at 2/3 of its life
//! ```
//!
//! The plan looks at the objects and at what this process remembers of its calls ([`Attempt`]). The memory may be lost at any
//! time: then the call is made again, with another key.

use jiff::Timestamp;
use liqo_api::ForeignCluster;
use liqo_identity::Identity;

use crate::client::Obtained;
use crate::wire::PeerIdentity;

pub(crate) mod call;
pub(crate) mod failure;
pub(crate) mod plan;
pub(crate) mod status;
pub(crate) mod withdraw;

pub(crate) use failure::Failure;

/// What a call was made with. If any of it changes, what was found out before means nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Basis {
    uid: String,
    url: String,
    fingerprint: Option<String>,
    ca_bundle: Option<String>,
    insecure: bool,
    expected: Option<(Option<String>, Option<String>)>,
    token_digest: Option<String>,
    our_key: String,
}

impl Basis {
    pub(crate) fn new(cluster: &ForeignCluster, token_digest: Option<String>, me: &Identity) -> Self {
        let spec = &cluster.spec;
        Self {
            uid: cluster.metadata.uid.clone().unwrap_or_default(),
            url: spec.foreign_auth_url.clone(),
            fingerprint: spec.auth_fingerprint.clone(),
            ca_bundle: spec.auth_ca_bundle.clone(),
            insecure: spec.insecure_skip_tls_verify,
            expected: spec
                .cluster_identity
                .as_ref()
                .map(|identity| (identity.cluster_id.clone(), identity.cluster_name.clone())),
            token_digest,
            our_key: format!("{} {}", me.id, me.public_key().fingerprint()),
        }
    }
}

/// What this process remembers of its calls to a peer.
#[derive(Clone, Debug)]
pub(crate) struct Attempt {
    pub(crate) basis: Basis,
    /// Whether a call is being made.
    pub(crate) under_way: bool,
    /// Who answered, until the ForeignCluster says so.
    pub(crate) identified: Option<PeerIdentity>,
    /// What the peer gave us last.
    pub(crate) obtained: Option<Received>,
    /// Why the last call failed.
    pub(crate) failure: Option<Failure>,
    /// Calls that failed since the last that did not.
    pub(crate) failures: u32,
    /// When to call again after a failure.
    pub(crate) retry_at: Option<Timestamp>,
}

/// What a peer gave us, and what is known about that.
#[derive(Clone, Debug)]
pub(crate) struct Received {
    pub(crate) obtained: Obtained,
    pub(crate) at: Timestamp,
    /// The value of the annotation that asked for it.
    pub(crate) rotation: Option<String>,
    /// Who gave it.
    pub(crate) peer: PeerIdentity,
}

impl Attempt {
    pub(crate) fn new(basis: Basis) -> Self {
        Self {
            basis,
            under_way: false,
            identified: None,
            obtained: None,
            failure: None,
            failures: 0,
            retry_at: None,
        }
    }

    /// Whether another call may be made now.
    pub(crate) fn may_call(&self, now: Timestamp) -> bool {
        !self.under_way && self.retry_at.is_none_or(|retry_at| retry_at <= now)
    }
}
