use serde_json::{Value, json};

use super::*;

/// A policy in which everything is set.
fn full() -> Value {
    json!({
        "peers": {
            "clusterIDs": ["a"],
            "matchLabels": { "tier": "gold" },
            "matchExpressions": [{ "key": "zone", "operator": "In", "values": ["x"] }],
        },
        "action": "Allow",
        "approval": "Required",
        "resources": ["cpu", "memory", "nvidia.com/*"],
        "nodeSelector": {
            "matchLabels": { "pool": "shared" },
            "matchExpressions": [{ "key": "spot", "operator": "DoesNotExist" }],
        },
        "share": { "percentage": 50, "overcommit": "1.5", "rounding": "Up", "perPeerPercentage": 25 },
        "shares": {
            "cpu": {
                "percentage": 10, "overcommit": "2", "rounding": "Nearest", "perPeerPercentage": 5, "cap": "8",
                "perPeerCap": "4", "reserve": "500m", "autoscaled": "16",
            },
        },
        "storageClasses": ["fast"],
        "defaultStorageClass": "fast",
        "services": ["shop/*"],
        "images": ["registry.example.com/*"],
        "prices": { "currency": "EUR", "period": "Monthly", "perUnit": { "cpu": "20" } },
        "windows": [{ "days": ["Sat"], "from": "20:00", "to": "06:00", "timeZone": "Europe/Rome" }],
        "notBefore": "2026-01-01T00:00:00Z",
        "notAfter": "2027-01-01T00:00:00Z",
        "enforcement": "Soft",
        "contract": {
            "offerValidity": "1h", "duration": "30d", "renewal": "None",
            "serviceLevel": { "availability": "99.9" },
        },
    })
}

/// What is set in `value` somewhere, as paths.
fn paths(path: &str, value: &Value, found: &mut Vec<String>) {
    match value {
        Value::Null => {}
        Value::Object(fields) => {
            fields.iter().for_each(|(name, value)| paths(&format!("{path}.{name}"), value, found));
        }
        Value::Array(items) => items.iter().for_each(|item| paths(&format!("{path}[]"), item, found)),
        other => found.push(format!("{path}={other}")),
    }
}

fn all_paths(value: &Value) -> Vec<String> {
    let mut found = Vec::new();
    paths("", value, &mut found);
    found
}

#[test]
fn everything_that_is_set_reaches_the_evaluation() {
    let spec: SharingPolicySpec = serde_json::from_value(full()).unwrap();
    assert_eq!(serde_json::to_value(&spec).unwrap(), full(), "nothing is lost in reading");
    let read = serde_json::to_value(liqo_core::policy::Spec::from(&spec)).unwrap();
    assert_eq!(all_paths(&read), all_paths(&full()), "nothing is lost in converting");
}

#[test]
fn a_policy_in_which_everything_is_set_is_valid() {
    let spec: SharingPolicySpec = serde_json::from_value(full()).unwrap();
    let policy = liqo_core::policy::Policy::read("full", &(&spec).into());
    assert_eq!(policy.problems(), []);
}

#[test]
fn the_shape_is_that_of_the_evaluation() {
    let read: liqo_core::policy::Spec = serde_json::from_value(full()).unwrap();
    let spec: SharingPolicySpec = serde_json::from_value(full()).unwrap();
    assert_eq!(liqo_core::policy::Spec::from(&spec), read);
}

#[test]
fn an_empty_policy_shares_with_everybody() {
    let spec: SharingPolicySpec = serde_json::from_value(json!({})).unwrap();
    assert_eq!(spec, SharingPolicySpec::default());
    let expected = json!({ "action": "Allow", "approval": "Automatic", "enforcement": "Hard" });
    assert_eq!(serde_json::to_value(&spec).unwrap(), expected);
}
