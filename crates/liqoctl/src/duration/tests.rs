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
