//! What both sides of a peering agree on so that certain pods never run twice.
//!
//! The consumer renews a Lease in its tenant namespace at the provider while pods run there that must not run twice. The
//! provider stops them when it was not renewed for [`DURATION`]; the consumer starts them elsewhere only when they have
//! certainly been stopped.

use std::time::Duration;

/// The Lease of a consumer, in its tenant namespace at the provider.
pub const LEASE: &str = "liqo-home";

/// The field manager that renews it: the time that the provider's API server notes for this one counts.
pub const RENEWER: &str = "liqo-reflection";

/// How long one renewal is good for. An outage of 10 s must stop nothing: the last renewal is up to 2 s old when it begins,
/// up to 1 s is lost since API servers note whole seconds, and up to 3 s pass until a link that is back is found to be.
pub const DURATION: Duration = Duration::from_secs(16);

/// How long pods are given to end when it was not renewed, at most: whoever waits for them must know when they are gone, and
/// they are to run elsewhere within 30 s.
pub const GRACE: Duration = Duration::from_secs(6);

/// Why a pod is not run, or runs no longer, while the Lease is not renewed: reason of the condition
/// [`CREATED`](crate::shadow_pod::CREATED).
pub const FENCED: &str = "Fenced";
