//! How large pods are, and how one size becomes another.

use super::*;

fn sized(pod: Value) -> SizedSpec {
    serde_json::from_value(pod).unwrap()
}

fn amount(pod: Value, name: &str) -> String {
    sized(pod).requests().amount(name).to_string()
}

fn container(name: &str, cpu: &str) -> Value {
    json!({ "name": name, "resources": { "requests": { "cpu": cpu } } })
}

fn sidecar(name: &str, cpu: &str) -> Value {
    json!({ "name": name, "restartPolicy": "Always", "resources": { "requests": { "cpu": cpu } } })
}

#[test]
fn what_runs_at_the_same_time_adds_up() {
    let main = json!([container("a", "1"), container("b", "500m")]);
    assert_eq!(amount(json!({ "containers": main }), "cpu"), "1500m");
    // A sidecar runs beside them, an init container before them.
    let init = json!([sidecar("proxy", "1"), container("setup", "1")]);
    assert_eq!(amount(json!({ "containers": main, "initContainers": init }), "cpu"), "2500m");
    let init = json!([sidecar("proxy", "1"), container("setup", "4")]);
    assert_eq!(amount(json!({ "containers": main, "initContainers": init }), "cpu"), "5");
}

#[test]
fn what_the_pod_says_as_a_whole_counts_and_its_overhead_comes_on_top() {
    let main = json!([container("a", "1"), container("b", "500m")]);
    let whole = json!({ "requests": { "cpu": "3" } });
    assert_eq!(amount(json!({ "containers": main, "resources": whole }), "cpu"), "3");
    let overhead = json!({ "cpu": "250m" });
    assert_eq!(
        amount(json!({ "containers": main, "resources": whole, "overhead": overhead }), "cpu"),
        "3250m"
    );
    assert_eq!(amount(json!({ "containers": main }), "pods"), "1");
}

#[test]
fn nothing_hides_how_large_a_pod_is() {
    let main = json!([container("a", "1"), { "name": "b", "resources": null }, { "name": null }]);
    for field in ["initContainers", "ephemeralContainers", "overhead", "resources", "tolerations"] {
        let mut pod = json!({ "containers": main });
        pod[field] = Value::Null;
        assert_eq!(amount(pod, "cpu"), "1", "{field}");
    }
    let nulls = json!([{ "name": "a", "resources": { "requests": { "cpu": "2" }, "limits": null } }]);
    assert_eq!(amount(json!({ "containers": nulls }), "cpu"), "2");
}

fn running(pod: Value) -> Running {
    sized(pod).running()
}

#[test]
fn only_what_differs_is_changed() {
    let small = running(json!({ "containers": [container("a", "1"), container("b", "1")] }));
    let large = running(json!({ "containers": [container("a", "1000m"), container("b", "2")] }));
    assert_eq!(small.patch(&small), None);
    let patch = large.patch(&small).unwrap();
    let expected = json!({ "name": "b", "resources": { "requests": { "cpu": "2" }, "limits": {} } });
    assert_eq!(patch, json!({ "spec": { "containers": [expected] } }));
}

#[test]
fn sidecars_can_be_changed_and_other_init_containers_cannot() {
    let with = |proxy: &str, setup: &str| {
        let init = json!([sidecar("proxy", proxy), container("setup", setup)]);
        running(json!({ "containers": [container("a", "1")], "initContainers": init }))
    };
    let patch = with("2", "2").patch(&with("1", "1")).unwrap();
    let expected = json!({ "name": "proxy", "resources": { "requests": { "cpu": "2" }, "limits": {} } });
    assert_eq!(patch, json!({ "spec": { "initContainers": [expected] } }));
}

#[test]
fn what_the_provider_added_and_what_cannot_be_changed_is_left() {
    let wanted = json!({ "containers": [container("a", "1")] });
    let actual = json!({ "containers": [
        { "name": "a", "resources": { "requests": { "cpu": "1", "memory": "0" }, "limits": { "cpu": "4" } } },
        container("injected", "1"),
    ] });
    assert_eq!(running(wanted).patch(&running(actual.clone())), None);
    let gpus = json!([{ "name": "a", "resources": { "limits": { "example.com/gpu": "2" } } }]);
    assert_eq!(running(json!({ "containers": gpus })).patch(&running(actual)), None);
}
