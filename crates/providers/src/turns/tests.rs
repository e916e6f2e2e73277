use super::*;

const ROUND: Duration = Duration::from_secs(2);

fn id(name: &str) -> ClusterId {
    name.parse().unwrap()
}

fn after(milliseconds: u64) -> Duration {
    Duration::from_millis(milliseconds)
}

#[test]
fn who_is_fine_is_asked_once_in_a_round_and_who_is_in_doubt_soon() {
    let (now, milan) = (Instant::now(), id("milan"));
    let mut turns = Turns::default();
    assert_eq!(turns.due(&milan, true, ROUND, now), Some(now), "nobody has asked it yet");
    turns.begin(&milan, now);
    assert_eq!(turns.due(&milan, true, ROUND, now + after(1900)), None, "it is being asked");
    turns.end(&milan, now + after(100));
    for (in_doubt, expected) in [(false, 2000), (true, 600)] {
        assert_eq!(turns.due(&milan, in_doubt, ROUND, now), Some(now + after(expected)), "{in_doubt}");
    }
    // One that took its time is left alone for a moment.
    turns.end(&milan, now + after(2000));
    assert_eq!(turns.due(&milan, true, ROUND, now), Some(now + after(2500)));
}

#[test]
fn one_that_does_not_answer_keeps_nobody_waiting() {
    let (now, milan, rome) = (Instant::now(), id("milan"), id("rome"));
    let mut turns = Turns::default();
    turns.begin(&milan, now);
    turns.begin(&rome, now);
    turns.end(&rome, now + after(10));
    assert!(turns.last(&id("new")) < turns.last(&rome), "who was never asked comes first");
    assert_eq!(turns.due(&milan, true, ROUND, now + after(510)), None);
    assert_eq!(turns.due(&rome, true, ROUND, now + after(510)), Some(now + after(510)));
    // One that lends no more is forgotten when it has answered, and counted until then.
    turns.keep(|it| *it == rome);
    assert_eq!(turns.busy(), 1);
    turns.end(&milan, now + after(2000));
    turns.keep(|it| *it == rome);
    assert_eq!((turns.busy(), turns.due(&milan, true, ROUND, now)), (0, Some(now)));
}
