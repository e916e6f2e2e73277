use std::slice;

use super::*;

fn labels(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
}

fn requirement(key: &str, operator: &str, values: &[&str]) -> NodeSelectorRequirement {
    let values: Vec<_> = values.iter().map(|value| (*value).to_owned()).collect();
    NodeSelectorRequirement {
        key: key.to_owned(),
        operator: operator.to_owned(),
        values: (!values.is_empty()).then_some(values),
    }
}

fn selector(terms: &[&[NodeSelectorRequirement]]) -> NodeSelector {
    let term = |requirements: &&[NodeSelectorRequirement]| NodeSelectorTerm {
        match_expressions: Some(requirements.to_vec()),
        match_fields: None,
    };
    NodeSelector { node_selector_terms: terms.iter().map(term).collect() }
}

fn of_field(operator: &str, values: &[&str]) -> NodeSelector {
    let term = NodeSelectorTerm {
        match_expressions: None,
        match_fields: Some(vec![requirement(NAME_FIELD, operator, values)]),
    };
    NodeSelector { node_selector_terms: vec![term] }
}

#[test]
fn each_operator_means_what_the_scheduler_takes_it_to_mean() {
    let labels = labels(&[("tier", "gold"), ("cores", "8"), ("zone", "a")]);
    let node = NodeView { name: "liqo-milan", labels: &labels };
    let cases: &[(&str, &str, &[&str], bool)] = &[
        ("tier", "In", &["gold", "silver"], true),
        ("tier", "In", &["silver"], false),
        ("missing", "In", &["x"], false),
        ("tier", "NotIn", &["silver"], true),
        ("tier", "NotIn", &["gold"], false),
        // As in Kubernetes: a label that is not there is not in the list.
        ("missing", "NotIn", &["x"], true),
        ("tier", "Exists", &[], true),
        ("missing", "Exists", &[], false),
        ("missing", "DoesNotExist", &[], true),
        ("tier", "DoesNotExist", &[], false),
        ("cores", "Gt", &["7"], true),
        ("cores", "Gt", &["8"], false),
        ("cores", "Lt", &["9"], true),
        ("cores", "Lt", &["8"], false),
        ("tier", "Gt", &["1"], false),
        ("missing", "Lt", &["1"], false),
        ("cores", "Gt", &["seven"], false),
        ("cores", "Gt", &["1", "2"], false),
        ("tier", "Like", &["gold"], false),
    ];
    for (key, operator, values, expected) in cases {
        let one = selector(&[&[requirement(key, operator, values)]]);
        assert_eq!(selects(Some(&one), node), *expected, "{key} {operator} {values:?}");
    }
}

#[test]
fn fields_are_the_name_of_the_node() {
    let none = BTreeMap::new();
    let node = NodeView { name: "liqo-milan", labels: &none };
    assert!(selects(Some(&of_field("In", &["liqo-milan"])), node));
    assert!(!selects(Some(&of_field("In", &["liqo-rome"])), node));
    assert!(!selects(Some(&of_field("NotIn", &["liqo-milan"])), node));
    assert!(selects(Some(&of_field("NotIn", &["liqo-rome"])), node));
}

#[test]
fn all_of_a_term_must_hold_and_one_term_is_enough() {
    let labels = labels(&[("tier", "gold"), ("zone", "a")]);
    let node = NodeView { name: "n", labels: &labels };
    let gold = requirement("tier", "In", &["gold"]);
    let elsewhere = requirement("zone", "In", &["b"]);
    assert!(!selects(Some(&selector(&[&[gold.clone(), elsewhere.clone()]])), node));
    assert!(selects(Some(&selector(&[slice::from_ref(&elsewhere), slice::from_ref(&gold)])), node));
    let nothing = selector(&[slice::from_ref(&elsewhere), &[gold, elsewhere.clone()]]);
    assert!(!selects(Some(&nothing), node));
    assert_eq!(unmet(Some(&nothing), node), "zone=b; zone=b");
}

#[test]
fn without_terms_all_are_meant_and_an_empty_term_means_none() {
    let none = BTreeMap::new();
    let node = NodeView { name: "n", labels: &none };
    assert!(selects(None, node));
    assert!(selects(Some(&NodeSelector::default()), node));
    assert!(!selects(Some(&selector(&[&[]])), node));
}

#[test]
fn what_kubernetes_would_refuse_is_refused_with_where_and_why() {
    let cases: &[(NodeSelector, &str)] = &[
        (
            selector(&[&[requirement("a", "In", &[])]]),
            "nodeSelectorTerms[0].matchExpressions[0]: the operator In",
        ),
        (selector(&[&[requirement("a", "Exists", &["x"])]]), "takes no values"),
        (selector(&[&[requirement("a", "Gt", &["x"])]]), "a whole number"),
        (selector(&[&[requirement("a", "Lt", &["1", "2"])]]), "exactly one value"),
        (selector(&[&[requirement("a", "Like", &["1"])]]), "is no operator"),
        (
            selector(&[&[requirement("a", "Exists", &[])], &[]]),
            "nodeSelectorTerms[1]: a term without requirements",
        ),
        (of_field("Exists", &[]), "needs the operator In or NotIn"),
    ];
    for (selector, says) in cases {
        let error = check(Some(selector)).unwrap_err().to_string();
        assert!(error.contains(says), "{error}");
    }
    assert_eq!(check(None), Ok(()));
    assert_eq!(
        check(Some(&selector(&[&[requirement("a", "Lt", &["3"]), requirement("b", "Exists", &[])]]))),
        Ok(())
    );
}
