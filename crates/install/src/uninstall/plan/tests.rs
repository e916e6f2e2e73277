use std::collections::{BTreeMap, BTreeSet};

use kube::api::{ApiResource, GroupVersionKind};
use serde_json::{Value, json};

use super::{
    Ending, ending, fingerprint, foreign_finalizers, hosted_namespaces, in_use, is_liqo_group, is_stranded,
    one_by_one, strangers,
};
use crate::inventory::Seen;
use crate::kinds::Kind;
use crate::objects::Id;

fn seen(api_version: &str, kind: &str, namespace: Option<&str>, name: &str, ours: bool) -> Seen {
    let (group, version) = api_version.rsplit_once('/').unwrap_or(("", api_version));
    let label = ("app.kubernetes.io/part-of".to_owned(), "liqo-rs".to_owned());
    Seen {
        id: Id {
            api_version: api_version.into(),
            kind: kind.into(),
            namespace: namespace.map(str::to_owned),
            name: name.into(),
        },
        kind: Kind {
            resource: ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind)),
            namespaced: namespace.is_some(),
        },
        labels: if ours { BTreeMap::from([label]) } else { BTreeMap::new() },
        finalizers: vec![],
        version: "1".into(),
        owned: false,
        terminating: false,
    }
}

#[test]
fn what_calls_the_manager_goes_first_and_its_rights_after_it() {
    let here = Some("liqo");
    let all = [
        seen("v1", "ConfigMap", here, "liqo-network", true),
        seen("rbac.authorization.k8s.io/v1", "ClusterRole", None, "m", true),
        seen("apps/v1", "Deployment", here, "m", true),
        seen("admissionregistration.k8s.io/v1", "MutatingWebhookConfiguration", None, "w", true),
    ];
    let kinds: Vec<String> = one_by_one(&all, "liqo", true).into_iter().map(|one| one.id.kind).collect();
    assert_eq!(kinds, ["MutatingWebhookConfiguration", "Deployment", "ClusterRole", "ConfigMap"]);
}

#[test]
fn identity_kinds_namespace_and_what_follows_others_are_not_deleted_one_by_one() {
    let here = Some("liqo");
    let owned = Seen { owned: true, ..seen("apps/v1", "ReplicaSet", here, "m-1", true) };
    let all = [
        seen("v1", "Secret", here, "liqo-identity", true),
        seen("v1", "ConfigMap", here, "clusterid-configmap", true),
        seen("v1", "Secret", here, "liqo-installation", true),
        seen("v1", "Namespace", None, "liqo", true),
        seen("apiextensions.k8s.io/v1", "CustomResourceDefinition", None, "a.liqo.io", true),
        seen("config.liqo.io/v1alpha1", "ClusterConfig", None, "liqo", true),
        seen("v1", "Endpoints", here, "m", true),
        seen("v1", "ConfigMap", here, "stranger", false),
        owned,
    ];
    assert!(one_by_one(&all, "liqo", true).is_empty());
}

#[test]
fn what_belongs_to_peerings_stays_until_they_are_purged() {
    let by = |name: &str, manager: &str| {
        let mut secret = seen("v1", "Secret", Some("liqo"), name, true);
        secret.labels.insert("app.kubernetes.io/managed-by".into(), manager.into());
        secret
    };
    let all = [by("auth-token", "liqo-controller-manager"), by("of-the-chart", "liqoctl")];
    let names =
        |purge| one_by_one(&all, "liqo", purge).into_iter().map(|one| one.id.name).collect::<Vec<_>>();
    assert_eq!(names(false), ["of-the-chart"]);
    assert_eq!(names(true), ["auth-token", "of-the-chart"]);
}

#[test]
fn nothing_is_found_any_more_when_the_peers_are_parted_from() {
    assert_eq!(ending("SearchDomain"), Ending::Finding);
    assert_eq!(ending("ForeignCluster"), Ending::Parting);
    assert_eq!(ending("Contract"), Ending::Rest);
}

#[test]
fn any_change_to_what_is_left_is_progress() {
    let one = seen("discovery.liqo.io/v1alpha1", "ForeignCluster", None, "rome", false);
    let two = seen("discovery.liqo.io/v1alpha1", "ForeignCluster", None, "turin", false);
    let later = Seen { version: "2".into(), ..one.clone() };
    let standing = fingerprint(&[one.clone(), two.clone()]);
    assert_eq!(standing, fingerprint(&[two.clone(), one]), "the order says nothing");
    assert_ne!(standing, fingerprint(&[later, two.clone()]));
    assert_ne!(standing, fingerprint(&[two]));
}

