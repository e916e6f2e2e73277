use serde_json::json;

use super::{differences, is_part_of};

#[test]
fn only_what_differs_is_told_with_its_place() {
    let before =
        json!({"kind": "ConfigMap", "metadata": {"resourceVersion": "1"}, "data": {"a": "1", "b": "2"}});
    let after = json!({"kind": "ConfigMap", "metadata": {"resourceVersion": "2"}, "data": {"a": "1", "b": "3", "c": "4"}});
    assert_eq!(differences(&before, &after), [r#"data.b: "2" → "3""#, r#"data.c: nothing → "4""#]);
    assert_eq!(differences(&before, &before), Vec::<String>::new());
}

#[test]
fn lists_of_equal_length_are_compared_one_by_one() {
    let of = |image: &str| json!({"spec": {"containers": [{"image": image}]}});
    assert_eq!(differences(&of("a"), &of("b")), [r#"spec.containers[0].image: "a" → "b""#]);
    assert_eq!(
        differences(&json!({"args": ["a"]}), &json!({"args": ["a", "b"]})),
        [r#"args: ["a"] → ["a","b"]"#]
    );
}

#[test]
fn secrets_are_not_shown() {
    let of = |text: &str| json!({"kind": "Secret", "data": {"key": text}});
    assert_eq!(differences(&of("aGVsbG8="), &of("d29ybGQ=")), ["data.key: changed"]);
}

#[test]
fn long_lists_of_differences_end() {
    let of = |value: u32| json!({"data": (0..50).map(|n| (format!("k{n:02}"), value)).collect::<std::collections::BTreeMap<_, _>>()});
    let found = differences(&of(1), &of(2));
    assert_eq!((found.len(), found.last().unwrap().as_str()), (21, "and 30 more"));
}

#[test]
fn what_is_wanted_is_there_when_more_is_there() {
    let there = json!({"spec": {"replicas": 1, "strategy": "x"}, "list": [1, 2]});
    assert!(is_part_of(&json!({"spec": {"replicas": 1}, "nothing": {}}), &there));
    assert!(!is_part_of(&json!({"spec": {"replicas": 2}}), &there));
    assert!(!is_part_of(&json!({"list": [1]}), &there));
}
