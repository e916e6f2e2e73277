use super::*;

fn said(text: &str) -> BTreeMap<String, String> {
    [(annotations::FAIL_BACK.to_owned(), text.to_owned())].into()
}

fn after(seconds: i64) -> FailBack {
    FailBack::After(SignedDuration::from_secs(seconds))
}

#[test]
fn the_first_that_says_something_counts() {
    let (object, namespace, silent) = (said("true"), said("300"), BTreeMap::new());
    assert_eq!(FailBack::read([&object, &namespace]), Ok(after(60)));
    assert_eq!(FailBack::read([&silent, &namespace]), Ok(after(300)));
    assert_eq!(FailBack::read([&said("false"), &namespace]), Ok(FailBack::Never));
    assert_eq!(FailBack::read([&silent, &silent]), Ok(FailBack::Never));
}

#[test]
fn nonsense_is_told_and_moves_nothing() {
    for text in ["", "yes", "True", "-1", "9", "86401", "60s", "1.5"] {
        let error = FailBack::read([&said(text)]).unwrap_err();
        assert!(error.contains("expected true, false or a number of seconds from 10 to 86400"), "{error}");
    }
}
