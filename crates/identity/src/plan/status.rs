//! What the ClusterConfig should tell.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use liqo_api::cluster_config::{IDENTITY_READY, READY};
use liqo_api::{ClusterConfigStatus, ClusterIdentity, WorkingMode, conditions};

use super::{Reason, Refusal, Verdict};
use crate::Settings;
use crate::identity::Identity;
use crate::index::{Index, Told};

/// Reason of [`IDENTITY_READY`] when all is well.
pub(crate) const ESTABLISHED: &str = "Established";
/// Reason of [`READY`] when all is well.
pub(crate) const OPERATING: &str = "Operating";
/// Reason of [`READY`] when the identity is what is wrong.
pub(crate) const IDENTITY_NOT_READY: &str = "IdentityNotReady";

/// The status as it should be, starting from the one that is there.
pub(super) fn wanted(
    index: &Index,
    verdict: &Verdict,
    settings: &Settings,
    told: &Told,
    now: Timestamp,
) -> ClusterConfigStatus {
    let mut status = told.status.clone();
    status.working_mode = Some(WorkingMode::Autonomous);
    status.version = Some(settings.version.clone());
    status.capabilities.clone_from(&settings.capabilities);
    status.leader = Some(settings.pod.clone());
    match verdict {
        Verdict::Established(identity) => show(&mut status, identity),
        Verdict::Refused(refusal) => show_refused(&mut status, index, refusal),
        Verdict::Unknown | Verdict::Missing => {}
    }
    for statement in statements(verdict) {
        let condition = Condition {
            type_: statement.aspect.to_owned(),
            status: if statement.holds { "True" } else { "False" }.to_owned(),
            reason: statement.reason.to_owned(),
            message: statement.message,
            observed_generation: told.generation,
            last_transition_time: Time(now),
        };
        conditions::set(&mut status.conditions, condition, now);
    }
    status
}

fn show(status: &mut ClusterConfigStatus, identity: &Identity) {
    let public = identity.public_key();
    status.cluster_identity = Some(identity.cluster_identity());
    status.fingerprint = Some(public.fingerprint());
    status.public_key = Some(public.to_pem());
}

/// Which cluster it was stays to be seen, so that whoever repairs it knows.
fn show_refused(status: &mut ClusterConfigStatus, index: &Index, refusal: &Refusal) {
    let kept = index.secret.object.as_ref().and_then(|kept| kept.identity.as_ref().ok());
    if refusal.reason == Reason::IdentityChangeRefused
        && let Some(identity) = kept
    {
        return show(status, identity);
    }
    let published = || index.config_map.object.as_ref().and_then(|published| published.identity.clone());
    if status.cluster_identity.is_none() {
        // The server refuses a status with an illegal name, and with it the condition that tells about it.
        status.cluster_identity = published().filter(|identity: &ClusterIdentity| identity.parse().is_ok());
    }
}

struct Statement {
    aspect: &'static str,
    holds: bool,
    reason: &'static str,
    message: String,
}

fn statements(verdict: &Verdict) -> Vec<Statement> {
    match verdict {
        Verdict::Established(identity) => {
            let message = format!("this is cluster {} ({})", identity.name, identity.id);
            let all = "all parts of this version are at work".to_owned();
            vec![
                Statement { aspect: IDENTITY_READY, holds: true, reason: ESTABLISHED, message },
                Statement { aspect: READY, holds: true, reason: OPERATING, message: all },
            ]
        }
        Verdict::Refused(refusal) => {
            let message = format!("see the condition {IDENTITY_READY}");
            let reason = refusal.reason.as_str();
            vec![
                Statement { aspect: IDENTITY_READY, holds: false, reason, message: refusal.message.clone() },
                Statement { aspect: READY, holds: false, reason: IDENTITY_NOT_READY, message },
            ]
        }
        Verdict::Unknown | Verdict::Missing => Vec::new(),
    }
}
