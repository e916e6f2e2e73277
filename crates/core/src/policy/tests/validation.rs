//! What is wrong with which field.

use serde_json::{Value, json};

use crate::policy::{Policy, Spec};

fn problems(spec: Value) -> Vec<String> {
    let spec: Spec = serde_json::from_value(spec).unwrap();
    Policy::read("p", &spec).problems().iter().map(ToString::to_string).collect()
}

#[test]
fn each_mistake_is_told_with_its_field() {
    let window = |window: Value| json!({"windows": [{"from": "08:00", "to": "18:00"}, window]});
    for (spec, expected) in [
        (json!({"share": {"percentage": -1}}), "spec.share.percentage: is -1; must be 0 to 100"),
        (json!({"share": {"percentage": 101}}), "spec.share.percentage: is 101; must be 0 to 100"),
        (
            json!({"share": {"percentage": i64::MAX}}),
            "spec.share.percentage: is 9223372036854775807; must be 0 to 100",
        ),
        (
            json!({"share": {"perPeerPercentage": 300}}),
            "spec.share.perPeerPercentage: is 300; must be 0 to 100",
        ),
        (
            json!({"share": {"overcommit": 0}}),
            "spec.share.overcommit: is \"0\"; must be more than 0 and at most 100",
        ),
        (json!({"share": {"overcommit": "-1.5"}}), "spec.share.overcommit: is \"-1.5\"; must be more than 0"),
        (json!({"share": {"overcommit": "1e300"}}), "spec.share.overcommit: is \"1e300\"; must be"),
        (json!({"share": {"overcommit": "100.001"}}), "spec.share.overcommit: is \"100.001\"; must be"),
        (json!({"share": {"overcommit": "1.0005"}}), "with at most three decimals, such as 1.5"),
        (json!({"share": {"overcommit": "much"}}), "spec.share.overcommit: \"much\" is not a quantity"),
        (json!({"share": {"rounding": "up"}}), "spec.share.rounding: \"up\" is not Down, Up or Nearest"),
        (json!({"shares": {"cpu": {"cap": "-1"}}}), "spec.shares[cpu].cap: is -1; must not be negative"),
        (
            json!({"shares": {"cpu": {"reserve": "4GB"}}}),
            "spec.shares[cpu].reserve: \"4GB\" is not a quantity",
        ),
        (json!({"shares": {"cpu": {"perPeerCap": -2}}}), "spec.shares[cpu].perPeerCap: is -2"),
        (
            json!({"shares": {"cpu": {"autoscaled": ""}}}),
            "spec.shares[cpu].autoscaled: \"\" is not a quantity",
        ),
        (
            json!({"shares": {"nvidia.com/gpu": {"percentage": 200}}}),
            "spec.shares[nvidia.com/gpu].percentage",
        ),
        (json!({"shares": {"no such": {}}}), "spec.shares[no such]: \"no such\" is not a resource name"),
        (
            json!({"resources": ["memory"], "shares": {"cpu": {}}}),
            "spec.shares[cpu]: is not among spec.resources",
        ),
        (json!({"resources": []}), "spec.resources: shares nothing"),
        (json!({"resources": ["a b"]}), "spec.resources[0]: \"a b\" is not a name or a pattern"),
        (
            json!({"peers": {"clusterIDs": ["ok", "NOT OK"]}}),
            "spec.peers.clusterIDs[1]: \"NOT OK\" is not a cluster ID",
        ),
        (
            json!({"peers": {"matchLabels": {"a": "b c"}}}),
            "spec.peers.matchLabels[a]: \"b c\" is not a label value",
        ),
        (
            json!({"nodeSelector": {"matchExpressions": [{"key": "a", "operator": "Like"}]}}),
            "spec.nodeSelector.matchExpressions[0].operator: \"Like\" is not one of",
        ),
        (json!({"action": "Maybe"}), "spec.action: \"Maybe\" is not Allow or Deny"),
        (json!({"approval": "Please"}), "spec.approval: \"Please\" is not Automatic or Required"),
        (json!({"enforcement": "Kind"}), "spec.enforcement: \"Kind\" is not Hard or Soft"),
        (
            window(json!({"from": "8:00", "to": "18:00"})),
            "spec.windows[1].from: \"8:00\" is not a time of day",
        ),
        (
            window(json!({"from": "08:00", "to": "25:00"})),
            "spec.windows[1].to: \"25:00\" is not a time of day",
        ),
        (
            window(json!({"from": "24:00", "to": "08:00"})),
            "spec.windows[1].from: \"24:00\" is not a time of day",
        ),
        (window(json!({"from": "08:00", "to": "08:00"})), "spec.windows[1].to: must not be the same as from"),
        (window(json!({"from": "08:00"})), "spec.windows[1].to: \"\" is not a time of day"),
        (
            window(json!({"from": "08:00", "to": "09:00", "timeZone": "Mars/Olympus"})),
            "spec.windows[1].timeZone: \"Mars/Olympus\" is not a known time zone",
        ),
        (
            window(json!({"from": "08:00", "to": "09:00", "days": ["Mon", "Someday"]})),
            "spec.windows[1].days[1]: \"Someday\" is not one of Mon",
        ),
        (json!({"notBefore": "tomorrow"}), "spec.notBefore: \"tomorrow\" is not a moment, such as"),
        (
            json!({"notBefore": "2026-01-01T00:00:00Z", "notAfter": "2026-01-01T00:00:00Z"}),
            "spec.notAfter: must be later than notBefore",
        ),
        (
            json!({"prices": {"currency": "eur", "period": "Hourly"}}),
            "spec.prices.currency: \"eur\" is not a currency",
        ),
        (
            json!({"prices": {"currency": "EUR", "period": "0h"}}),
            "spec.prices.period: \"0h\" is not a length of time",
        ),
        (
            json!({"prices": {"currency": "EUR", "period": "Hourly", "perUnit": {"cpu": "-0.1"}}}),
            "spec.prices.perUnit[cpu]: is -100m; must not be negative",
        ),
        (
            json!({"prices": {"currency": "EUR", "period": "Hourly", "perUnit": {"cpu": "1e300"}}}),
            "spec.prices: the price of cpu is",
        ),
        (
            json!({"contract": {"offerValidity": "0s"}}),
            "spec.contract.offerValidity: \"0s\" is not a length of time",
        ),
        (
            json!({"contract": {"duration": "forever"}}),
            "spec.contract.duration: \"forever\" is not a length of time",
        ),
        (json!({"contract": {"renewal": "Maybe"}}), "spec.contract.renewal: \"Maybe\" is not Auto or None"),
        (
            json!({"contract": {"serviceLevel": {"a b": ""}}}),
            "spec.contract.serviceLevel: \"a b\" is not a name",
        ),
        (
            json!({"storageClasses": ["a"], "defaultStorageClass": "b"}),
            "spec.defaultStorageClass: \"b\" is not among",
        ),
        (json!({"services": [""]}), "spec.services[0]: \"\" is not a name or a pattern"),
        (json!({"images": ["\u{7}"]}), "spec.images[0]: \"\\u{7}\" is not a name or a pattern"),
    ] {
        let problems = problems(spec.clone());
        assert!(problems.len() == 1 && problems[0].contains(expected), "{spec}: {problems:#?}");
    }
}

