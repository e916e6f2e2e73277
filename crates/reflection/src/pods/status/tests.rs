use proptest::prelude::*;

use super::*;
use crate::translate::Unchanged;

const HOME: Home<'static> = Home {
    provider: "away",
    address: Some("10.9.8.7"),
    closed_gate: None,
    recreations: 0,
    translate: &Unchanged,
};

fn read(value: Value) -> PodStatus {
    serde_json::from_value(value).unwrap()
}

fn running() -> PodStatus {
    read(json!({
        "phase": "Running", "hostIP": "172.16.0.1", "hostIPs": [{ "ip": "172.16.0.1" }], "podIP": "10.0.0.1",
        "podIPs": [{ "ip": "10.0.0.1" }, { "ip": "fd00::1" }], "qosClass": "BestEffort",
        "startTime": "2026-01-01T00:00:00Z", "observedGeneration": 3,
        "conditions": [
            { "type": "Ready", "status": "True", "lastTransitionTime": "2026-01-01T00:00:01Z", "observedGeneration": 3 },
            { "type": "PodScheduled", "status": "True" },
            { "type": "Initialized", "status": "True" },
        ],
        "containerStatuses": [{ "name": "main", "image": "i", "imageID": "x", "ready": true, "restartCount": 2 }],
    }))
}

fn condition<'a>(status: &'a PodStatus, type_: &str) -> Option<&'a PodCondition> {
    status.conditions.iter().flatten().find(|it| it.type_ == type_)
}

#[test]
fn home_says_what_the_provider_says_and_where_the_pod_is_seen_from_here() {
    let merged = merge(running(), &Home { recreations: 3, ..HOME });
    assert_eq!(merged.phase.as_deref(), Some("Running"));
    assert_eq!(merged.host_ip.as_deref(), Some("10.9.8.7"));
    assert_eq!(merged.pod_ip.as_deref(), Some("10.0.0.1"));
    assert_eq!(merged.pod_ips.as_ref().unwrap().len(), 2);
    assert_eq!(merged.container_statuses.as_ref().unwrap()[0].restart_count, 5);
    assert_eq!(condition(&merged, "Ready").unwrap().status, "True");
    assert_eq!(condition(&merged, "PodScheduled"), None, "it was scheduled here, by our scheduler");
    assert_eq!(merged.qos_class, None);
    assert_eq!(merged.observed_generation, None);
}

#[test]
fn home_says_on_which_node_of_the_provider_a_pod_is() {
    let mut remote = running();
    place(&mut remote, Some("worker-3"));
    // Seen again, it is said once.
    place(&mut remote, Some("worker-3"));
    let merged = merge(remote, &HOME);
    let placed = condition(&merged, PLACED).unwrap();
    assert_eq!((placed.status.as_str(), placed.message.as_deref()), ("True", Some("worker-3")));
    let said =
        patch(&merged)["conditions"].as_array().unwrap().iter().filter(|it| it["type"] == PLACED).count();
    assert_eq!(said, 1);
    let mut nowhere = running();
    place(&mut nowhere, None);
    assert_eq!(condition(&merge(nowhere, &HOME), PLACED), None);
}

#[test]
fn a_pod_is_ready_when_its_gates_are_open_here() {
    let merged = merge(running(), &Home { closed_gate: Some("example.com/traffic"), ..HOME });
    let ready = condition(&merged, "Ready").unwrap();
    assert_eq!((ready.status.as_str(), ready.reason.as_deref()), ("False", Some("ReadinessGatesNotReady")));
    assert!(ready.message.as_ref().unwrap().contains("example.com/traffic"));
}

#[test]
fn an_address_that_cannot_be_reached_is_not_told() {
    struct Nothing;
    impl Translate for Nothing {
        fn to_home(&self, _: &str, _: &str) -> Option<String> {
            None
        }
        fn to_provider(&self, _: &str, _: &str) -> Option<String> {
            None
        }
    }
    let merged = merge(running(), &Home { translate: &Nothing, ..HOME });
    assert_eq!((merged.pod_ip, merged.pod_ips), (None, None));
}

