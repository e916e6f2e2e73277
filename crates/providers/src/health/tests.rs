use super::*;

const PATIENCE: Patience = Patience { down_after: Duration::from_secs(8), up_after: Duration::from_secs(4) };

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_second(1_000_000 + seconds).unwrap()
}

/// What is thought after each of these answers, given with the second that they came in.
fn story(answers: &[(i64, bool)]) -> Vec<Health> {
    let mut record = Record::new(at(0));
    let answer = |good: bool| if good { Ok(()) } else { Err("refused".to_owned()) };
    let told = answers.iter().map(|(second, good)| {
        record.observe(answer(*good), at(*second), PATIENCE);
        record.health().clone()
    });
    told.collect()
}

fn gone(since: i64) -> Health {
    Health::Unreachable { since: at(since), why: "refused".into() }
}

#[test]
fn a_short_silence_changes_nothing() {
    let told = story(&[(0, true), (2, false), (4, false), (6, false), (8, true), (10, false), (15, false)]);
    assert_eq!(told, vec![Health::Reachable; 7]);
}

#[test]
fn a_long_silence_means_gone_since_it_last_answered() {
    let told = story(&[(0, true), (2, true), (4, false), (8, false), (10, false), (12, false)]);
    assert_eq!(told[3], Health::Reachable);
    assert_eq!(told[4..], [gone(2), gone(2)]);
}

#[test]
fn one_that_never_answered_is_gone_only_after_the_same_time() {
    assert_eq!(story(&[(0, false), (4, false), (8, false)]), [Health::Unknown, Health::Unknown, gone(0)]);
}

#[test]
fn one_that_flaps_stays_gone_until_it_is_steady() {
    let told = story(&[(0, true), (8, false), (10, true), (12, false), (14, true), (16, true), (18, true)]);
    assert_eq!(told[1..6], [gone(0), gone(0), gone(0), gone(0), gone(0)]);
    assert_eq!(told[6], Health::Reachable);
}

#[test]
fn a_clock_that_goes_back_condemns_nobody() {
    let told = story(&[(100, true), (10, false), (20, false), (107, false), (108, false)]);
    assert_eq!(told[..4], vec![Health::Reachable; 4]);
    assert_eq!(told[4], gone(100));
}

#[test]
fn only_a_changed_judgement_is_news() {
    let mut record = Record::new(at(0));
    assert!(record.observe(Ok(()), at(0), PATIENCE));
    assert!(!record.observe(Ok(()), at(2), PATIENCE));
    assert!(!record.observe(Err("reset".into()), at(4), PATIENCE));
    assert!(record.observe(Err("no route".into()), at(10), PATIENCE));
    assert!(!record.observe(Err("something else".into()), at(12), PATIENCE));
    assert_eq!(*record.health(), Health::Unreachable { since: at(2), why: "no route".into() });
}

#[test]
fn who_was_given_up_lately_or_answers_again_is_asked_often() {
    let mut record = Record::new(at(0));
    for (second, good, often) in [
        (0, true, false),
        (2, false, true),
        (8, false, true),
        // Gone: a link that is back after 10 s must be noticed before its pods are.
        (10, false, true),
        (12, false, true),
        (20, false, false),
        (60, false, false),
        // It is back, and proves it.
        (62, true, true),
        (65, true, true),
        (66, true, false),
    ] {
        let answer = if good { Ok(()) } else { Err("refused".to_owned()) };
        record.observe(answer, at(second), PATIENCE);
        assert_eq!(record.is_in_doubt(at(second)), often, "after {second} s: {record:?}");
    }
}

/// A provider is cut off for 10 s at any moment, whether it refuses or is silent: it counts as back before its pods have
/// waited for the 12 s that they do, and one that stays away counts as gone within 10 s.
#[test]
fn after_an_outage_of_ten_seconds_nothing_has_moved() {
    const PODS_WAIT: i64 = 12_000;
    for silent in [false, true] {
        for cut in 0..200 {
            let (gone, back) = outage(20_000 + cut * 10, 9_990, silent);
            let (gone, back) = (gone - cut * 10 - 20_000, back - cut * 10 - 20_000);
            assert!(gone < 10_000, "noticed after {gone} ms");
            assert!(back < gone + PODS_WAIT - 2_000, "gone after {gone} ms, back after {back} ms");
        }
    }
}

/// When a provider counts as gone, and as back, that is cut off for so long at this moment, in milliseconds.
fn outage(cut: i64, length: i64, silent: bool) -> (i64, i64) {
    const SILENCE: i64 = 2_000;
    let at = |millis: i64| Timestamp::from_millisecond(1_000_000_000 + millis).unwrap();
    let (mut record, mut now, mut gone) = (Record::new(at(0)), 0, None);
    loop {
        let asked = now;
        let away = asked >= cut && asked < cut + length;
        // One that was under way when the link broke hangs as well.
        now += if away && silent { SILENCE } else { 5 };
        record.observe(if away { Err("away".to_owned()) } else { Ok(()) }, at(now), PATIENCE);
        match (gone, record.health().is_gone()) {
            (None, true) => gone = Some(now),
            (Some(gone), false) => return (gone, now),
            _ => assert!(now < 100_000, "{record:?}"),
        }
        now = if record.is_in_doubt(at(now)) { now + 500 } else { now.max(asked + 2_000) };
    }
}
