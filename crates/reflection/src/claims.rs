//! Volumes of the virtual storage class: they are where their first consumer was placed, here or at a provider.
//!
//! ```text
//!  claim (class liqo) ── the scheduler chose a node ──▶ virtual: claim at the provider ──▶ volume here that stands for it
//!                                                   └─▶ physical: claim of a real class ─▶ volume here that is its twin
//! ```
//!
//! The volume here carries the place as node affinity, so that later consumers go where the data is.

pub(crate) mod facts;
pub(crate) mod index;
pub(crate) mod objects;
pub(crate) mod plan;

/// Who provides volumes of the virtual class, as its StorageClass says.
pub(crate) const PROVISIONER: &str = "liqo.io/storage";
/// The node that the scheduler chose for a claim's first consumer.
pub(crate) const SELECTED_NODE: &str = "volume.kubernetes.io/selected-node";

/// The name of the volume for the claim with this uid.
pub(crate) fn volume_name(claim: &str) -> String {
    format!("pvc-{claim}")
}
