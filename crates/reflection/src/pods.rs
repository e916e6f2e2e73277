//! Pods: sent to providers as ShadowPods, and told about as if they ran here.
//!
//! ```text
//!  home                                       provider
//!  Pod, bound to a virtual node ──outgoing──▶ ShadowPod ──(the provider)──▶ Pod
//!   ▲ status (coalesced) ◀──────── status ◀─────────────────────────────────┘
//! ```

pub(crate) mod facts;
pub(crate) mod footprint;
pub(crate) mod index;
pub(crate) mod outgoing;
pub(crate) mod plan;
pub(crate) mod status;
pub(crate) mod volumes;
pub(crate) mod wire;
