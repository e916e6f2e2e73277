use super::*;

fn said(text: &str) -> BTreeMap<String, String> {
    [(annotations::FAILOVER.to_owned(), text.to_owned())].into()
}

#[test]
fn the_first_that_says_something_counts() {
    let (object, namespace, silent) = (said("never"), said("60"), BTreeMap::new());
    assert_eq!(Failover::read([&object, &namespace]), Ok(Failover::Never));
    assert_eq!(Failover::read([&silent, &namespace]), Ok(Failover::After(60)));
    assert_eq!(Failover::read([&silent, &silent]), Ok(Failover::default()));
}

#[test]
fn nonsense_is_told() {
    for text in ["", "soon", "-1", "1.5", "604801", "12s"] {
        let error = Failover::read([&said(text)]).unwrap_err();
        assert!(error.contains("expected never or a number of seconds"), "{error}");
    }
}
