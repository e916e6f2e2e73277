//! What should happen: pure, from what is known, what is wanted and the time.
//!
//! ```text
//!  Secret  ConfigMap
//!    –        –      make both, the Secret first: it alone holds a whole identity, so whoever comes after a crash
//!                    finds either nothing or everything
//!    ✓        –      make the ConfigMap again from the Secret
//!    –        ✓      refuse: a new key would be a new identity under an old name
//!    ✓        ✓      established, if they agree, and the flags with them; else refuse
//! ```
//!
//! A refusal changes nothing: it is told (condition, event, log, readiness), with the way out, and is over as soon as
//! the objects are repaired.

use std::sync::Arc;

use jiff::Timestamp;
use liqo_api::ClusterConfigStatus;
use liqo_api::cluster_config::IDENTITY_READY;

use crate::Settings;
use crate::identity::Identity;
use crate::index::{Index, Published, Told};
use crate::key::hex_of_sha256;

mod advice;
mod status;
#[cfg(test)]
mod tests;

pub use advice::Reason;
pub(crate) use advice::{About, Refusal};

/// Reason of the event that tells about a new identity in the place of another.
const IDENTITY_REPLACED: &str = "IdentityReplaced";

/// What the objects say about the identity.
#[derive(Clone, Debug)]
pub(crate) enum Verdict {
    /// Not everything has been seen yet.
    Unknown,
    /// There is none, and nothing that speaks against making one.
    Missing,
    /// The Secret has it; the ConfigMap agrees or is not there.
    Established(Arc<Identity>),
    /// Something is lost, broken or contradictory.
    Refused(Refusal),
}

/// One thing to write.
#[derive(Clone, Debug)]
pub(crate) enum Step {
    /// Make a new identity.
    CreateSecret,
    /// Publish it.
    CreateConfigMap(Arc<Identity>),
    /// Note on the ConfigMap what belongs there and is missing.
    MarkConfigMap { resource_version: String, fingerprint: String },
    /// Make the object that tells about the cluster.
    CreateClusterConfig,
    /// Tell it.
    WriteStatus { resource_version: String, status: Box<ClusterConfigStatus> },
    /// Make an event.
    Report(Report),
}

/// What an event says.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Report {
    /// The event's name; the same for the same occasion, so that it is made once, whoever makes it.
    pub(crate) name: String,
    pub(crate) about: About,
    /// The uid of that object, without which kubectl does not show the event with it.
    pub(crate) uid: String,
    pub(crate) reason: &'static str,
    pub(crate) message: String,
}

/// Judges what is known.
pub(crate) fn judge(index: &Index, settings: &Settings, now: Timestamp) -> Verdict {
    if !index.secret.synced || !index.config_map.synced {
        return Verdict::Unknown;
    }
    let published = index.config_map.object.as_ref();
    let refuse = |refusal: Refusal| Verdict::Refused(refusal);
    match (&index.secret.object, published) {
        (None, None) => Verdict::Missing,
        (None, Some(_)) if index.late(now).is_some() => Verdict::Unknown,
        (None, Some(published)) => refuse(advice::key_lost(settings, published)),
        (Some(kept), _) => match &kept.identity {
            Err(problem) => refuse(advice::key_unreadable(settings, problem, published)),
            Ok(identity) => published
                .and_then(|published| advice::disagreement(settings, identity, published))
                .or_else(|| advice::contradiction(settings, identity))
                .map_or_else(|| Verdict::Established(Arc::clone(identity)), refuse),
        },
    }
}

/// The writes that are still missing, in the order in which they are to be made.
pub(crate) fn plan(index: &Index, settings: &Settings, now: Timestamp) -> Vec<Step> {
    let verdict = judge(index, settings, now);
    match &verdict {
        Verdict::Unknown => return Vec::new(),
        // Nothing else is true before this has been seen.
        Verdict::Missing => return vec![Step::CreateSecret],
        Verdict::Established(_) | Verdict::Refused(_) => {}
    }
    if let Some(step) = publish(index, &verdict) {
        return vec![step];
    }
    tell(index, &verdict, settings, now).into_iter().collect()
}

