use jiff::{SignedDuration, Timestamp};
use proptest::prelude::*;

use super::{Action, Due, Event, Lifecycle, NotPossible, State};
use crate::contract::{Clauses, Terms};
use crate::span::Span;
use crate::testing::{clauses, time};

/// The contract is for July, renewed for 30 days at a time.
fn terms(change: impl FnOnce(&mut Clauses)) -> Terms {
    let mut clauses = clauses();
    change(&mut clauses);
    Terms::new(clauses).unwrap()
}

const SIGNING: Span = Span::clamped(60);
const START: &str = "2026-07-01T00:00:00Z";

fn proposed() -> Lifecycle {
    Lifecycle::proposed(&terms(|_| {}), time(START))
}

fn in_state(state: State) -> Lifecycle {
    Lifecycle { state, ..proposed() }
}

fn renewed() -> Terms {
    terms(|clauses| clauses.not_after = time("2026-08-31T00:00:00Z"))
}

fn all_events() -> Vec<Event> {
    vec![
        Event::ConsumerSigned,
        Event::ProviderSigned,
        Event::AmendmentProposed,
        Event::AmendmentSigned(renewed()),
        Event::AmendmentDropped,
        Event::Ended,
    ]
}

const ALL_STATES: [State; 6] =
    [State::Proposed, State::ConsumerSigned, State::Active, State::Amending, State::Expired, State::Ended];

#[test]
fn every_event_in_every_state() {
    use State::{Active, Amending, ConsumerSigned, Ended, Expired, Proposed};
    // Rows: states; columns: consumer signs, provider signs, amendment proposed, signed, dropped, ended.
    let table: [(State, [Option<State>; 6]); 6] = [
        (Proposed, [Some(ConsumerSigned), None, None, None, None, Some(Ended)]),
        (ConsumerSigned, [Some(ConsumerSigned), Some(Active), None, None, None, Some(Ended)]),
        (Active, [None, Some(Active), Some(Amending), Some(Active), Some(Active), Some(Ended)]),
        (Amending, [None, None, Some(Amending), Some(Active), Some(Active), Some(Ended)]),
        (Expired, [None; 6]),
        (Ended, [None, None, None, None, None, Some(Ended)]),
    ];
    for (state, expected) in table {
        for (event, expected) in all_events().iter().zip(expected) {
            let after =
                in_state(state).after(event, time("2026-07-02T00:00:00Z")).ok().map(|after| after.state);
            assert_eq!(after, expected, "{state:?} + {event:?}");
        }
    }
}

#[test]
fn nobody_can_sign_what_has_ended() {
    let late = time("2026-08-01T00:00:00Z");
    for (state, event) in [
        (State::Proposed, Event::ConsumerSigned),
        (State::ConsumerSigned, Event::ProviderSigned),
        (State::Amending, Event::AmendmentSigned(renewed())),
    ] {
        assert_eq!(in_state(state).after(&event, late), Err(NotPossible::Late(late)), "{state:?}");
    }
    assert_eq!(in_state(State::Amending).after(&Event::AmendmentDropped, late).unwrap().state, State::Active);
    let problem = in_state(State::Ended).after(&Event::ConsumerSigned, late).unwrap_err().to_string();
    assert_eq!(problem, "a contract that is Ended cannot take the consumer's signature");
}

#[test]
fn what_is_not_signed_in_time_is_abandoned() {
    for (state, action) in [
        (State::Proposed, Action::Abandon),
        (State::ConsumerSigned, Action::Abandon),
        (State::Amending, Action::DropAmendment),
    ] {
        let early = in_state(state).due(SIGNING, time("2026-07-01T00:00:59Z"));
        assert_eq!(early, Due { action: None, next: Some(time("2026-07-01T00:01:00Z")) }, "{state:?}");
        let late = in_state(state).due(SIGNING, time("2026-07-01T00:01:00Z"));
        assert_eq!(late.action, Some(action), "{state:?}");
    }
}

