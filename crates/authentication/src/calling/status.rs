//! What a ForeignCluster tells about our identity at the peer.

use jiff::{SignedDuration, Timestamp};
use kube::ResourceExt;
use liqo_api::foreign_cluster::{
    PeeringCondition, PeeringConditionStatus as Status, PeeringConditionType as Part, TenantNamespaces,
};
use liqo_api::{ForeignCluster, conditions};

use super::Failure;
use crate::index::{Claim, NO_KEY};
use crate::objects::Report;

/// How long a refused claim is told.
const CLAIM_TOLD: SignedDuration = SignedDuration::from_hours(1);

/// Reasons of the second condition; where it has another, it is not ours.
pub(crate) const CLAIMED_TWICE: &str = "IdentityClaimedTwice";
pub(crate) const PUT_OUT: &str = "PeerPutOut";

/// What should be told.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Told {
    pub(crate) status: Status,
    pub(crate) reason: &'static str,
    pub(crate) message: String,
    pub(crate) tenant: TenantNamespaces,
    /// What is wrong with the peer itself: reason and message.
    pub(crate) trouble: Option<(&'static str, String)>,
}

impl Told {
    pub(crate) fn new(status: Status, reason: &'static str, message: impl Into<String>) -> Self {
        Self { status, reason, message: message.into(), tenant: TenantNamespaces::default(), trouble: None }
    }

    pub(crate) fn authenticating() -> Self {
        Self::new(Status::Pending, "Authenticating", "asking the peer for an identity there")
    }

    /// The same with another's tenant namespaces.
    pub(crate) fn with(self, other: &Self) -> Self {
        Self { tenant: other.tenant.clone(), ..self }
    }

    pub(crate) fn failed(failure: &Failure) -> Self {
        Self::new(failure.status, failure.reason, failure.message.clone())
    }
}

/// What is told about a claim that was refused not long ago, and until when.
pub(crate) fn claim(claim: &Claim, now: Timestamp) -> Option<((&'static str, String), Timestamp)> {
    let until = claim.at.saturating_add(CLAIM_TOLD).unwrap_or(claim.at);
    let with = match claim.fingerprint.as_str() {
        NO_KEY => "without a key".to_owned(),
        fingerprint => format!("with the key {fingerprint}"),
    };
    let message = format!("another cluster said that it is this one, {with}, and was refused");
    (now < until).then_some(((CLAIMED_TWICE, message), until))
}

/// The status to write, and what to report about the change; nothing if all is said already.
pub(crate) fn missing(
    cluster: &ForeignCluster,
    told: &Told,
    now: Timestamp,
) -> Option<(serde_json::Value, Vec<Report>)> {
    let wanted = conditions_of(cluster, told);
    let status = cluster.status.clone().unwrap_or_default();
    let is_ours = |condition: &PeeringCondition| match condition.type_ {
        Part::AuthenticationStatus => true,
        Part::ProcessForeignClusterStatus => [CLAIMED_TWICE, PUT_OUT].contains(&condition.reason.as_str()),
        _ => false,
    };
    let current: Vec<_> =
        status.peering_conditions.iter().filter(|condition| is_ours(condition)).cloned().collect();
    let mut result: Vec<_> = current
        .iter()
        .filter(|condition| wanted.iter().any(|wanted| wanted.type_ == condition.type_))
        .cloned()
        .collect();
    let reports: Vec<_> = wanted
        .iter()
        .filter(|condition| says_something_new(condition, &current))
        .map(|condition| report(cluster, condition, &current))
        .collect();
    let mut changed = result.len() != current.len();
    for condition in wanted {
        changed |= conditions::set(&mut result, condition, now);
    }
    if !changed && status.tenant_namespace == told.tenant {
        return None;
    }
    let patch = serde_json::json!({ "peeringConditions": result, "tenantNamespace": told.tenant });
    Some((patch, reports))
}

fn conditions_of(cluster: &ForeignCluster, told: &Told) -> Vec<PeeringCondition> {
    let condition = |type_, status, reason: &str, message: &str| PeeringCondition {
        type_,
        status,
        last_transition_time: None,
        reason: reason.to_owned(),
        message: message.to_owned(),
        observed_generation: cluster.metadata.generation,
    };
    let ours = condition(Part::AuthenticationStatus, told.status, told.reason, &told.message);
    let trouble = told.trouble.as_ref().map(|(reason, message)| {
        condition(Part::ProcessForeignClusterStatus, Status::Error, reason, message)
    });
    [ours].into_iter().chain(trouble).collect()
}

fn says_something_new(condition: &PeeringCondition, current: &[PeeringCondition]) -> bool {
    let earlier = current.iter().find(|earlier| earlier.type_ == condition.type_);
    // Who refused the claim has reported it, with the address that it came from.
    condition.reason != CLAIMED_TWICE
        && condition.status != Status::None
        && earlier.is_none_or(|earlier| {
            (&earlier.reason, &earlier.message) != (&condition.reason, &condition.message)
        })
}

fn report(cluster: &ForeignCluster, condition: &PeeringCondition, current: &[PeeringCondition]) -> Report {
    let earlier = current.iter().find(|earlier| earlier.type_ == condition.type_);
    let since = earlier.and_then(|earlier| earlier.last_transition_time.as_ref());
    Report {
        cluster: cluster.name_any(),
        uid: cluster.uid().unwrap_or_default(),
        warning: matches!(condition.status, Status::Denied | Status::EmptyDenied | Status::Error),
        reason: condition.reason.clone(),
        message: condition.message.clone(),
        since: since.map_or(0, |time| time.0.as_second()),
    }
}

#[cfg(test)]
mod tests;
