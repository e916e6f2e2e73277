use serde_json::{Value, json};

use super::*;

fn asked(terms: &Value) -> Affinity {
    let required = json!({ "nodeSelectorTerms": terms });
    let node = json!({ "requiredDuringSchedulingIgnoredDuringExecution": required });
    serde_json::from_value(json!({ "nodeAffinity": node })).unwrap()
}

fn field(operator: &str, name: &str) -> Value {
    json!({ "key": "metadata.name", "operator": operator, "values": [name] })
}

#[test]
fn only_names_of_nodes_that_are_left_out_are_heard() {
    let terms = json!([{
        "matchExpressions": [{ "key": "kubernetes.io/hostname", "operator": "NotIn", "values": ["c"] }],
        "matchFields": [field("NotIn", "a"), field("In", "b"), field("NotIn", ""), field("NotIn", "d")],
    }]);
    assert_eq!(nodes(Some(&asked(&terms))), ["a", "d"]);
    assert!(nodes(None).is_empty());
    assert!(nodes(Some(&asked(&json!([])))).is_empty());
}

#[test]
fn a_node_that_one_term_leaves_in_is_not_left_out() {
    let terms = json!([
        { "matchFields": [field("NotIn", "a"), field("NotIn", "b")] },
        { "matchFields": [field("NotIn", "b")] },
    ]);
    assert_eq!(nodes(Some(&asked(&terms))), ["b"]);
}

#[test]
fn nobody_leaves_out_very_many() {
    let many: Vec<_> = (0..1000).map(|number| field("NotIn", &format!("n{number}"))).collect();
    assert_eq!(nodes(Some(&asked(&json!([{ "matchFields": many }])))).len(), MOST);
}

#[test]
fn what_the_policy_says_holds_as_well() {
    let house = asked(&json!([
        { "matchExpressions": [{ "key": "kind", "operator": "In", "values": ["gpu"] }] },
        { "matchExpressions": [{ "key": "kind", "operator": "Exists" }] },
    ]));
    let all = leave_out(Some(house.clone()), vec!["a".to_owned(), "b".to_owned()]);
    let fields = json!([field("NotIn", "a"), field("NotIn", "b")]);
    let expected = asked(&json!([
        { "matchExpressions": [{ "key": "kind", "operator": "In", "values": ["gpu"] }], "matchFields": fields },
        { "matchExpressions": [{ "key": "kind", "operator": "Exists" }], "matchFields": fields },
    ]));
    assert_eq!(all, Some(expected));
    assert_eq!(leave_out(Some(house.clone()), vec![]), Some(house));
    assert_eq!(leave_out(None, vec![]), None);
    let alone = leave_out(None, vec!["a".to_owned()]);
    assert_eq!(alone, Some(asked(&json!([{ "matchFields": [field("NotIn", "a")] }]))));
}
