use serde_json::json;

use super::*;

#[test]
fn what_kubectls_users_type_is_understood() {
    let term = parse_term("tier=gold, zone in (a, b),!spot,cores>4,x!=y,gpu,n==1,old notin (z)").unwrap();
    let found = serde_json::to_value(&term.0).unwrap();
    assert_eq!(
        found,
        json!([
            { "key": "tier", "operator": "In", "values": ["gold"] },
            { "key": "zone", "operator": "In", "values": ["a", "b"] },
            { "key": "spot", "operator": "DoesNotExist" },
            { "key": "cores", "operator": "Gt", "values": ["4"] },
            { "key": "x", "operator": "NotIn", "values": ["y"] },
            { "key": "gpu", "operator": "Exists" },
            { "key": "n", "operator": "In", "values": ["1"] },
            { "key": "old", "operator": "NotIn", "values": ["z"] },
        ])
    );
}

#[test]
fn nonsense_is_refused_in_words_that_help() {
    let cases = [
        ("a in b", "is no requirement"),
        ("a within (b)", "is no requirement"),
        ("a in (b", "not closed"),
        ("a in ((b))", "in another one"),
        ("a)", "too many"),
        ("=x", "is no requirement"),
        ("cores>many", "a whole number"),
    ];
    for (text, says) in cases {
        let error = parse_term(text).unwrap_err();
        assert!(error.contains(says), "{text}: {error}");
    }
    assert!(parse_pairs("tier").unwrap_err().contains("expected key=value"));
}

#[test]
fn alternatives_and_labels_are_one_selector() {
    let terms = [parse_term("tier=gold").unwrap(), parse_term("tier=silver").unwrap()];
    let (accepted, denied) = ([parse_pairs("zone=a").unwrap()], [parse_pairs("spot=true").unwrap()]);
    let selector = combine(&terms, &accepted, &denied).unwrap();
    let sizes: Vec<_> = selector
        .node_selector_terms
        .iter()
        .map(|term| term.match_expressions.as_ref().unwrap().len())
        .collect();
    assert_eq!(sizes, [3, 3]);
    let labels = combine(&[], &accepted, &denied).unwrap();
    assert_eq!(labels.node_selector_terms.len(), 1);
    // An empty selector means all clusters.
    assert_eq!(combine(&[parse_term("").unwrap()], &[], &[]), None);
}
