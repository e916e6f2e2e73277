use serde_json::{Value, json};

use super::{documents, objects, order};

#[test]
fn documents_are_apart_by_lines_with_hyphens() {
    for (text, expected) in [
        ("a: 1\n---\nb: 2\n", vec!["a: 1\n", "\nb: 2\n"]),
        ("---\na: 1\n", vec!["", "\na: 1\n"]),
        ("a: |\n  ---\n  b\n", vec!["a: |\n  ---\n  b\n"]),
        ("--- # comment\na: 1", vec!["", " # comment\na: 1\n"]),
    ] {
        assert_eq!(documents(text), expected, "{text:?}");
    }
}

#[test]
fn what_is_empty_is_no_object() {
    let text = "---\n# a comment\n---\n\n---\napiVersion: v1\nkind: Pod\n---\n---\n";
    assert_eq!(objects("t", text).unwrap(), [json!({ "apiVersion": "v1", "kind": "Pod" })]);
    assert_eq!(objects("t", " \n\n").unwrap(), [] as [Value; 0]);
}

#[test]
fn what_is_no_object_is_told_with_its_template_and_place() {
    for (text, expected) in [
        (
            "apiVersion: v1\nkind: Pod\n---\nkind: Pod\n",
            "t does not render to Kubernetes objects: document 2: it has no apiVersion or no kind",
        ),
        ("just words", "document 1: it has no apiVersion or no kind"),
        ("a: b: c", "document 1: "),
    ] {
        let error = objects("t", text).unwrap_err().to_string();
        assert!(error.contains(expected), "{text:?}: {error}");
    }
}

#[test]
fn objects_come_in_the_order_of_their_kinds() {
    let kinds = [
        "Zebra",
        "Deployment",
        "Ant",
        "ConfigMap",
        "Namespace",
        "Service",
        "ClusterRole",
        "ServiceAccount",
        "ConfigMap",
    ];
    let mut all: Vec<Value> =
        kinds.iter().enumerate().map(|(at, kind)| json!({ "kind": kind, "at": at })).collect();
    order::sort(&mut all);
    let sorted: Vec<(&str, u64)> =
        all.iter().map(|object| (object["kind"].as_str().unwrap(), object["at"].as_u64().unwrap())).collect();
    let expected = [
        ("Namespace", 4),
        ("ServiceAccount", 7),
        ("ConfigMap", 3),
        ("ConfigMap", 8),
        ("ClusterRole", 6),
        ("Service", 5),
        ("Deployment", 1),
        ("Ant", 2),
        ("Zebra", 0),
    ];
    assert_eq!(sorted, expected);
}
