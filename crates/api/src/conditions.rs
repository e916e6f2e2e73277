//! Reading and setting conditions, the same way for every kind.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};

use crate::{foreign_cluster::PeeringCondition, namespace_offloading::RemoteNamespaceCondition};

/// What the condition lists have in common.
pub trait ConditionLike: Clone {
    /// Whether both are about the same aspect.
    fn same_type(&self, other: &Self) -> bool;
    /// Whether both have the same status.
    fn same_status(&self, other: &Self) -> bool;
    /// Whether both say the same, whenever they began to.
    fn same_statement(&self, other: &Self) -> bool;
    /// Says when the status last changed.
    fn set_transition(&mut self, now: Timestamp);
    /// Takes over when the status last changed.
    fn keep_transition(&mut self, earlier: &Self);
}

/// Puts `condition` into the list and returns whether that changed anything.
///
/// The transition time moves only when the status does, so that setting the same thing twice costs no write.
pub fn set<C: ConditionLike>(conditions: &mut Vec<C>, mut condition: C, now: Timestamp) -> bool {
    let Some(current) = conditions.iter_mut().find(|current| current.same_type(&condition)) else {
        condition.set_transition(now);
        conditions.push(condition);
        return true;
    };
    if current.same_statement(&condition) {
        return false;
    }
    if current.same_status(&condition) {
        condition.keep_transition(current);
    } else {
        condition.set_transition(now);
    }
    *current = condition;
    true
}

impl ConditionLike for Condition {
    fn same_type(&self, other: &Self) -> bool {
        self.type_ == other.type_
    }

    fn same_status(&self, other: &Self) -> bool {
        self.status == other.status
    }

    fn same_statement(&self, other: &Self) -> bool {
        let statement =
            |it: &Self| (it.status.clone(), it.reason.clone(), it.message.clone(), it.observed_generation);
        statement(self) == statement(other)
    }

    fn set_transition(&mut self, now: Timestamp) {
        self.last_transition_time = Time(whole_seconds(now));
    }

    fn keep_transition(&mut self, earlier: &Self) {
        self.last_transition_time = earlier.last_transition_time.clone();
    }
}

/// Liqo's own conditions have types and statuses of their own, and otherwise the same fields.
macro_rules! condition_like {
    ($condition:ty) => {
        impl ConditionLike for $condition {
            fn same_type(&self, other: &Self) -> bool {
                self.type_ == other.type_
            }

            fn same_status(&self, other: &Self) -> bool {
                self.status == other.status
            }

            fn same_statement(&self, other: &Self) -> bool {
                let statement =
                    |it: &Self| (it.status, it.reason.clone(), it.message.clone(), it.observed_generation);
                statement(self) == statement(other)
            }

            fn set_transition(&mut self, now: Timestamp) {
                self.last_transition_time = Some(Time(whole_seconds(now)));
            }

            fn keep_transition(&mut self, earlier: &Self) {
                self.last_transition_time = earlier.last_transition_time.clone();
            }
        }
    };
}

condition_like!(PeeringCondition);
condition_like!(RemoteNamespaceCondition);

/// Kubernetes stores times in seconds; a finer one would differ from what is read back.
fn whole_seconds(time: Timestamp) -> Timestamp {
    Timestamp::from_second(time.as_second()).unwrap_or(time)
}

#[cfg(test)]
mod tests;
