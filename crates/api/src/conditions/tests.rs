use super::*;
use crate::foreign_cluster::{PeeringConditionStatus, PeeringConditionType};

const EARLY: Timestamp = Timestamp::constant(1_000, 500_000_000);
const LATE: Timestamp = Timestamp::constant(2_000, 0);

fn condition(type_: &str, status: &str, message: &str) -> Condition {
    Condition {
        type_: type_.to_owned(),
        status: status.to_owned(),
        reason: "Because".to_owned(),
        message: message.to_owned(),
        observed_generation: Some(1),
        last_transition_time: Time(Timestamp::UNIX_EPOCH),
    }
}

#[test]
fn a_new_condition_is_added_with_the_time_in_whole_seconds() {
    let mut conditions = vec![condition("Ready", "True", "")];
    assert!(set(&mut conditions, condition("Found", "True", ""), EARLY));
    assert_eq!(conditions.len(), 2);
    assert_eq!(conditions[1].last_transition_time.0.as_nanosecond(), 1_000_000_000_000);
}

#[test]
fn saying_the_same_again_changes_nothing() {
    let mut conditions = Vec::new();
    set(&mut conditions, condition("Ready", "True", "fine"), EARLY);
    let before = conditions.clone();
    assert!(!set(&mut conditions, condition("Ready", "True", "fine"), LATE));
    assert_eq!(conditions, before);
}

#[test]
fn another_message_keeps_the_time_and_another_status_moves_it() {
    let mut conditions = Vec::new();
    set(&mut conditions, condition("Ready", "False", "waiting"), EARLY);
    assert!(set(&mut conditions, condition("Ready", "False", "still waiting"), LATE));
    assert_eq!(conditions[0].last_transition_time.0.as_second(), EARLY.as_second());
    assert!(set(&mut conditions, condition("Ready", "True", "done"), LATE));
    assert_eq!(conditions[0].last_transition_time.0, LATE);
    assert_eq!(conditions.len(), 1);
}

#[test]
fn a_newer_generation_is_a_change_even_if_nothing_else_is() {
    let mut conditions = vec![condition("Ready", "True", "")];
    let newer = Condition { observed_generation: Some(2), ..condition("Ready", "True", "") };
    assert!(set(&mut conditions, newer, LATE));
    assert_eq!(conditions[0].last_transition_time.0, Timestamp::UNIX_EPOCH);
}

#[test]
fn peering_conditions_follow_the_same_rules() {
    let peering = |status| PeeringCondition {
        type_: PeeringConditionType::OutgoingPeering,
        status,
        last_transition_time: None,
        reason: String::new(),
        message: String::new(),
        observed_generation: None,
    };
    let mut conditions = Vec::new();
    assert!(set(&mut conditions, peering(PeeringConditionStatus::Pending), EARLY));
    assert!(!set(&mut conditions, peering(PeeringConditionStatus::Pending), LATE));
    assert!(set(&mut conditions, peering(PeeringConditionStatus::Established), LATE));
    assert_eq!(conditions[0].last_transition_time, Some(Time(LATE)));
}
