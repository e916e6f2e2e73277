//! What a failed call means, in words for people, and when to call again.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use liqo_api::foreign_cluster::{ForeignIdentity, PeeringConditionStatus};
use liqo_api::names::ClusterId;
use liqo_identity::key::PublicKey;
use liqo_kit::BackoffPolicy;

use crate::client::CallError;
use crate::index::KnownKey;
use crate::wire::PeerIdentity;

#[cfg(test)]
mod tests;

/// What may be over in a moment: an API server that restarts, a link that is cut.
const SOON: BackoffPolicy =
    BackoffPolicy { min: Duration::from_millis(500), max: Duration::from_secs(300), factor: 2.0 };
/// The same, while it has not lasted for minutes: once the link is whole again, somebody waits for the peering.
const LATELY: BackoffPolicy = BackoffPolicy { max: Duration::from_secs(5), ..SOON };
/// So many failures are lately: a minute of a peer that refuses, two of one that does not answer at all.
const MINUTE: u32 = 18;
/// At which step of its growth the usual policy goes on from there, so that nothing jumps: 8 s.
const STEP: u32 = 4;
/// What the peer itself says is over in a moment: what is left of an earlier peering goes, or it just starts.
const AT_ONCE: BackoffPolicy =
    BackoffPolicy { min: Duration::from_millis(200), max: Duration::from_secs(1), factor: 2.0 };
/// What counts as a moment.
const MOMENT: Duration = Duration::from_secs(1);
/// However often it says so, it is believed so many times: the end of a namespace takes seconds.
const BELIEVED: u32 = 60;
/// A peer that wants to be left alone for longer than this is asked again all the same.
const LONGEST_WAIT: Duration = Duration::from_secs(300);
/// What somebody must change first. Changes here are noticed at once; this is for those at the peer.
const LATER: BackoffPolicy =
    BackoffPolicy { min: Duration::from_secs(300), max: Duration::from_secs(600), factor: 2.0 };

/// However final a failure looks, it is tried so many times soon.
const QUICK_TRIES: u32 = 3;

/// Why we have no identity at a peer, or no newer one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Failure {
    pub(crate) status: PeeringConditionStatus,
    pub(crate) reason: &'static str,
    pub(crate) message: String,
    /// Whether it helps to try again soon.
    pub(crate) soon: bool,
    /// When the peer said that it makes sense to ask again.
    pub(crate) retry_after: Option<Duration>,
}

impl Failure {
    fn denied(reason: &'static str, message: String) -> Self {
        Self { status: PeeringConditionStatus::Denied, reason, message, soon: false, retry_after: None }
    }

    fn error(reason: &'static str, message: String) -> Self {
        Self { status: PeeringConditionStatus::Error, reason, message, soon: false, retry_after: None }
    }

    fn pending(reason: &'static str, message: String) -> Self {
        Self { status: PeeringConditionStatus::Pending, reason, message, soon: true, retry_after: None }
    }

    /// The new certificate was not accepted by the peer's API server; the old one is kept.
    pub(crate) fn not_working(url: &str, reason: &str) -> Self {
        let message = format!(
            "the peer gave a new certificate, but its API server at {url} does not take it: {reason}; the old one is kept"
        );
        Self::pending("CertificateDoesNotWork", message)
    }

