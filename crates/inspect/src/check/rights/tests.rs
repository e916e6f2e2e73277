use super::*;

fn rules(value: Value) -> Vec<PolicyRule> {
    serde_json::from_value(value).unwrap()
}

#[test]
fn the_chart_gives_the_manager_rights_in_both_places() {
    let rights = Rights::wanted().unwrap();
    assert!(!rights.cluster.is_empty() && !rights.namespace.is_empty(), "{rights:#?}");
    assert!(lacking(&rights.cluster, &rights.cluster).is_empty());
}

#[test]
fn what_is_not_given_is_named() {
    let wanted = rules(
        json!([{"apiGroups": ["g"], "resources": ["r", "r/status"], "verbs": ["get", "patch"], "resourceNames": ["n"]}]),
    );
    for (given, expected) in [
        (json!([]), 4),
        (json!([{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}]), 0),
        (json!([{"apiGroups": ["g"], "resources": ["r"], "verbs": ["get", "patch"]}]), 2),
        (
            json!([{"apiGroups": ["g"], "resources": ["r", "r/status"], "verbs": ["get"], "resourceNames": ["n"]}]),
            2,
        ),
        (
            json!([{"apiGroups": ["g"], "resources": ["r", "r/status"], "verbs": ["get", "patch"], "resourceNames": ["other"]}]),
            4,
        ),
        (json!([{"apiGroups": [""], "resources": ["r", "r/status"], "verbs": ["get", "patch"]}]), 4),
    ] {
        let lacking = lacking(&wanted, &rules(given.clone()));
        assert_eq!(lacking.len(), expected, "{given}: {lacking:?}");
    }
    assert_eq!(lacking(&wanted, &rules(json!([])))[0], "get r.g");
    let any = rules(json!([{"apiGroups": [""], "resources": ["pods"], "verbs": ["list"]}]));
    let one =
        rules(json!([{"apiGroups": [""], "resources": ["pods"], "verbs": ["list"], "resourceNames": ["n"]}]));
    assert_eq!(lacking(&any, &one), ["list pods"], "one object is not all");
}
