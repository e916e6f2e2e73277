use super::*;
use crate::mirror::{read_here, read_there};
use crate::translate::Unchanged;

const ROUTE: Route<'static> = Route {
    home: "home-1",
    provider: "away",
    namespace: "shop",
    remote: "shop-home",
    storage_class: Some("fast"),
};

fn around(check: impl FnOnce(&Around<'_>)) {
    let provider_of = |node: &str| (node == "liqo-away").then(|| "away".to_owned());
    check(&Around { translate: &Unchanged, provider_of: &provider_of });
}

fn read<K: serde::de::DeserializeOwned>(value: Value) -> K {
    serde_json::from_value(value).unwrap()
}

/// What the copy of an object is.
fn copy<K: Mirrored>(kind: Kind, value: Value) -> Option<Value> {
    let here = read_here::<K>(read(value))?;
    let mut copied = None;
    around(|around| copied = kind.forge(&here, &ROUTE, around));
    copied
}

#[test]
fn a_copy_says_where_it_comes_from_and_nothing_about_who_applied_it() {
    let copied = copy::<ConfigMap>(
        Kind::ConfigMap,
        json!({ "metadata": { "name": "a", "namespace": "shop", "uid": "u", "resourceVersion": "5",
            "ownerReferences": [{ "apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "x" }],
            "finalizers": ["x/y"], "labels": { "app": "a", "virtualkubelet.liqo.io/origin": "another" },
            "annotations": { "kubectl.kubernetes.io/last-applied-configuration": "{}", "note": "n" } },
            "data": { "k": "v" } }),
    )
    .unwrap();
    let meta = &copied["metadata"];
    assert_eq!(
        meta["labels"],
        json!({ "app": "a", "virtualkubelet.liqo.io/origin": "home-1",
        "virtualkubelet.liqo.io/destination": "away" })
    );
    assert_eq!(meta["annotations"]["note"], "n");
    assert_eq!(meta["annotations"].as_object().unwrap().len(), 2, "{meta}");
    for gone in ["uid", "resourceVersion", "ownerReferences", "finalizers"] {
        assert_eq!(meta.get(gone), None, "{gone}");
    }
    assert_eq!((&meta["namespace"], &meta["name"]), (&json!("shop-home"), &json!("a")));
    assert_eq!(copied["data"], json!({ "k": "v" }));
}

#[test]
fn the_copy_of_a_copy_is_recognised() {
    let original = json!({ "metadata": { "name": "a" }, "data": { "k": "v" }, "immutable": true });
    let here = read_here::<ConfigMap>(read(original.clone())).unwrap();
    let there = read_there::<ConfigMap>(read(copy::<ConfigMap>(Kind::ConfigMap, original).unwrap()));
    assert_eq!(*there.content, *crate::mirror::content(&here.digest, &ROUTE));
    assert_eq!(there.inside, here.inside);
    assert_eq!(there.origin.as_deref(), Some("home-1"));
    assert!(there.immutable);
}

#[test]
fn what_is_about_this_cluster_alone_stays() {
    for type_ in HOME_ONLY {
        let secret = json!({ "metadata": { "name": "s" }, "type": type_ });
        assert_eq!(copy::<Secret>(Kind::Secret, secret), None, "{type_}");
    }
    let api_server = json!({ "metadata": { "name": "kubernetes", "namespace": "default" }, "spec": {} });
    assert_eq!(copy::<Service>(Kind::Service, api_server), None);
    let private =
        json!({ "metadata": { "name": "a", "annotations": { "liqo.io/skip-reflection": "true" } } });
    assert_eq!(copy::<ConfigMap>(Kind::ConfigMap, private), None);
}

#[test]
fn a_service_keeps_what_was_asked_for_and_loses_what_was_given() {
    let service = |annotations: Value, cluster_ip: &str| {
        json!({ "metadata": { "name": "web", "annotations": annotations }, "status": { "loadBalancer": {} },
            "spec": { "type": "LoadBalancer", "clusterIP": cluster_ip, "clusterIPs": [cluster_ip],
                "ipFamilies": ["IPv4"], "ipFamilyPolicy": "SingleStack", "externalIPs": ["1.2.3.4"],
                "healthCheckNodePort": 31000, "loadBalancerIP": "5.6.7.8", "sessionAffinity": "ClientIP",
                "selector": { "app": "web" }, "ports": [{ "port": 80, "nodePort": 30000, "targetPort": "http" }] } })
    };
    let copied = copy::<Service>(Kind::Service, service(json!({}), "10.0.0.1")).unwrap();
    assert_eq!(
        copied["spec"],
        json!({ "type": "LoadBalancer", "sessionAffinity": "ClientIP",
        "selector": { "app": "web" }, "ports": [{ "port": 80, "targetPort": "http" }] })
    );
    assert_eq!(copied.get("status"), None);
    let headless = copy::<Service>(Kind::Service, service(json!({}), "None")).unwrap();
    assert_eq!(headless["spec"]["clusterIP"], "None");
    let forced = json!({ "liqo.io/force-remote-node-port": "true" });
    let forced = copy::<Service>(Kind::Service, service(forced, "10.0.0.1")).unwrap();
    assert_eq!(forced["spec"]["ports"][0]["nodePort"], 30000);
}

#[test]
fn stripping_twice_is_stripping_once() {
    let service: Service = read(json!({ "metadata": { "name": "web" }, "spec": { "clusterIP": "10.0.0.1",
        "ports": [{ "port": 80, "nodePort": 30000 }] } }));
    let once = service.strip().unwrap();
    assert_eq!(once.clone().strip().unwrap(), once);
    let ingress: Ingress =
        read(json!({ "metadata": { "name": "web", "annotations": { "kubernetes.io/ingress.class": "x" } },
        "spec": { "ingressClassName": "nginx" } }));
    let once = ingress.strip().unwrap();
    assert_eq!(once.clone().strip().unwrap(), once);
}

#[test]
fn endpoints_that_run_there_are_left_to_the_provider() {
    let slice = |nodes: &[&str]| {
        let endpoints: Vec<_> = nodes
            .iter()
            .map(|node| {
                json!({ "addresses": ["10.0.0.1"], "nodeName": node, "zone": "a",
                "targetRef": { "kind": "Pod", "name": "p" } })
            })
            .collect();
        json!({ "metadata": { "name": "web-x", "labels": { "kubernetes.io/service-name": "web" } },
            "addressType": "IPv4", "endpoints": endpoints })
    };
    let copied = copy::<EndpointSlice>(Kind::EndpointSlice, slice(&["node-1", "liqo-away"])).unwrap();
    assert_eq!(
        copied["endpoints"],
        json!([{ "addresses": ["10.0.0.1"], "nodeName": "home-1", "conditions": null,
        "targetRef": { "kind": "RemotePod", "name": "p" } }])
        .as_array()
        .map(|all| {
            Value::Array(
                all.iter()
                    .cloned()
                    .map(|mut it| {
                        it.as_object_mut().unwrap().remove("conditions");
                        it
                    })
                    .collect(),
            )
        })
        .unwrap()
    );
    assert_eq!(copy::<EndpointSlice>(Kind::EndpointSlice, slice(&["liqo-away"])), None);
}

#[test]
fn a_claim_asks_for_the_class_of_the_provider_and_says_for_whom_it_was_made() {
    let claim = json!({ "metadata": { "name": "data", "uid": "u-1", "annotations": {
            "volume.kubernetes.io/selected-node": "liqo-away", "pv.kubernetes.io/bind-completed": "yes", "note": "n" } },
        "spec": { "storageClassName": "liqo", "volumeName": "pv-1", "accessModes": ["ReadWriteOnce"],
            "resources": { "requests": { "storage": "1Gi" } } }, "status": { "phase": "Bound" } });
    let copied = copy::<PersistentVolumeClaim>(Kind::Claim, claim).unwrap();
    assert_eq!(
        copied["spec"],
        json!({ "storageClassName": "fast", "accessModes": ["ReadWriteOnce"],
        "resources": { "requests": { "storage": "1Gi" } } })
    );
    let notes = copied["metadata"]["annotations"].as_object().unwrap();
    assert_eq!(notes["storage.liqo.io/virtual-pvc-uid"], "u-1");
    assert_eq!(notes["note"], "n");
    assert_eq!(notes.len(), 3, "{copied}");
}
