use serde_json::{Value, json};

use super::*;

const ROUTE: Route<'static> = Route {
    home: "home-1234",
    provider: "away",
    namespace: "shop",
    remote: "shop-home",
    storage_class: Some("fast"),
};

#[expect(clippy::needless_pass_by_value, reason = "made where it is passed")]
fn translate(spec: Value) -> Value {
    let mut whole = json!({ "containers": [{ "name": "main", "image": "i" }] });
    for (key, value) in spec.as_object().unwrap() {
        whole[key] = value.clone();
    }
    json!(pod_spec(serde_json::from_value(whole).unwrap(), &ROUTE).unwrap())
}

#[test]
fn where_a_pod_runs_and_what_belongs_to_nodes_is_not_sent() {
    let spec = translate(json!({
        "affinity": { "nodeAffinity": {} }, "nodeName": "liqo-away", "nodeSelector": { "a": "b" },
        "schedulerName": "s", "schedulingGates": [{ "name": "g" }], "serviceAccountName": "sa",
        "serviceAccount": "sa", "automountServiceAccountToken": true, "hostIPC": true, "hostNetwork": true,
        "hostPID": true, "overhead": { "cpu": "1" }, "preemptionPolicy": "Never", "priority": 1000,
        "readinessGates": [{ "conditionType": "x/y" }],
    }));
    assert_eq!(
        spec,
        json!({ "automountServiceAccountToken": false, "containers": [{ "name": "main", "image": "i" }] })
    );
}

#[test]
fn what_a_pod_is_goes_with_it() {
    let kept = json!({
        "activeDeadlineSeconds": 5, "dnsPolicy": "None", "dnsConfig": { "nameservers": ["1.1.1.1"] },
        "enableServiceLinks": false, "hostAliases": [{ "ip": "1.2.3.4", "hostnames": ["h"] }], "hostUsers": false,
        "hostname": "h", "imagePullSecrets": [{ "name": "pull" }], "os": { "name": "linux" },
        "priorityClassName": "high", "resources": { "limits": { "cpu": "1" } }, "restartPolicy": "Never",
        "runtimeClassName": "gvisor", "securityContext": { "runAsNonRoot": true }, "setHostnameAsFQDN": true,
        "shareProcessNamespace": true, "subdomain": "d", "terminationGracePeriodSeconds": 7,
        "topologySpreadConstraints": [{ "maxSkew": 1, "topologyKey": "k", "whenUnsatisfiable": "ScheduleAnyway" }],
        "initContainers": [{ "name": "proxy", "restartPolicy": "Always" }],
        "ephemeralContainers": [{ "name": "debug", "image": "busybox" }],
        "volumes": [{ "name": "v", "emptyDir": {} }, { "name": "p", "persistentVolumeClaim": { "claimName": "data" } }],
    });
    let spec = translate(kept.clone());
    for (field, value) in kept.as_object().unwrap() {
        assert_eq!(&spec[field], value, "{field}");
    }
}

#[test]
fn tolerations_of_virtual_nodes_stay_at_home() {
    let spec = translate(json!({ "tolerations": [
        { "key": "virtual-node.liqo.io/not-allowed", "operator": "Exists", "effect": "NoExecute" },
        { "key": "virtual-node.liqo.io/unreachable", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 12 },
        { "key": "gpu", "operator": "Exists" },
    ] }));
    assert_eq!(spec["tolerations"], json!([{ "key": "gpu", "operator": "Exists" }]));
}

#[test]
fn tokens_come_as_secrets_and_the_authority_is_that_of_home() {
    let spec = translate(
        json!({ "serviceAccountName": "shopper", "volumes": [{ "name": "kube-api-access-x", "projected": {
        "defaultMode": 420, "sources": [
            { "serviceAccountToken": { "expirationSeconds": 3607, "path": "token" } },
            { "serviceAccountToken": { "audience": "vault", "path": "vault" } },
            { "configMap": { "name": "kube-root-ca.crt", "items": [{ "key": "ca.crt", "path": "ca.crt" }] } },
            { "downwardAPI": { "items": [{ "path": "namespace", "fieldRef": { "fieldPath": "metadata.namespace" } }] } },
        ] } }] }),
    );
    let vault = crate::route::token_key(Some("vault"));
    assert_eq!(
        spec["volumes"][0]["projected"]["sources"],
        json!([
            { "secret": { "name": "liqo-token-shopper", "items": [{ "key": "token", "path": "token" }] } },
            { "secret": { "name": "liqo-token-shopper", "items": [{ "key": vault, "path": "vault" }] } },
            { "configMap": { "name": "kube-root-ca.crt.home", "items": [{ "key": "ca.crt", "path": "ca.crt" }] } },
            { "secret": { "name": "liqo-token-shopper", "items": [{ "key": "namespace", "path": "namespace" }] } },
        ])
    );
}

