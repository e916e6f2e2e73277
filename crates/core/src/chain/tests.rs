use jiff::SignedDuration;
use proptest::prelude::*;

use super::{Broken, Entry, Event, Head, Problem, genesis, verify};
use crate::canonical::Digest;
use crate::testing::{contract_id, id, time};

/// Something done to a log.
type Edit<'a> = &'a dyn Fn(&mut Vec<Entry>);

fn log(length: u64) -> Vec<Entry> {
    let mut head = Head::start(&id("north"));
    let mut entries = Vec::new();
    for index in 0..length {
        let now = time("2026-07-01T00:00:00.25Z") + SignedDuration::from_mins(i64::try_from(index).unwrap());
        let event = Event::ALL[usize::try_from(index).unwrap() % Event::ALL.len()];
        let entry =
            head.append(contract_id(&format!("c-{}", index % 3)), Digest::of("test", &[0]), event, now);
        head = head.follow(&entry).unwrap();
        entries.push(entry);
    }
    entries
}

fn check(entries: &[Entry]) -> Result<Head, Broken> {
    verify(Head::start(&id("north")), entries, None)
}

#[test]
fn the_hash_is_the_documented_one() {
    let entry = &log(1)[0];
    let written = format!(
        r#"{{"contract":"c-0","digest":"{}","event":"proposed","index":"0","previous":"{}","time":"2026-07-01T00:00:00Z"}}"#,
        Digest::of("test", &[0]),
        Digest::of("liqo.io/contract-log-genesis/v1", b"north"),
    );
    assert_eq!(entry.hash, Digest::of("liqo.io/contract-log/v1", written.as_bytes()));
    assert_eq!(entry.previous, genesis(&id("north")));
}

#[test]
fn an_untouched_log_is_fine_also_from_the_middle() {
    let entries = log(9);
    let head = check(&entries).unwrap();
    assert_eq!((head.length, head.hash), (9, entries[8].hash));
    let middle = check(&entries[..4]).unwrap();
    assert_eq!(verify(middle, &entries[4..], None), Ok(head));
    assert_eq!(verify(Head::start(&id("north")), &entries, Some(middle)), Ok(head));
    assert_eq!(check(&[]).unwrap(), Head::start(&id("north")));
}

#[test]
fn the_first_broken_entry_is_found_with_the_reason() {
    let broken = |change: &dyn Fn(&mut Vec<Entry>)| {
        let mut entries = log(6);
        change(&mut entries);
        check(&entries).unwrap_err()
    };
    let rehash = |entry: &mut Entry| entry.hash = entry.compute_hash();
    let cases: [(Edit<'_>, u64, Problem); 10] = [
        (&|log| log[2].event = Event::Kept, 2, Problem::Changed),
        (&|log| log[2].contract = contract_id("other"), 2, Problem::Changed),
        (&|log| log[2].digest = Digest::of("test", &[1]), 2, Problem::Changed),
        (&|log| log[2].time += SignedDuration::from_secs(1), 2, Problem::Changed),
        (&|log| log[2].hash = log[1].hash, 2, Problem::Changed),
        (
            &|log| {
                log[2].event = Event::Kept;
                rehash(&mut log[2]);
            },
            3,
            Problem::Replaced,
        ),
        (&|log| drop(log.remove(3)), 3, Problem::Number(4)),
        (&|log| log.swap(1, 2), 1, Problem::Number(2)),
        (
            &|log| {
                log[0].previous = genesis(&id("south"));
                rehash(&mut log[0]);
            },
            0,
            Problem::Replaced,
        ),
        (
            &|log| {
                log[5].time = time("2020-01-01T00:00:00Z");
                rehash(&mut log[5]);
            },
            5,
            Problem::Time,
        ),
    ];
    for (number, (change, index, problem)) in cases.into_iter().enumerate() {
        assert_eq!(broken(change), Broken { index, problem }, "case {number}");
    }
    let words = broken(&|log| log[2].event = Event::Kept).to_string();
    assert_eq!(words, "the log is broken at entry 2: it was changed: its hash is not that of what it says");
}

#[test]
fn a_cut_or_rewritten_end_is_noticed_by_who_saw_it() {
    let entries = log(6);
    let seen = check(&entries).unwrap();
    let cut = verify(Head::start(&id("north")), &entries[..5], Some(seen)).unwrap_err();
    assert_eq!(cut, Broken { index: 5, problem: Problem::End });
    let mut rewritten = entries;
    rewritten[5].event = Event::Kept;
    rewritten[5].hash = rewritten[5].compute_hash();
    assert!(check(&rewritten).is_ok(), "the chain alone cannot tell");
    assert!(verify(Head::start(&id("north")), &rewritten, Some(seen)).is_err());
}

#[test]
fn a_clock_that_was_put_back_does_not_put_the_log_back() {
    let entries = log(2);
    let head = check(&entries).unwrap();
    let next =
        head.append(contract_id("c"), Digest::of("test", &[]), Event::Ended, time("1999-01-01T00:00:00Z"));
    assert_eq!(next.time, entries[1].time);
    assert!(head.follow(&next).is_ok());
}

#[test]
fn events_are_read_and_written() {
    for event in Event::ALL {
        assert_eq!(Event::parse(event.as_str()), Some(event));
    }
    assert_eq!(Event::parse("Proposed"), None);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn whoever_rewrites_the_past_is_noticed(length in 2_u64..12, at: prop::sample::Index, what in 0_usize..5, rehash: bool) {
        let mut entries = log(length);
        let seen = check(&entries).unwrap();
        let at = at.index(entries.len());
        let entry = &mut entries[at];
        match what {
            0 => entry.contract = contract_id("forged"),
            1 => entry.digest = Digest::of("test", b"forged"),
            2 => entry.event = if entry.event == Event::Kept { Event::Ended } else { Event::Kept },
            3 => entry.time += SignedDuration::from_secs(7),
            _ => drop(entries.remove(at)),
        }
        if rehash && at < entries.len() {
            entries[at].hash = entries[at].compute_hash();
        }
        prop_assert!(verify(Head::start(&id("north")), &entries, Some(seen)).is_err());
    }
}

#[test]
fn an_entry_is_one_line_without_whose_hash_is_what_was_hashed() {
    for entry in log(9) {
        let line = entry.to_line();
        assert_eq!(Entry::parse(&line), Ok(entry.clone()));
        let hashed = line.replace(&format!("\"hash\":\"{}\",", entry.hash), "");
        assert_eq!(Digest::of("liqo.io/contract-log/v1", hashed.as_bytes()), entry.hash);
    }
}

#[test]
fn a_line_in_any_other_spelling_is_none() {
    let line = log(1)[0].to_line();
    for (what, expected) in [
        (line.replace("\"index\":\"0\"", "\"index\":0"), "index"),
        (line.replace("\"index\":\"0\"", "\"index\":\"+0\""), "entry"),
        (line.replace("\"index\":\"0\"", "\"index\":\"-1\""), "index"),
        (line.replace("00:00:00Z", "00:00:00+00:00"), "entry"),
        (line.replace("proposed", "invented"), "event"),
        (line.replace("c-0", "C 0"), "contract"),
        (line.replace("\"digest\":", "\"digesd\":"), "digest"),
        (line.replace(",\"time\"", ",\"text\":\"\",\"time\""), "entry"),
        (format!("{line} "), "document"),
        (line.replace(',', ", "), "canonical"),
        ("[]".to_owned(), "entry"),
        (String::new(), "JSON"),
    ] {
        let problem = Entry::parse(&what).unwrap_err().to_string();
        assert!(problem.contains(expected), "{what}: {problem}");
    }
}
