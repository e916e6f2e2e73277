use super::*;
use crate::testing::{home, milan, names, now, rome};

fn refused(status: u16) -> CallError {
    CallError::Refused { url: "https://b".to_owned(), status, words: "no".to_owned() }
}

fn busy(retry_after: Option<u64>) -> CallError {
    let retry_after = retry_after.map(Duration::from_secs);
    CallError::Busy { url: "https://b".to_owned(), status: 503, words: "wait".to_owned(), retry_after }
}

#[test]
fn a_refusal_says_what_to_do_and_is_liqos_state() {
    use PeeringConditionStatus as Status;
    let url = || "https://b".to_owned();
    let cases = [
        (refused(401), false, Status::EmptyDenied, "TokenMissing"),
        (refused(403), false, Status::EmptyDenied, "TokenMissing"),
        (refused(401), true, Status::Denied, "TokenRefused"),
        (refused(403), true, Status::Denied, "RefusedByPeer"),
        (refused(404), true, Status::Error, "NoAuthenticationService"),
        (busy(None), true, Status::Pending, "PeerBusy"),
        (
            CallError::Unreachable { url: url(), reason: String::new() },
            true,
            Status::Pending,
            "PeerUnreachable",
        ),
        (
            CallError::Untrusted { url: url(), reason: String::new() },
            true,
            Status::Error,
            "CertificateNotTrusted",
        ),
        (CallError::Bundle(crate::client::InvalidBundle::Empty), true, Status::Error, "InvalidCaBundle"),
        (CallError::Nonsense { url: url(), reason: String::new() }, true, Status::Error, "NonsenseAnswer"),
    ];
    for (error, with_token, status, reason) in cases {
        let failure = Failure::of(&error, with_token);
        assert_eq!((failure.status, failure.reason), (status, reason), "{error}");
        assert!(!failure.message.is_empty());
    }
    assert!(Failure::of(&refused(401), true).message.contains("liqoctl token create"));
}

#[test]
fn what_may_be_over_soon_is_tried_soon_and_what_somebody_must_change_later() {
    let busy = Failure::of(&busy(None), true);
    let denied = Failure::of(&refused(401), true);
    let wait = |failure: &Failure, failures| failure.retry_at(failures, 1.0, now()).duration_since(now());
    assert!(wait(&busy, 1) <= SignedDuration::from_millis(500));
    assert!(wait(&busy, 5) > wait(&busy, 4));
    assert_eq!(wait(&busy, 18), SignedDuration::from_secs(5));
    assert_eq!(wait(&busy, 19), SignedDuration::from_secs(8));
    assert_eq!(wait(&busy, 20), SignedDuration::from_secs(16));
    assert_eq!(wait(&busy, 1000), SignedDuration::from_secs(300));
    assert!(wait(&denied, 3) <= SignedDuration::from_secs(2));
    assert!(wait(&denied, 4) >= SignedDuration::from_mins(5));
    assert_eq!(wait(&denied, u32::MAX), SignedDuration::from_mins(10));
}

#[test]
fn a_peer_that_says_when_to_come_again_is_asked_then() {
    let wait = |after, failures| {
        let failure = Failure::of(&busy(Some(after)), true);
        failure.retry_at(failures, 1.0, now()).duration_since(now())
    };
    assert!(wait(1, 1) <= SignedDuration::from_millis(200));
    assert_eq!((wait(1, 10), wait(1, 60)), (SignedDuration::from_secs(1), SignedDuration::from_secs(1)));
    // Whoever says so for ever keeps us busy no more than others.
    assert_eq!(wait(1, 61), SignedDuration::from_secs(300));
    assert_eq!(wait(30, 1), SignedDuration::from_secs(30));
    assert_eq!(wait(u64::MAX, 1), SignedDuration::from_secs(300));
}

#[test]
fn whoever_answers_must_be_the_cluster_that_is_meant() {
    let found =
        PeerIdentity { identity: names(milan()), public_key: Some(milan().public_key()), fingerprint: None };
    let expected = |id: Option<&str>, name: Option<&str>| ForeignIdentity {
        cluster_id: id.map(str::to_owned),
        cluster_name: name.map(str::to_owned),
    };
    let milan_key = KnownKey::Key(milan().public_key());
    let check = |expected: Option<&ForeignIdentity>, known: &KnownKey, found: &PeerIdentity| {
        check_peer(found, expected, &home().id, known).map_err(|failure| failure.reason)
    };
    assert_eq!(check(None, &KnownKey::None, &found), Ok(()));
    assert_eq!(check(Some(&expected(Some("milan-id"), None)), &milan_key, &found), Ok(()));
    assert_eq!(check(Some(&expected(Some("rome-id"), None)), &milan_key, &found), Err("IdentityMismatch"));
    assert_eq!(check(Some(&expected(None, Some("rome"))), &milan_key, &found), Err("IdentityMismatch"));
    assert_eq!(check(None, &KnownKey::Key(rome().public_key()), &found), Err("KeyMismatch"));
    assert_eq!(check(None, &KnownKey::Unreadable, &found), Err("KeyMismatch"));
    let keyless = PeerIdentity { public_key: None, ..found.clone() };
    assert_eq!(check(None, &milan_key, &keyless), Err("KeyMismatch"));
    let us = PeerIdentity { identity: names(home()), ..found };
    assert_eq!(check(None, &KnownKey::None, &us), Err("OwnCluster"));
}
