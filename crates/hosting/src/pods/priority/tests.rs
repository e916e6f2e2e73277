//! Which class is chosen.

use liqo_kit::{Index, Key};

use super::*;

fn classes(all: &[(&str, i32, bool)]) -> Store<Priority> {
    let mut store = Store::default();
    for (name, value, default) in all {
        store.apply(&Key::cluster(name), Priority { value: *value, default: *default });
    }
    store
}

#[test]
fn a_pod_gets_the_class_it_names_only_if_the_policy_grants_as_much() {
    let known = classes(&[("low", 10, false), ("high", 1000, false)]);
    assert_eq!(choose(Some("low"), 100, &known).unwrap().as_deref(), Some("low"));
    assert_eq!(choose(Some("high"), 100, &known).unwrap(), None);
    assert_eq!(choose(Some("none"), 100, &known).unwrap(), None);
    assert_eq!(choose(None, 100, &known).unwrap(), None);
}

#[test]
fn a_default_class_above_what_is_granted_is_not_given() {
    let known = classes(&[("usual", 1000, true), ("low", -5, false), ("lower", -10, false)]);
    assert_eq!(choose(None, 0, &known).unwrap().as_deref(), Some("low"));
    let refused = choose(None, 0, &classes(&[("usual", 1000, true)])).unwrap_err();
    assert_eq!(refused.reason, "Forbidden");
    assert_eq!(choose(None, 1000, &known).unwrap(), None);
}

#[test]
fn the_classes_of_kubernetes_are_for_nobody() {
    let class = |name: &str| PriorityClass {
        metadata: kube::api::ObjectMeta { name: Some(name.to_owned()), ..Default::default() },
        value: 5,
        ..PriorityClass::default()
    };
    assert_eq!(Priority::read(&class("system-node-critical")), None);
    assert!(Priority::read(&class("batch")).is_some());
}
