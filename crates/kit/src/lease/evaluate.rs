//! Who holds the lease, as far as we can know. Pure.

use std::time::Duration;

use k8s_openapi::api::coordination::v1::Lease;
use tokio::time::Instant;

/// The part of a lease that matters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// Who holds it, if anybody.
    pub holder: Option<String>,
    /// How long it is held after each renewal.
    pub duration: Duration,
    /// Differs after each renewal. Never read as a time: the holder's clock may be wrong.
    pub mark: String,
}

impl From<&Lease> for Record {
    fn from(lease: &Lease) -> Self {
        let spec = lease.spec.clone().unwrap_or_default();
        Self {
            holder: spec.holder_identity.filter(|holder| !holder.is_empty()),
            duration: Duration::from_secs(
                u64::try_from(spec.lease_duration_seconds.unwrap_or(0)).unwrap_or(0),
            ),
            mark: lease.metadata.resource_version.clone().unwrap_or_default(),
        }
    }
}

/// A record, and when we first saw it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Observation {
    /// What we saw.
    pub record: Record,
    /// When we first saw exactly this.
    pub since: Instant,
}

impl Observation {
    /// The record was read now: if it is the one we knew, it is as old as before.
    pub fn update(former: Option<Self>, record: Record, now: Instant) -> Self {
        match former {
            Some(former) if former.record == record => former,
            _ => Self { record, since: now },
        }
    }
}

/// Whether we may lead.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Nobody holds it (any more): we may take it.
    Free,
    /// We hold it.
    Mine,
    /// Another holds it, at least until then if it is not renewed.
    Held {
        /// Who.
        by: String,
        /// When it would be free.
        until: Instant,
    },
}

/// Judges an observation. Only our own clock is used, and only as a difference.
pub fn evaluate(seen: &Observation, me: &str, now: Instant) -> Verdict {
    let Some(holder) = &seen.record.holder else { return Verdict::Free };
    if holder == me {
        return Verdict::Mine;
    }
    let until = seen.since + seen.record.duration;
    if now >= until { Verdict::Free } else { Verdict::Held { by: holder.clone(), until } }
}