#[test]
fn all_mistakes_are_told_at_once_but_not_without_end() {
    let spec = json!({"share": {"percentage": -1, "overcommit": 0}, "action": "Maybe", "windows": [{}]});
    assert_eq!(problems(spec).len(), 5);
    let many: Vec<String> = (0..4000).map(|_| "NO".to_owned()).collect();
    assert_eq!(problems(json!({"peers": {"clusterIDs": many}})).len(), 32);
    let too_many: Vec<String> = (0..5000).map(|_| "ok".to_owned()).collect();
    assert_eq!(
        problems(json!({"peers": {"clusterIDs": too_many}})),
        ["spec.peers.clusterIDs: has 5000 entries, at most 4096 are allowed"]
    );
}

#[test]
fn a_field_that_nobody_reads_is_refused() {
    for spec in [
        json!({"percentage": 50}),
        json!({"share": {"cap": "4"}}),
        json!({"shares": {"cpu": {"percent": 5}}}),
    ] {
        let error = serde_json::from_value::<Spec>(spec).unwrap_err().to_string();
        assert!(error.contains("unknown field"), "{error}");
    }
}

#[test]
fn everything_that_can_be_said_can_be_said_at_once() {
    let spec = json!({
        "peers": {"clusterIDs": ["a"], "matchLabels": {"tier": "gold"}, "matchExpressions": [{"key": "eu", "operator": "Exists"}]},
        "action": "Allow",
        "approval": "Required",
        "resources": ["cpu", "memory", "*/gpu"],
        "nodeSelector": {"matchLabels": {"lend": "yes"}},
        "share": {"percentage": 50, "overcommit": 1.25, "rounding": "Nearest", "perPeerPercentage": 50},
        "shares": {"cpu": {"cap": 200, "perPeerCap": "20", "reserve": "1500m", "autoscaled": "64", "percentage": 80}, "pods": {"percentage": 100}},
        "storageClasses": ["fast"], "defaultStorageClass": "fast", "services": ["shop/*"], "images": ["*"],
        "prices": {"currency": "EUR", "period": "Monthly", "perUnit": {"cpu": "12.50", "memory": 1}},
        "windows": [{"days": ["Fri", "Sat"], "from": "20:00", "to": "24:00", "timeZone": "europe/rome"}],
        "notBefore": "2026-01-01T00:00:00+01:00", "notAfter": "2026-12-31T00:00:00Z",
        "enforcement": "Soft",
        "contract": {"offerValidity": "1h", "duration": "2w", "renewal": "None", "serviceLevel": {"support": "büro hours"}},
    });
    assert_eq!(problems(spec.clone()), Vec::<String>::new());
    let read: Spec = serde_json::from_value(spec).unwrap();
    let written = serde_json::to_value(&read).unwrap();
    assert_eq!(serde_json::from_value::<Spec>(written).unwrap(), read);
}

#[test]
fn a_policy_that_cannot_be_read_at_all_refuses_and_says_why() {
    let policy = Policy::unreadable("odd", "invalid type: map, expected a string");
    assert_eq!(policy.problems().len(), 1);
    let world = super::World::with_node("cpu=4");
    let world = super::World { policies: vec![policy], ..world };
    let refusal = world.refusal("x");
    assert_eq!(refusal.message, "policy odd is not valid: spec: invalid type: map, expected a string");
}
