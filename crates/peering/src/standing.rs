//! Small things that conditions and times of all kinds have in common.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};

use crate::events::cut;

/// The longest message of a condition that the kinds take.
const MAX_MESSAGE: usize = 1024;

/// A condition; when its status last changed is for whoever sets it.
pub(crate) fn condition(
    kind: &str,
    is_so: bool,
    reason: &str,
    message: &str,
    generation: Option<i64>,
) -> Condition {
    Condition {
        type_: kind.to_owned(),
        status: if is_so { "True" } else { "False" }.to_owned(),
        reason: reason.to_owned(),
        message: cut(message, MAX_MESSAGE).to_owned(),
        observed_generation: generation,
        last_transition_time: Time(Timestamp::UNIX_EPOCH),
    }
}

/// Whether a condition says yes.
pub(crate) fn is_true(condition: &Condition) -> bool {
    condition.status == "True"
}

/// Kubernetes keeps whole seconds.
pub(crate) fn whole_second(time: Timestamp) -> Timestamp {
    Timestamp::from_second(time.as_second()).unwrap_or(time)
}