#[test]
fn a_contract_is_renewed_a_day_before_its_end_or_ends() {
    let active = in_state(State::Active);
    let day_before = time("2026-07-31T00:00:00Z");
    assert_eq!(
        active.due(SIGNING, time("2026-07-30T23:59:59Z")),
        Due { action: None, next: Some(day_before) }
    );
    let due = active.due(SIGNING, day_before);
    assert_eq!(
        due,
        Due { action: Some(Action::Renew(time("2026-08-31T00:00:00Z"))), next: Some(active.not_after) }
    );
    assert_eq!(active.due(SIGNING, active.not_after).action, Some(Action::Expire));

    let last = Lifecycle { renewal: None, ..active };
    assert_eq!(last.due(SIGNING, day_before), Due { action: None, next: Some(active.not_after) });
    assert_eq!(last.due(SIGNING, active.not_after).action, Some(Action::Expire));
    let expired = last.expire(active.not_after);
    assert_eq!(
        (expired.state, expired.due(SIGNING, Timestamp::MAX)),
        (State::Expired, Due { action: None, next: None })
    );
    let ended = in_state(State::Ended);
    assert_eq!(ended.expire(active.not_after), ended, "what is over stays what it is");
}

#[test]
fn a_renewal_that_comes_to_nothing_is_tried_again_after_a_pause() {
    let day_before = time("2026-07-31T00:00:00Z");
    let dropped = in_state(State::Active)
        .after(&Event::AmendmentProposed, day_before)
        .and_then(|amending| amending.after(&Event::AmendmentDropped, time("2026-07-31T00:01:00Z")))
        .unwrap();
    let due = dropped.due(SIGNING, time("2026-07-31T00:01:00Z"));
    assert_eq!(due, Due { action: None, next: Some(time("2026-07-31T00:02:00Z")) });
    assert!(matches!(dropped.due(SIGNING, time("2026-07-31T00:02:00Z")).action, Some(Action::Renew(_))));
}

#[test]
fn a_renewed_contract_goes_on_until_the_new_end() {
    let now = time("2026-07-31T00:00:05Z");
    let renewed = in_state(State::Active)
        .after(&Event::AmendmentProposed, now)
        .and_then(|amending| amending.after(&Event::AmendmentSigned(renewed()), now))
        .unwrap();
    assert_eq!((renewed.state, renewed.not_after), (State::Active, time("2026-08-31T00:00:00Z")));
    assert_eq!(renewed.due(SIGNING, now).action, None);
}

#[test]
fn a_contract_of_seconds_is_renewed_too() {
    let short = terms(|clauses| {
        clauses.not_after = time("2026-07-01T00:00:10Z");
        clauses.renewal = Some(Span::clamped(10));
    });
    let active = Lifecycle { state: State::Active, ..Lifecycle::proposed(&short, time(START)) };
    assert_eq!(active.due(SIGNING, time(START)).next, Some(time("2026-07-01T00:00:07Z")));
    assert!(matches!(active.due(SIGNING, time("2026-07-01T00:00:07Z")).action, Some(Action::Renew(_))));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, failure_persistence: None, ..ProptestConfig::default() })]

    /// Whatever happens and in whatever order, doing what is due brings every contract to an end.
    #[test]
    fn every_contract_comes_to_an_end(state in prop::sample::select(ALL_STATES.to_vec()), events in prop::collection::vec(0_usize..6, 0..10)) {
        let mut now = time(START);
        let mut contract = Lifecycle { renewal: None, ..in_state(state) };
        for event in events {
            now += SignedDuration::from_hours(7);
            if let Ok(after) = contract.after(&all_events()[event], now) {
                contract = Lifecycle { renewal: None, ..after };
            }
        }
        for _ in 0..4 {
            let due = contract.due(SIGNING, now);
            contract = match due.action {
                Some(Action::Expire) => contract.expire(now),
                Some(Action::Abandon) => contract.after(&Event::Ended, now).unwrap(),
                Some(Action::DropAmendment) => contract.after(&Event::AmendmentDropped, now).unwrap(),
                Some(Action::Renew(_)) => unreachable!("it is not to be renewed"),
                None => contract,
            };
            if contract.state.is_over() {
                break;
            }
            if let Some(next) = contract.due(SIGNING, now).next {
                now = now.max(next);
            }
        }
        prop_assert!(contract.state.is_over(), "{:?} at {}", contract, now);
    }

    #[test]
    fn the_next_moment_is_when_something_is_due(state in prop::sample::select(ALL_STATES.to_vec()), seconds in 0_i64..3_000_000) {
        let contract = in_state(state);
        let now = time(START) + SignedDuration::from_secs(seconds);
        let due = contract.due(SIGNING, now);
        if let Some(next) = due.next {
            prop_assert!(next > now || due.action.is_some());
            prop_assert!(contract.due(SIGNING, next).action.is_some());
        }
    }
}
