use super::*;

fn record(holder: &str, mark: &str) -> Record {
    let holder = (!holder.is_empty()).then(|| holder.to_owned());
    Record { holder, duration: Duration::from_secs(15), mark: mark.to_owned() }
}

#[tokio::test(start_paused = true)]
async fn a_lease_is_free_when_nobody_holds_it_or_its_holder_was_silent_for_its_duration() {
    let start = Instant::now();
    let after = |seconds| start + Duration::from_secs(seconds);
    assert_eq!(evaluate(&Observation::update(None, record("", "1"), start), "me", start), Verdict::Free);
    let seen = Observation::update(None, record("other", "1"), start);
    assert_eq!(evaluate(&seen, "me", after(14)), Verdict::Held { by: "other".into(), until: after(15) });
    assert_eq!(evaluate(&seen, "me", after(15)), Verdict::Free);
    assert_eq!(evaluate(&seen, "other", after(99)), Verdict::Mine);
}

#[tokio::test(start_paused = true)]
async fn a_renewal_counts_from_when_we_saw_it_and_an_unchanged_lease_grows_old() {
    let start = Instant::now();
    let after = |seconds| start + Duration::from_secs(seconds);
    let seen = Observation::update(None, record("other", "1"), start);
    let same = Observation::update(Some(seen.clone()), record("other", "1"), after(10));
    assert_eq!(same, seen);
    let renewed = Observation::update(Some(same), record("other", "2"), after(14));
    assert!(matches!(evaluate(&renewed, "me", after(28)), Verdict::Held { .. }));
    assert_eq!(evaluate(&renewed, "me", after(29)), Verdict::Free);
}

#[tokio::test(start_paused = true)]
async fn leadership_is_invalid_once_its_time_is_over_even_if_nobody_cancelled_it() {
    let leadership = Leadership {
        ended: CancellationToken::new(),
        valid_until: Arc::new(Mutex::new(Instant::now() + Duration::from_secs(10))),
        term: 1,
    };
    assert!(leadership.is_valid());
    tokio::time::advance(Duration::from_secs(10)).await;
    assert!(!leadership.is_valid() && !leadership.ended().is_cancelled());
}
