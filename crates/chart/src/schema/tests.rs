use serde_json::{Value, json};

use super::{SchemaError, check};

fn mistakes(schema: &Value, values: &Value) -> Vec<String> {
    match check(schema, values) {
        Ok(()) => Vec::new(),
        Err(SchemaError::Values(mistakes)) => mistakes,
        Err(SchemaError::Schema(reason)) => panic!("the schema is wrong: {reason}"),
    }
}

#[test]
fn each_mistake_is_told_with_its_path() {
    let schema = json!({
        "$schema": "http://json-schema.org/draft-07/schema#",
        "additionalProperties": false,
        "properties": {
            "controllerManager": { "properties": { "replicas": { "type": "integer", "minimum": 1 } } },
            "args": { "type": "array", "items": { "type": "string" } },
            "level": { "enum": ["restricted", "baseline"] },
        },
        "required": ["level"],
    });
    for (values, expected) in [
        (json!({ "level": "baseline", "args": ["a"], "controllerManager": { "replicas": 2 } }), vec![]),
        (
            json!({ "level": "baseline", "controllerManager": { "replicas": "two" } }),
            vec!["controllerManager.replicas: \"two\" is not of type \"integer\""],
        ),
        (
            json!({ "level": "baseline", "controllerManager": { "replicas": 0 } }),
            vec!["controllerManager.replicas: 0 is less than the minimum of 1"],
        ),
        (json!({ "level": "baseline", "args": ["a", 5] }), vec!["args[1]: 5 is not of type \"string\""]),
        (json!({}), vec!["values: \"level\" is a required property"]),
        (
            json!({ "level": "x", "more": 1 }),
            vec![
                "level: \"x\" is not one of \"restricted\" or \"baseline\"",
                "values: Additional properties are not allowed ('more' was unexpected)",
            ],
        ),
    ] {
        assert_eq!(mistakes(&schema, &values), expected, "{values}");
    }
}

#[test]
fn a_mistake_of_something_large_is_told_in_short() {
    let told = mistakes(&json!({ "type": "string" }), &json!({ "a": "é".repeat(1000) }));
    assert_eq!(told[0].chars().count(), "values: ".len() + 300 + " …".chars().count(), "{told:?}");
}

#[test]
fn only_the_first_of_many_mistakes_are_told() {
    let values = json!((0..100).collect::<Vec<_>>());
    assert_eq!(mistakes(&json!({ "items": { "type": "string" } }), &values).len(), 10);
}

#[test]
fn a_wrong_schema_is_told_apart_from_wrong_values() {
    assert!(matches!(check(&json!({ "type": 5 }), &json!({})), Err(SchemaError::Schema(_))));
    // Nothing is fetched.
    let elsewhere = json!({ "$ref": "https://example.com/schema.json" });
    assert!(matches!(check(&elsewhere, &json!({})), Err(SchemaError::Schema(_))));
}