#[test]
fn a_namespace_is_known_as_a_peers_by_what_only_the_manager_writes() {
    assert_eq!(
        hosted_namespaces(),
        "app.kubernetes.io/part-of=liqo-rs,app.kubernetes.io/managed-by=liqo-controller-manager,\
         app.kubernetes.io/component=hosting"
    );
}

#[test]
fn a_pod_is_stranded_when_its_node_is_gone() {
    let nodes = BTreeSet::from(["here".to_owned()]);
    let stranded = |node: Value| {
        let pod = json!({ "metadata": {}, "spec": { "containers": [], "nodeName": node } });
        is_stranded(&serde_json::from_value(pod).unwrap(), &nodes)
    };
    assert!(stranded(json!("liqo-rome")));
    assert!(!stranded(json!("here")));
    assert!(!stranded(Value::Null), "the scheduler has yet to place it");
}

#[test]
fn only_what_somebody_put_there_is_a_stranger() {
    let here = Some("liqo");
    let mine = seen("v1", "ConfigMap", here, "mine", false);
    let pod = seen("v1", "Pod", here, "bare", false);
    let mut token = seen("v1", "Secret", here, "token-of-a-peer", false);
    token.labels.insert("discovery.liqo.io/auth-token".into(), "x".into());
    let all = [
        mine.clone(),
        pod.clone(),
        token,
        Seen { owned: true, ..seen("v1", "Pod", here, "of-a-set", false) },
        Seen { terminating: true, ..seen("v1", "ConfigMap", here, "going", false) },
        seen("v1", "ConfigMap", here, "kube-root-ca.crt", false),
        seen("v1", "ServiceAccount", here, "default", false),
        seen("v1", "Event", here, "e", false),
        seen("events.k8s.io/v1", "Event", here, "e", false),
        seen("v1", "Endpoints", here, "m", false),
        seen("v1", "Secret", here, "liqo-identity", false),
        seen("coordination.k8s.io/v1", "Lease", here, "liqo-controller-manager", false),
        seen("coordination.k8s.io/v1", "Lease", here, "liqo-installation", false),
        seen("net.liqo.io/v1alpha1", "TunnelEndpoint", here, "t", false),
        seen("v1", "ConfigMap", Some("other"), "elsewhere", false),
        seen("v1", "ConfigMap", here, "liqo-network", true),
    ];
    assert_eq!(strangers(&all, "liqo"), [mine.id, pod.id]);
}

#[test]
fn only_finalizers_of_liqo_are_taken_off() {
    let all = [
        "crdReplicator.liqo.io",
        "liqo.io/node",
        "virtualnode-controller.liqo.io/finalizer",
        "liqo-route.10-0-0-1.net.liqo.io",
        "foregroundDeletion",
        "example.com/liqo.io",
        "notliqo.io/x",
    ]
    .map(str::to_owned);
    assert_eq!(foreign_finalizers(&all), ["foregroundDeletion", "example.com/liqo.io", "notliqo.io/x"]);
}

#[test]
fn groups_of_liqo_end_in_its_domain() {
    assert!(is_liqo_group("net.liqo.io") && is_liqo_group("liqo.io"));
    assert!(!is_liqo_group("notliqo.io") && !is_liqo_group("apps"));
}

fn peer(name: &str, object: Value) -> (Id, Value) {
    (
        Id {
            api_version: "discovery.liqo.io/v1alpha1".into(),
            kind: "ForeignCluster".into(),
            namespace: None,
            name: name.into(),
        },
        object,
    )
}

#[test]
fn peerings_and_offloaded_namespaces_are_in_use() {
    let established = json!({"status": {"peeringConditions": [{"type": "OutgoingPeering", "status": "Established"},
        {"type": "IncomingPeering", "status": "None"}]}});
    let offloading = Id {
        api_version: "offloading.liqo.io/v1alpha1".into(),
        kind: "NamespaceOffloading".into(),
        namespace: Some("shop".into()),
        name: "offloading".into(),
    };
    let found = in_use(&[
        peer("rome", established),
        peer("asked", json!({"spec": {"incomingPeeringEnabled": "Yes"}})),
        peer("idle", json!({"spec": {"outgoingPeeringEnabled": "Auto"}})),
        (offloading, json!({})),
    ]);
    assert_eq!(
        found,
        [
            "peering with rome (outgoing Established)",
            "peering with asked (incoming None)",
            "namespace shop is offloaded"
        ]
    );
}
