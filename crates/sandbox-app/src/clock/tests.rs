use std::time::{Duration, UNIX_EPOCH};

use super::{parse_duration, rfc3339};

#[test]
fn durations_are_read_with_and_without_unit() {
    let cases = [("250ms", 250), ("2s", 2000), ("2", 2000), ("0", 0), ("5m", 300_000), ("1h", 3_600_000)];
    for (text, expected) in cases {
        assert_eq!(parse_duration(text), Ok(Duration::from_millis(expected)), "for {text:?}");
    }
}

#[test]
fn what_is_no_duration_is_refused() {
    let nonsense = [
        "",
        "s",
        "-1s",
        "1.5s",
        "1 s",
        "2d",
        "ms",
        "99999999999999999999",
        "18446744073709551615h",
        "8000h",
        "٣s",
    ];
    for text in nonsense {
        let error = parse_duration(text).expect_err(text);
        assert!(error.contains(&format!("{text:?}")), "the message shows the input: {error}");
    }
}

#[test]
fn dates_are_those_of_the_calendar() {
    let cases = [
        (0, "1970-01-01T00:00:00.000Z"),
        (951_782_399_999, "2000-02-28T23:59:59.999Z"),
        (951_782_400_000, "2000-02-29T00:00:00.000Z"),
        (1_709_164_800_000, "2024-02-29T00:00:00.000Z"),
        (1_735_689_599_001, "2024-12-31T23:59:59.001Z"),
        (4_107_542_400_000, "2100-03-01T00:00:00.000Z"),
    ];
    for (millis, expected) in cases {
        assert_eq!(rfc3339(UNIX_EPOCH + Duration::from_millis(millis)), expected);
    }
}
