use serde_json::json;

use super::{ValuesError, coalesce, load, merge};

#[test]
fn a_file_without_values_has_none() {
    for text in ["", "\n", "# nothing\n", "{}", "---\n"] {
        assert_eq!(load(text), Ok(json!({})), "{text:?}");
    }
    assert_eq!(load("a: {b: 1}\n"), Ok(json!({ "a": { "b": 1 } })));
}

#[test]
fn what_is_no_map_is_refused() {
    assert_eq!(load("- a"), Err(ValuesError::NoMap("a list")));
    let error = load("just words").unwrap_err().to_string();
    assert_eq!(error, "values must be a map of names to values, but this is a text");
    assert!(load("a: b: c").unwrap_err().to_string().starts_with("this is not YAML: "));
}

#[test]
fn later_values_go_over_earlier_ones() {
    for (base, over, expected) in [
        (json!({ "a": 1, "b": 2 }), json!({ "b": 3 }), json!({ "a": 1, "b": 3 })),
        (json!({ "a": { "x": 1, "y": 2 } }), json!({ "a": { "y": 3 } }), json!({ "a": { "x": 1, "y": 3 } })),
        (json!({ "a": [1, 2] }), json!({ "a": [3] }), json!({ "a": [3] })),
        (json!({ "a": { "x": 1 } }), json!({ "a": 5 }), json!({ "a": 5 })),
        (json!({ "a": 5 }), json!({ "a": { "x": 1 } }), json!({ "a": { "x": 1 } })),
        (json!({ "a": 5 }), json!({ "a": null }), json!({ "a": null })),
        (json!({}), json!({ "a": { "x": null } }), json!({ "a": { "x": null } })),
    ] {
        let mut merged = base.clone();
        merge(&mut merged, &over);
        assert_eq!(merged, expected, "{base} and {over}");
    }
}

#[test]
fn a_null_removes_a_default() {
    for (defaults, user, expected) in [
        (json!({ "a": 1, "b": 2 }), json!({}), json!({ "a": 1, "b": 2 })),
        (json!({ "a": 1, "b": 2 }), json!({ "a": null }), json!({ "b": 2 })),
        (json!({ "a": { "x": 1, "y": 2 } }), json!({ "a": { "x": null } }), json!({ "a": { "y": 2 } })),
        (json!({ "a": { "x": 1 } }), json!({ "a": null }), json!({})),
        // What has no default stays, as in Helm.
        (json!({}), json!({ "a": null }), json!({ "a": null })),
        (json!({ "a": null }), json!({}), json!({ "a": null })),
        (json!({ "a": null }), json!({ "a": { "x": 1 } }), json!({ "a": { "x": 1 } })),
        (json!({ "a": [1, 2] }), json!({ "a": [3] }), json!({ "a": [3] })),
        (json!({ "a": { "x": 1 } }), json!({ "a": 5 }), json!({ "a": 5 })),
        (json!({ "a": 5 }), json!({ "a": { "x": 1 } }), json!({ "a": { "x": 1 } })),
        (
            json!({ "a": { "x": { "p": 1, "q": 2 } } }),
            json!({ "a": { "x": { "q": 3 }, "z": 4 } }),
            json!({ "a": { "x": { "p": 1, "q": 3 }, "z": 4 } }),
        ),
    ] {
        assert_eq!(coalesce(&defaults, &user), expected, "{defaults} and {user}");
    }
}
