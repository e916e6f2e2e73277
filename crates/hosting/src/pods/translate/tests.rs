//! Every field of a pod: passed, forced, dropped or refused.

use k8s_openapi::api::core::v1::PodSpec;
use serde_json::{Map, Value, json};

use super::*;

/// What becomes of a pod with these fields.
fn made(fields: &Value, rules: &HouseRules) -> Result<Value, Refusal> {
    let mut pod = json!({ "containers": [{ "name": "main", "image": "app" }] });
    merge(&mut pod, fields);
    let spec: PodSpec = serde_json::from_value(pod).unwrap();
    translate(spec, rules, None).map(|spec| serde_json::to_value(spec).unwrap())
}

fn merge(into: &mut Value, fields: &Value) {
    for (key, value) in fields.as_object().cloned().unwrap_or_else(Map::new) {
        into[key] = value;
    }
}

fn usual(fields: &Value) -> Result<Value, Refusal> {
    made(fields, &HouseRules::default())
}

/// The same with these fields of its container.
fn container_with(fields: &Value) -> Result<Value, Refusal> {
    let mut container = json!({ "name": "main", "image": "app" });
    merge(&mut container, fields);
    usual(&json!({ "containers": [container] }))
}

#[test]
fn what_only_concerns_the_pod_itself_is_passed_on() {
    let passed = [
        json!({ "activeDeadlineSeconds": 30 }),
        json!({ "dnsConfig": { "nameservers": ["10.0.0.10"] } }),
        json!({ "dnsPolicy": "Default" }),
        json!({ "enableServiceLinks": false }),
        json!({ "hostAliases": [{ "ip": "10.0.0.1", "hostnames": ["db"] }] }),
        json!({ "hostUsers": false }),
        json!({ "hostname": "web" }),
        json!({ "hostnameOverride": "web.example.com" }),
        json!({ "imagePullSecrets": [{ "name": "registry" }] }),
        json!({ "os": { "name": "linux" } }),
        json!({ "readinessGates": [{ "conditionType": "example.com/ready" }] }),
        json!({ "resources": { "requests": { "cpu": "1" } } }),
        json!({ "restartPolicy": "OnFailure" }),
        json!({ "securityContext": { "runAsUser": 1000, "fsGroup": 5, "supplementalGroups": [7] } }),
        json!({ "setHostnameAsFQDN": true }),
        json!({ "shareProcessNamespace": true }),
        json!({ "subdomain": "db" }),
        json!({ "terminationGracePeriodSeconds": 5 }),
        json!({ "topologySpreadConstraints": [{ "maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule" }] }),
        json!({ "tolerations": [{ "key": "node.kubernetes.io/not-ready", "effect": "NoExecute", "tolerationSeconds": 5 }] }),
    ];
    for fields in passed {
        let spec = usual(&fields).unwrap();
        for (name, value) in fields.as_object().unwrap() {
            assert_eq!(&spec[name], value, "{name}");
        }
    }
}

#[test]
fn what_speaks_of_the_providers_own_things_is_dropped() {
    let dropped = [
        json!({ "affinity": { "nodeAffinity": {} } }),
        json!({ "nodeSelector": { "zone": "a" } }),
        json!({ "schedulerName": "mine" }),
        json!({ "serviceAccountName": "admin" }),
        json!({ "serviceAccount": "admin" }),
        json!({ "priority": 1_000_000 }),
        json!({ "priorityClassName": "system-node-critical" }),
        json!({ "preemptionPolicy": "PreemptLowerPriority" }),
        json!({ "runtimeClassName": "weak" }),
        json!({ "overhead": { "cpu": "-1" } }),
        json!({ "schedulingGates": [{ "name": "example.com/gate" }] }),
        json!({ "ephemeralContainers": [{ "name": "debug", "image": "shell" }] }),
        json!({ "hostUsers": true }),
        json!({ "hostNetwork": false }),
    ];
    let plain = usual(&json!({})).unwrap();
    for fields in dropped {
        assert_eq!(usual(&fields).unwrap(), plain, "{fields}");
    }
    assert_eq!(usual(&json!({ "automountServiceAccountToken": true })).unwrap(), plain);
    assert_eq!(plain["automountServiceAccountToken"], false);
}

