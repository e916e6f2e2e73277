use serde_json::{Value, json};

use super::*;

fn found(container: Value) -> Found {
    let mut container = container;
    container["name"] = json!("manager");
    find(&serde_json::from_value(container).unwrap())
}

fn said(text: &str) -> Found {
    Found::Said(text.to_owned())
}

#[test]
fn a_flag_counts_before_the_variable_and_the_last_one_before_the_first() {
    let variable = json!([{"name": VARIABLE, "value": "30"}]);
    assert_eq!(found(json!({"args": ["--resource-sharing-percentage=90"], "env": variable})), said("90"));
    assert_eq!(found(json!({"args": ["-v", "--resource-sharing-percentage", "70"]})), said("70"));
    let twice = ["--resource-sharing-percentage=90", "--resource-sharing-percentage=20"];
    assert_eq!(found(json!({ "args": twice })), said("20"));
    assert_eq!(found(json!({"args": ["--cluster-name=x"], "env": variable})), said("30"));
}

#[test]
fn what_is_said_nowhere_is_the_default_and_what_is_said_elsewhere_is_not() {
    assert_eq!(found(json!({})), Found::Nothing);
    assert_eq!(found(json!({"args": ["--resource-sharing-percentages=1"]})), Found::Nothing);
    assert_eq!(found(json!({"env": [{"name": "OTHER", "value": "1"}]})), Found::Nothing);
    let elsewhere = json!([{"name": VARIABLE, "valueFrom": {"configMapKeyRef": {"name": "x", "key": "y"}}}]);
    assert_eq!(found(json!({ "env": elsewhere })), Found::Hidden);
    assert_eq!(found(json!({"envFrom": [{"configMapRef": {"name": "x"}}]})), Found::Hidden);
}
