use jiff::Timestamp;

use super::Span;

fn span(text: &str) -> Span {
    text.parse().unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn lengths_are_read_and_written() {
    for (text, seconds, written) in [
        ("30s", 30, "30s"),
        ("90m", 5_400, "1h30m"),
        ("1h30m", 5_400, "1h30m"),
        ("24h", 86_400, "1d"),
        ("30d", 2_592_000, "30d"),
        ("14d", 1_209_600, "2w"),
        ("1s1s", 2, "2s"),
    ] {
        assert_eq!((span(text).seconds(), span(text).to_string().as_str()), (seconds, written), "{text}");
    }
}

#[test]
fn nothing_else_is_a_length() {
    for text in [
        "",
        "0s",
        "5",
        "h",
        "-1h",
        "1.5h",
        "1 h",
        "1H",
        "1ä",
        "1h ",
        "99999999999999999999s",
        "36501d",
        "1ms",
    ] {
        let message = text.parse::<Span>().unwrap_err().to_string();
        assert!(message.contains("is not a length of time"), "{message}");
    }
}

#[test]
fn the_calendar_has_an_end_and_nothing_panics_there() {
    assert_eq!(span("100d").after(Timestamp::MAX), Timestamp::MAX);
    assert_eq!(span("100d").before(Timestamp::MIN), Timestamp::MIN);
    assert_eq!(span("1m").after(Timestamp::UNIX_EPOCH).as_second(), 60);
    assert_eq!(span("1m").before(Timestamp::UNIX_EPOCH).as_second(), -60);
}