#[test]
fn a_pod_that_the_provider_cannot_place_says_why() {
    let pending =
        read(json!({ "phase": "Pending", "conditions": [{ "type": "PodScheduled", "status": "False",
        "reason": "Unschedulable", "message": "0/3 nodes are available" }] }));
    assert_eq!(urgency(&pending), Urgency::Soon);
    let merged = merge(pending, &HOME);
    assert_eq!(merged.reason.as_deref(), Some("Unschedulable"));
    assert_eq!(merged.message.as_deref(), Some("not placed at the provider away: 0/3 nodes are available"));
}

#[test]
fn what_somebody_waits_for_is_told_at_once() {
    let waiting = |reason: &str| {
        read(json!({ "phase": "Pending", "containerStatuses": [{ "name": "main", "image": "i", "imageID": "",
            "ready": false, "restartCount": 0, "state": { "waiting": { "reason": reason } } }] }))
    };
    assert_eq!(urgency(&running()), Urgency::Now);
    assert_eq!(urgency(&read(json!({ "phase": "Failed" }))), Urgency::Now);
    assert_eq!(urgency(&waiting("ContainerCreating")), Urgency::Later);
    assert_eq!(urgency(&waiting("ImagePullBackOff")), Urgency::Soon);
    assert_eq!(urgency(&read(json!({}))), Urgency::Never);
}

#[test]
fn a_patch_clears_what_is_not_said_and_leaves_what_is_not_ours() {
    let patch = patch(&not_running("QuotaExceeded", "too much"));
    assert_eq!(patch["reason"], "QuotaExceeded");
    assert_eq!(patch["podIP"], Value::Null);
    assert_eq!(patch["containerStatuses"], Value::Null);
    let conditions = patch["conditions"].as_array().unwrap();
    assert!(conditions.iter().all(|it| it["$patch"] == "delete"), "{patch}");
    assert!(conditions.iter().all(|it| it["type"] != "PodScheduled" && it["type"] != "DisruptionTarget"));
    assert_eq!(patch.get("qosClass"), None);
    assert_eq!(patch.get("nominatedNodeName"), None);
}

/// What an API server makes of a status and such a patch, as far as this kind of patch goes.
fn apply(status: &PodStatus, patch: &Value) -> PodStatus {
    let mut all = json!(status);
    for (field, value) in patch.as_object().unwrap() {
        match (field.as_str(), value) {
            (_, Value::Null) => drop(all.as_object_mut().unwrap().remove(field)),
            ("conditions", Value::Array(changes)) => {
                let mut list = all["conditions"].as_array().cloned().unwrap_or_default();
                for change in changes {
                    let known = list.iter().position(|it| it["type"] == change["type"]);
                    if change.get("$patch").is_some() {
                        list.retain(|it| it["type"] != change["type"]);
                        continue;
                    }
                    let mut merged = known.map_or_else(|| json!({}), |at| list[at].clone());
                    for (key, value) in change.as_object().unwrap() {
                        if value.is_null() {
                            merged.as_object_mut().unwrap().remove(key);
                        } else {
                            merged[key] = value.clone();
                        }
                    }
                    match known {
                        Some(at) => list[at] = merged,
                        None => list.push(merged),
                    }
                }
                all["conditions"] = Value::Array(list);
            }
            (_, Value::Array(list)) => {
                all[field] = list.iter().filter(|it| it.get("$patch").is_none()).cloned().collect();
            }
            _ => all[field] = value.clone(),
        }
    }
    read(all)
}

