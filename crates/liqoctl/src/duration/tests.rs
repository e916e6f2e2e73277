use super::*;

#[test]
fn delays_are_read_with_their_unit() {
    assert_eq!(parse_delay("100ms"), Ok(Duration::from_millis(100)));
    assert_eq!(parse_delay("1.5s"), Ok(Duration::from_millis(1500)));
    assert_eq!(parse_delay("250us"), Ok(Duration::from_micros(250)));
}

#[test]
fn nonsense_is_refused_with_an_example() {
    for text in ["", "100", "fast", "ms", "-5ms", "1h", "NaNs", "1e400s"] {
        assert!(parse_delay(text).unwrap_err().contains("like 100ms"), "{text}");
    }
    for text in ["0ms", "61s"] {
        assert!(parse_delay(text).unwrap_err().contains("at most 60 s"), "{text}");
    }
}

#[test]
fn spans_are_read_as_kubectl_reads_them() {
    for (text, seconds) in [
        ("30s", 30.0),
        ("10m", 600.0),
        ("1h30m", 5400.0),
        ("2d", 172_800.0),
        ("500ms", 0.5),
        ("1.5h", 5400.0),
    ] {
        assert_eq!(parse_span(text), Ok(Duration::from_secs_f64(seconds)), "{text}");
    }
    for text in ["", "30", "m", "-5m", "1h-30m", "5 m", "1y", "NaNs", "infs", "1e400s", "0s", "400d", "10mm"]
    {
        assert!(parse_span(text).unwrap_err().contains("10m or 1h30m"), "{text}");
    }
}
