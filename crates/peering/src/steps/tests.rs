use serde_json::json;

use super::*;

#[test]
fn a_difference_is_what_a_merge_needs() {
    let old = json!({ "a": 1, "b": { "c": 2, "d": 3 }, "e": [1, 2] });
    let new = json!({ "b": { "c": 2, "f": 4 }, "e": [1], "g": "x" });
    let patch = difference(&old, &new).unwrap();
    assert_eq!(patch, json!({ "a": null, "b": { "d": null, "f": 4 }, "e": [1], "g": "x" }));
    assert_eq!(difference(&new, &new), None);
    let mut merged = old;
    crate::testing::merge(&mut merged, &patch);
    assert_eq!(merged, new);
}