#[test]
fn what_reaches_the_node_is_refused_with_the_field_named() {
    let refused = [
        (json!({ "hostNetwork": true }), "spec.hostNetwork"),
        (json!({ "hostPID": true }), "spec.hostPID"),
        (json!({ "hostIPC": true }), "spec.hostIPC"),
        (json!({ "nodeName": "node-1" }), "spec.nodeName"),
        (json!({ "resourceClaims": [{ "name": "gpu", "resourceClaimName": "gpu" }] }), "spec.resourceClaims"),
        (
            json!({ "securityContext": { "windowsOptions": { "hostProcess": true } } }),
            "spec.securityContext.windowsOptions.hostProcess",
        ),
    ];
    for (fields, path) in refused {
        let refusal = usual(&fields).unwrap_err();
        assert!(refusal.message.starts_with(path), "{}", refusal.message);
    }
    let refused = [
        (json!({ "ports": [{ "containerPort": 80, "hostPort": 80 }] }), "containers[main].ports.hostPort"),
        (json!({ "securityContext": { "privileged": true } }), "containers[main].securityContext.privileged"),
        (
            json!({ "securityContext": { "windowsOptions": { "hostProcess": true } } }),
            "containers[main].securityContext.windowsOptions.hostProcess",
        ),
        (json!({ "resources": { "claims": [{ "name": "gpu" }] } }), "resources.claims"),
        (
            json!({ "livenessProbe": { "httpGet": { "host": "127.0.0.1", "port": 10250 } } }),
            "containers[main].livenessProbe.httpGet.host",
        ),
        (
            json!({ "readinessProbe": { "tcpSocket": { "host": "10.0.0.1", "port": 22 } } }),
            "containers[main].readinessProbe.tcpSocket.host",
        ),
        (
            json!({ "lifecycle": { "preStop": { "httpGet": { "host": "169.254.169.254", "port": 80 } } } }),
            "containers[main].lifecycle.preStop",
        ),
    ];
    for (fields, path) in refused {
        let refusal = container_with(&fields).unwrap_err();
        assert!(refusal.message.contains(path), "{}", refusal.message);
        let mut container = json!({ "name": "main", "image": "app" });
        merge(&mut container, &fields);
        let refusal = usual(&json!({ "initContainers": [container] })).unwrap_err();
        assert!(
            refusal.message.contains(&path.replace("containers", "initContainers")),
            "{}",
            refusal.message
        );
    }
}

#[test]
fn only_volumes_of_the_consumers_own_are_passed_on() {
    let own = [
        json!({ "configMap": { "name": "settings" } }),
        json!({ "secret": { "secretName": "key" } }),
        json!({ "emptyDir": { "medium": "Memory" } }),
        json!({ "downwardAPI": { "items": [] } }),
        json!({ "persistentVolumeClaim": { "claimName": "data" } }),
        json!({ "ephemeral": { "volumeClaimTemplate": { "spec": {} } } }),
        json!({ "image": { "reference": "data:1" } }),
        json!({ "projected": { "sources": [{ "secret": { "name": "key" } }, { "configMap": { "name": "ca" } }] } }),
    ];
    for mut volume in own {
        volume["name"] = json!("it");
        let spec = usual(&json!({ "volumes": [volume.clone()] })).unwrap();
        assert_eq!(spec["volumes"][0], volume);
    }
    let foreign = [
        json!({ "hostPath": { "path": "/" } }),
        json!({ "csi": { "driver": "secrets-store.csi.k8s.io" } }),
        json!({ "nfs": { "server": "10.0.0.1", "path": "/" } }),
        json!({ "iscsi": { "targetPortal": "10.0.0.1", "iqn": "i", "lun": 0 } }),
        json!({ "flexVolume": { "driver": "x" } }),
        json!({ "gitRepo": { "repository": "x" } }),
        json!({ "projected": { "sources": [{ "serviceAccountToken": { "path": "token" } }] } }),
        json!({ "projected": { "sources": [{ "podCertificate": { "keyType": "ED25519", "signerName": "x/y" } }] } }),
        json!({ "projected": { "sources": [{ "clusterTrustBundle": { "path": "ca" } }] } }),
        // One that this version does not know.
        json!({ "teleport": { "to": "node" } }),
        json!({}),
    ];
    for mut volume in foreign {
        volume["name"] = json!("it");
        let refusal = usual(&json!({ "volumes": [volume.clone()] })).unwrap_err();
        assert_eq!(refusal.reason, FORBIDDEN, "{volume}");
        assert!(refusal.message.starts_with("spec.volumes[it]"), "{}", refusal.message);
    }
}

