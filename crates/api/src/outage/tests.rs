use super::*;

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(1_800_000_000 + second).unwrap()
}

fn read(text: &str) -> Option<Outage> {
    Outage::read(&BTreeMap::from([(LAST_OUTAGE.to_owned(), text.to_owned())]))
}

#[test]
fn what_is_written_is_read_again() {
    let half = at(20).checked_add(SignedDuration::from_millis(500)).unwrap();
    let outage = Outage::new(at(0), half, None);
    assert_eq!(outage.to_string(), "2027-01-15T08:00:00Z/2027-01-15T08:00:20Z");
    assert_eq!(read(&outage.to_string()), Some(outage));
}

#[test]
fn nonsense_is_no_outage() {
    for text in ["", "/", "now/then", "2027-01-15T08:00:00Z", "2027-01-15T08:00:20Z/2027-01-15T08:00:00Z"] {
        assert_eq!(read(text), None, "{text}");
    }
    assert_eq!(Outage::read(&BTreeMap::new()), None);
}

#[test]
fn two_outages_with_little_between_are_one() {
    let first = Outage::new(at(0), at(100), None);
    assert_eq!(Outage::new(at(130), at(150), Some(first)), Outage { from: at(0), until: at(150) });
    assert_eq!(Outage::new(at(700), at(800), Some(first)), Outage { from: at(700), until: at(800) });
    // A clock that was set back.
    assert_eq!(Outage::new(at(-50), at(-20), Some(first)), Outage { from: at(-50), until: at(-20) });
}
