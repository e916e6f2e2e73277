use serde_json::json;

use super::*;

fn details() -> Value {
    let index = |variant: &str, resident: u64| json!({"variant": variant, "answer": {"now": {"resident_bytes": resident, "peak_bytes": resident + 1_000_000}}});
    let events =
        |variant: &str, core: f64| json!({"variant": variant, "core_at_1000_events_per_second": core});
    json!({
        "pods": 10_000,
        "index": [index("trimmed", 25_000_000), index("reflector", 100_000_000)],
        "events": [events("trimmed", 0.1), events("reflector", 0.2)],
    })
}

#[test]
fn memory_is_that_of_the_whole_process_in_millions_of_bytes() {
    let measurements = measurements(&details()).expect("complete");
    assert_eq!(measurements[0].samples.median(), 25.0);
    assert_eq!(measurements[0].ratio(), 0.25);
    assert_eq!(measurements[1].samples.median(), 26.0);
    assert_eq!(measurements[2].ratio(), 0.5);
}

#[test]
fn a_number_that_is_missing_is_an_error_and_not_a_zero() {
    let mut details = details();
    details["events"] = json!([]);
    let error = measurements(&details).expect_err("incomplete").to_string();
    assert!(error.contains("nothing about trimmed in events"), "{error}");
}