#[test]
fn containers_are_told_what_is_so_at_home() {
    let field = |path: &str| json!({ "fieldRef": { "fieldPath": path } });
    let spec = translate(json!({ "containers": [{ "name": "main",
        "env": [
            { "name": "NS", "valueFrom": field("metadata.namespace") },
            { "name": "SA", "valueFrom": field("spec.serviceAccountName") },
            { "name": "IP", "valueFrom": field("status.podIP") },
            { "name": "CA", "valueFrom": { "configMapKeyRef": { "name": "kube-root-ca.crt", "key": "ca.crt" } } },
        ],
        "envFrom": [{ "configMapRef": { "name": "kube-root-ca.crt" } }, { "secretRef": { "name": "s" } }] }] }));
    let main = &spec["containers"][0];
    assert_eq!(
        main["env"],
        json!([
            { "name": "NS", "value": "shop" },
            { "name": "SA", "value": "default" },
            { "name": "IP", "valueFrom": field("status.podIP") },
            { "name": "CA", "valueFrom": { "configMapKeyRef": { "name": "kube-root-ca.crt.home", "key": "ca.crt" } } },
        ])
    );
    assert_eq!(
        main["envFrom"],
        json!([
            { "configMapRef": { "name": "kube-root-ca.crt.home" } }, { "secretRef": { "name": "s" } }
        ])
    );
}

#[test]
fn the_virtual_storage_class_becomes_one_of_the_provider() {
    let volume = |class: &str| json!([{ "name": "v", "ephemeral": { "volumeClaimTemplate": { "spec": { "storageClassName": class } } } }]);
    let spec = translate(json!({ "volumes": volume("liqo") }));
    assert_eq!(spec["volumes"], volume("fast"));
    let spec = translate(json!({ "volumes": volume("own") }));
    assert_eq!(spec["volumes"], volume("own"));
}

#[test]
fn resource_claims_are_refused_in_words() {
    let spec = json!({ "containers": [], "resourceClaims": [{ "name": "gpu", "resourceClaimName": "g" }] });
    let refusal = pod_spec(serde_json::from_value(spec).unwrap(), &ROUTE).unwrap_err();
    assert_eq!(refusal.reason, "ResourceClaimsNotSupported");
    assert!(refusal.message.contains("spec.resourceClaims"), "{}", refusal.message);
}

#[test]
fn translating_what_was_translated_changes_nothing() {
    let spec = json!({ "serviceAccountName": "shopper", "hostNetwork": true,
        "tolerations": [{ "key": "virtual-node.liqo.io/not-allowed", "operator": "Exists" }],
        "volumes": [{ "name": "t", "projected": { "sources": [{ "serviceAccountToken": { "path": "token" } },
            { "configMap": { "name": "kube-root-ca.crt" } }] } }] });
    let once = translate(spec);
    assert_eq!(translate(once.clone()), once);
}

#[test]
fn a_shadow_pod_names_its_pod_and_what_it_was_made_from() {
    let draft = Draft {
        labels: [("app", "a"), ("liqo.io/shadowPod", "true"), ("liqo.io/managed-by", "me")]
            .map(|(key, value)| (key.to_owned(), value.to_owned()))
            .into(),
        annotations: [("kubectl.kubernetes.io/last-applied-configuration".to_owned(), "{}".to_owned())]
            .into(),
        spec: PodSpec::default(),
        fenced: false,
    };
    let shadow = shadow_pod("one", "uid-1", draft, "digest", &ROUTE).unwrap();
    let labels = shadow.metadata.labels.unwrap();
    assert_eq!(
        labels.keys().map(String::as_str).collect::<Vec<_>>(),
        ["app", "virtualkubelet.liqo.io/destination", "virtualkubelet.liqo.io/origin"]
    );
    let notes = shadow.metadata.annotations.unwrap();
    assert_eq!(notes.len(), 2);
    assert_eq!(notes["virtualkubelet.liqo.io/pod-uid"], "uid-1");
    assert_eq!(notes["virtualkubelet.liqo.io/content"], content("digest", &ROUTE));
    assert_ne!(content("digest", &ROUTE), content("other", &ROUTE));
    assert_ne!(content("digest", &ROUTE), content("digest", &Route { provider: "other", ..ROUTE }));
}
