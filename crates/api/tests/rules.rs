//! The rules of the kinds, evaluated without a cluster.
//!
//! Quick, but not the last word: types, lengths and choices are checked by the API server alone (`tests/objects.rs`).

#![allow(clippy::expect_used, clippy::panic, reason = "a test that cannot go on has failed")]

#[path = "support/cases.rs"]
mod cases;

use cases::Attempt;
use kube::core::cel::{Validator, apply_defaults};
use serde_json::Value;

/// The plural name and the schema of every kind.
fn schemas() -> Vec<(String, Value)> {
    let schema = |crd: k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition| {
        let version = crd.spec.versions.into_iter().next().expect("one version");
        let schema = version.schema.and_then(|schema| schema.open_api_v3_schema).expect("a schema");
        (crd.spec.names.plural, serde_json::to_value(schema).expect("schemas are JSON"))
    };
    liqo_api::crds().into_iter().map(schema).collect()
}

/// Every message that a rule of this schema can give.
fn messages(schema: &Value) -> Vec<String> {
    let mut found = Vec::new();
    if let Some(rules) = schema["x-kubernetes-validations"].as_array() {
        found.extend(rules.iter().filter_map(|rule| rule["message"].as_str().map(str::to_owned)));
    }
    let children = schema.as_object().into_iter().flat_map(|fields| fields.values());
    let items = schema.as_array().into_iter().flatten();
    found.extend(children.chain(items).flat_map(messages));
    found
}

#[test]
fn every_object_of_the_tables_is_accepted_or_refused_by_the_rules_as_it_should() {
    let mut wrong = Vec::new();
    let mut refused_by_rules = 0;
    for (plural, schema) in schemas() {
        let known = messages(&schema);
        for case in cases::table(&plural).cases() {
            let object = apply_defaults(&schema, &case.object);
            let before = match &case.attempt {
                Attempt::Create => None,
                Attempt::Change(before) | Attempt::Status(before) => Some(apply_defaults(&schema, before)),
            };
            let result = Validator::new().validate(&schema, &object, before.as_ref());
            let errors = result.err().map(|errors| errors.to_string());
            match (&case.refusal, errors) {
                (None, None) => {}
                (None, Some(errors)) => wrong.push(format!("{}: refused: {errors}", case.title)),
                // Not a rule's message, so not for this test.
                (Some(says), _) if !known.iter().any(|message| message.contains(says)) => {}
                (Some(says), Some(errors)) if errors.contains(says) => refused_by_rules += 1,
                (Some(says), errors) => {
                    wrong.push(format!("{}: wanted {says:?}, got {errors:?}", case.title));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(
        refused_by_rules > 90,
        "only {refused_by_rules} refusals come from rules: are the messages still found?"
    );
}