#[test]
fn what_this_version_does_not_know_is_not_passed_on() {
    let spec = usual(&json!({ "hostGalaxy": true })).unwrap();
    assert_eq!(spec, usual(&json!({})).unwrap());
    let spec = container_with(&json!({ "nodeAccess": "all" })).unwrap();
    assert_eq!(spec, usual(&json!({})).unwrap());
}

#[test]
fn tolerations_of_nodes_that_are_kept_for_somebody_are_dropped() {
    let all = json!([
        { "operator": "Exists" },
        { "key": "node-role.kubernetes.io/control-plane", "operator": "Exists" },
        { "key": "virtual-node.liqo.io/not-allowed", "operator": "Exists" },
        { "key": "dedicated", "operator": "Exists" },
        { "key": "example.com/gpu", "operator": "Exists" },
        { "key": "node.kubernetes.io/unreachable", "operator": "Exists", "tolerationSeconds": 9 },
        { "key": "node.kubernetes.io/unschedulable", "operator": "Exists" },
    ]);
    let keys = |spec: &Value| -> Vec<String> {
        let list = spec["tolerations"].as_array().unwrap();
        list.iter().map(|it| it["key"].as_str().unwrap_or_default().to_owned()).collect()
    };
    let spec = usual(&json!({ "tolerations": all })).unwrap();
    assert_eq!(keys(&spec), ["node.kubernetes.io/unreachable"]);
    // Those of nodes with what the pod asks for are its business.
    let gpu = json!([{ "name": "main", "resources": { "limits": { "example.com/gpu": "1" } } }]);
    let spec = usual(&json!({ "tolerations": all, "containers": gpu })).unwrap();
    assert_eq!(keys(&spec), ["example.com/gpu", "node.kubernetes.io/unreachable"]);
}

#[test]
fn a_container_that_says_nothing_of_its_size_says_zero() {
    let requests = |fields: &Value| container_with(fields).unwrap()["containers"][0]["resources"].clone();
    assert_eq!(requests(&json!({})), json!({ "requests": { "cpu": "0", "memory": "0" } }));
    let limited = json!({ "resources": { "limits": { "cpu": "1" }, "requests": { "memory": "1Gi" } } });
    assert_eq!(requests(&limited), json!({ "limits": { "cpu": "1" }, "requests": { "memory": "1Gi" } }));
    // The pod says it for all.
    let spec = usual(&json!({ "resources": { "requests": { "cpu": "1" } } })).unwrap();
    assert_eq!(spec["containers"][0]["resources"], Value::Null);
}

#[test]
fn the_policy_says_where_and_how_pods_run() {
    let rules = HouseRules {
        runtime_class: Some("gvisor".to_owned()),
        level: PodSecurity::Privileged,
        nodes: vec![NodeSelectorRequirement {
            key: "pool".to_owned(),
            operator: "In".to_owned(),
            values: Some(vec!["guests".to_owned()]),
        }],
        ..HouseRules::default()
    };
    let spec = made(&json!({ "runtimeClassName": "weak" }), &rules).unwrap();
    assert_eq!(spec["runtimeClassName"], "gvisor");
    let term = &spec["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"];
    assert_eq!(term["nodeSelectorTerms"][0]["matchExpressions"][0]["key"], "pool");
    let privileged = json!([{ "name": "main", "securityContext": { "privileged": true } }]);
    assert!(made(&json!({ "containers": privileged }), &rules).is_ok());
    // Never, whatever the policy says.
    assert!(made(&json!({ "hostNetwork": true }), &rules).is_err());
    assert!(made(&json!({ "volumes": [{ "name": "it", "hostPath": { "path": "/" } }] }), &rules).is_err());
}

#[test]
fn a_pod_is_given_an_hour_to_end_and_not_a_life() {
    for (asked, given) in [(0, 0), (30, 30), (3600, 3600), (1_000_000_000, 3600)] {
        let made = usual(&json!({ "terminationGracePeriodSeconds": asked })).unwrap();
        assert_eq!(made["terminationGracePeriodSeconds"], given);
    }
}