fn statuses() -> impl Strategy<Value = PodStatus> {
    let types = ["Ready", "ContainersReady", "Initialized", "PodScheduled", "DisruptionTarget", "x/gate"];
    let condition = (0..types.len(), any::<bool>(), proptest::option::of("[a-z]{1,4}")).prop_map(
        move |(type_, yes, reason)| PodCondition {
            type_: types[type_].to_owned(),
            status: if yes { "True" } else { "False" }.to_owned(),
            reason,
            ..PodCondition::default()
        },
    );
    let phase = prop_oneof![Just("Pending"), Just("Running"), Just("Failed"), Just("Succeeded")];
    let reason = proptest::option::of("[A-Z][a-z]{1,5}");
    let address = proptest::option::of("10\\.0\\.0\\.[1-9]");
    (proptest::collection::vec(condition, 0..5), phase, reason, address, 0..5_i32).prop_map(
        |(mut conditions, phase, reason, address, restarts)| {
            conditions.sort_by(|a, b| a.type_.cmp(&b.type_));
            conditions.dedup_by(|a, b| a.type_ == b.type_);
            PodStatus {
                conditions: Some(conditions).filter(|list| !list.is_empty()),
                phase: Some(phase.to_owned()),
                reason,
                pod_ip: address.clone(),
                pod_ips: address.map(|ip| vec![PodIP { ip }]),
                qos_class: Some("Burstable".to_owned()),
                container_statuses: (restarts > 0).then(|| {
                    vec![ContainerStatus {
                        name: "main".into(),
                        restart_count: restarts,
                        ..ContainerStatus::default()
                    }]
                }),
                ..PodStatus::default()
            }
        },
    )
}

proptest! {
    /// Whatever home said before, after the patch it says what it should, and there is nothing left to write.
    #[test]
    fn one_patch_is_enough(home in statuses(), remote in statuses()) {
        let wanted = merge(remote, &HOME);
        let after = apply(&home, &patch(&wanted));
        prop_assert_eq!(fingerprint(&kubelets_part(after)), fingerprint(&wanted));
    }

    /// What only home knows stays: conditions of others, the class of service.
    #[test]
    fn what_only_home_knows_stays(home in statuses(), remote in statuses()) {
        let after = apply(&home, &patch(&merge(remote, &HOME)));
        for own in home.conditions.iter().flatten().filter(|it| !CONDITIONS.contains(&it.type_.as_str())) {
            prop_assert_eq!(condition(&after, &own.type_), Some(own));
        }
        prop_assert_eq!(&after.qos_class, &home.qos_class);
    }

    /// Merging what was merged changes nothing.
    #[test]
    fn merging_is_idempotent(remote in statuses()) {
        let once = merge(remote, &HOME);
        prop_assert_eq!(merge(once.clone(), &HOME), once);
    }
}

#[test]
fn home_says_when_the_provider_does_not_make_a_pod_larger() {
    let mut merged = merge(running(), &HOME);
    let since: Timestamp = "2026-01-02T03:04:05Z".parse().unwrap();
    // Said twice, it is there once.
    defer_growth(&mut merged, ("something else", since), "away");
    defer_growth(&mut merged, ("the contract does not allow it", since), "away");
    let pending = condition(&merged, "PodResizePending").unwrap();
    assert_eq!((pending.status.as_str(), pending.reason.as_deref()), ("True", Some("Deferred")));
    let message = pending.message.as_deref().unwrap();
    assert_eq!(message, "refused by the provider away: the contract does not allow it");
    // What is said is what is read again.
    assert_eq!(fingerprint(&kubelets_part(merged.clone())), fingerprint(&merged));
    let said = patch(&merged)["conditions"].as_array().unwrap().clone();
    assert_eq!(
        said.iter().filter(|it| it["type"] == "PodResizePending" && it.get("$patch").is_none()).count(),
        1
    );
    let gone = patch(&merge(running(), &HOME))["conditions"].as_array().unwrap().clone();
    assert!(gone.iter().any(|it| it["type"] == "PodResizePending" && it["$patch"] == "delete"));
}