    /// What a call that went wrong means. `with_token` tells whether we showed one.
    pub(crate) fn of(error: &CallError, with_token: bool) -> Self {
        match error {
            CallError::Url { .. } => Self::error("InvalidURL", error.to_string()),
            CallError::Bundle(_) => Self::error("InvalidCaBundle", error.to_string()),
            CallError::Unreachable { .. } => Self::pending("PeerUnreachable", error.to_string()),
            CallError::Untrusted { .. } => Self::error("CertificateNotTrusted", error.to_string()),
            CallError::Busy { retry_after, .. } => {
                Self { retry_after: *retry_after, ..Self::pending("PeerBusy", error.to_string()) }
            }
            CallError::Nonsense { .. } => Self::error("NonsenseAnswer", error.to_string()),
            CallError::NoKey { .. } => Self::error("NoKey", error.to_string()),
            CallError::Refused { status: 401 | 403, words, .. } if !with_token => Self {
                status: PeeringConditionStatus::EmptyDenied,
                reason: "TokenMissing",
                message: format!(
                    "the peer wants a token and there is none for it; run the command that `liqoctl \
                     generate-add-command` prints there (it said: {words})"
                ),
                soon: false,
                retry_after: None,
            },
            CallError::Refused { status: 401, words, .. } => Self::denied(
                "TokenRefused",
                format!(
                    "the peer does not accept the token; create a new one there with `liqoctl token create` and run \
                     `liqoctl add` with it here (it said: {words})"
                ),
            ),
            CallError::Refused { status: 403, words, .. } => {
                Self::denied("RefusedByPeer", format!("the peer refused: {words}"))
            }
            CallError::Refused { status, words, url } => Self::error(
                "NoAuthenticationService",
                format!("{url} does not answer like an authentication service ({status}: {words})"),
            ),
        }
    }

    /// When to call again after so many failures in a row. `random` in `0.0..1.0` spreads the calls of many clusters.
    pub(crate) fn retry_at(&self, failures: u32, random: f64, now: Timestamp) -> Timestamp {
        // A token that was just made may not be known everywhere yet.
        let earlier = failures.saturating_sub(1);
        let (policy, attempt) = match self.retry_after {
            Some(after) if after <= MOMENT && failures <= BELIEVED => (AT_ONCE, earlier),
            _ if failures <= if self.soon { MINUTE } else { QUICK_TRIES } => (LATELY, earlier),
            _ if self.soon => (SOON, earlier - MINUTE + STEP),
            _ => (LATER, earlier),
        };
        let asked_for = self.retry_after.filter(|after| *after > MOMENT).unwrap_or_default();
        let wait = policy.delay(attempt, random).max(asked_for.min(LONGEST_WAIT));
        let wait = SignedDuration::try_from(wait).unwrap_or(SignedDuration::from_mins(10));
        now.saturating_add(wait).unwrap_or(now)
    }
}

/// Whether whoever answers is the cluster that is meant. Asked before anything is sent that is worth stealing.
pub(crate) fn check_peer(
    found: &PeerIdentity,
    expected: Option<&ForeignIdentity>,
    me: &ClusterId,
    known: &KnownKey,
) -> Result<(), Failure> {
    let (id, name) = (found.identity.id.as_str(), found.identity.name.as_str());
    if found.identity.id == *me {
        return Err(Failure::denied(
            "OwnCluster",
            "this is the cluster itself: it cannot peer with itself".to_owned(),
        ));
    }
    let differs = |expected: Option<&String>, found: &str| expected.is_some_and(|expected| expected != found);
    let expected_id = expected.and_then(|identity| identity.cluster_id.as_ref());
    let expected_name = expected.and_then(|identity| identity.cluster_name.as_ref());
    if differs(expected_id, id) || differs(expected_name, name) {
        let text = |text: Option<&String>| text.map_or("any", String::as_str).to_owned();
        return Err(Failure::denied(
            "IdentityMismatch",
            format!(
                "another cluster answers there: expected ID {} and name {}, found ID {id} and name {name}",
                text(expected_id),
                text(expected_name)
            ),
        ));
    }
    if !known.allows(found.public_key.as_ref()) {
        let shown = found.public_key.as_ref().map_or_else(|| "none".to_owned(), PublicKey::fingerprint);
        return Err(Failure::denied(
            "KeyMismatch",
            format!(
                "a cluster answers there that says to be {id}, but {id} is known with another key (it showed {shown}); \
                 if it was installed anew, remove this ForeignCluster and add it again"
            ),
        ));
    }
    Ok(())
}