/// What is missing of the ConfigMap.
fn publish(index: &Index, verdict: &Verdict) -> Option<Step> {
    let kept = index.secret.object.as_ref().and_then(|kept| kept.identity.as_ref().ok())?;
    let Some(published) = &index.config_map.object else {
        // Also when the flags are refused: the identity is known, only not the one they ask for.
        return Some(Step::CreateConfigMap(Arc::clone(kept)));
    };
    let Verdict::Established(identity) = verdict else { return None };
    mark(identity, published)
}

fn mark(identity: &Identity, published: &Published) -> Option<Step> {
    let complete = published.labelled && published.fingerprint.is_some();
    (!complete).then(|| Step::MarkConfigMap {
        resource_version: published.resource_version.clone(),
        fingerprint: identity.public_key().fingerprint(),
    })
}

/// What is missing of the ClusterConfig, and of the events.
fn tell(index: &Index, verdict: &Verdict, settings: &Settings, now: Timestamp) -> Option<Step> {
    if !index.cluster_config.synced {
        return None;
    }
    let Some(told) = &index.cluster_config.object else { return Some(Step::CreateClusterConfig) };
    let unreported = |report: Report| {
        let uid = match report.about {
            About::ConfigMap => index.config_map.object.as_ref().map(|object| object.uid.clone()),
            About::Secret => index.secret.object.as_ref().map(|object| object.uid.clone()),
        };
        let report = Report { uid: uid.unwrap_or_default(), ..report };
        (!index.reported.contains(&report.name)).then_some(Step::Report(report))
    };
    // First, because the status is the last thing that remembers the former identity.
    if let Verdict::Established(identity) = verdict
        && let Some(step) = replaced(identity, told).and_then(unreported)
    {
        return Some(step);
    }
    let wanted = status::wanted(index, verdict, settings, told, now);
    if wanted != told.status {
        let resource_version = told.resource_version.clone();
        return Some(Step::WriteStatus { resource_version, status: Box::new(wanted) });
    }
    match verdict {
        Verdict::Refused(refusal) => refused(refusal, told).and_then(unreported),
        _ => None,
    }
}

/// The event for a new identity in the place of another, after somebody removed that.
fn replaced(identity: &Identity, told: &Told) -> Option<Report> {
    let fingerprint = identity.public_key().fingerprint();
    told.status.fingerprint.as_ref().filter(|former| **former != fingerprint)?;
    let former = advice::described(told.status.cluster_identity.as_ref());
    let now = advice::described(Some(&identity.cluster_identity()));
    Some(Report {
        name: format!("liqo-identity.replaced.{}", fingerprint.get(..16).unwrap_or_default()),
        about: About::ConfigMap,
        uid: String::new(),
        reason: IDENTITY_REPLACED,
        message: format!(
            "this cluster was {former} and is {now} with a new key now, because its Secret and its ConfigMap were \
             deleted. Peers do not recognise it any more: make the peerings again."
        ),
    })
}

/// Hex digits that tell the events of different messages apart.
const MESSAGE_DIGITS: usize = 8;

/// The event for a refusal, named after the moment when the condition became false and what it says.
fn refused(refusal: &Refusal, told: &Told) -> Option<Report> {
    let condition = told.status.conditions.iter().find(|condition| condition.type_ == IDENTITY_READY)?;
    let since = condition.last_transition_time.0.as_second();
    let reason = refusal.reason.as_str();
    let mut digest = hex_of_sha256(refusal.message.as_bytes());
    digest.truncate(MESSAGE_DIGITS);
    Some(Report {
        name: format!("liqo-identity.{}.{since:x}.{digest}", reason.to_lowercase()),
        about: refusal.about,
        uid: String::new(),
        reason,
        message: refusal.message.clone(),
    })
}
