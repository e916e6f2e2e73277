//! What a consumer tries to escape with, one by one, against the admission of a real API server and the room behind it.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that cannot go on has failed"
)]

#[path = "support/install.rs"]
mod install;
#[path = "support/world.rs"]
mod world;

use k8s_openapi::api::core::v1::{ConfigMap, PersistentVolumeClaim, Pod, Secret, Service};
use kube::ResourceExt;
use kube::api::{Patch, PatchParams};
use liqo_api::ShadowPod;
use liqo_api::namespace_map::MappingPhase::Accepted;
use liqo_core::contract::Enforcement;
use liqo_sandbox::{ClusterSpec, TestSandbox};
use serde_json::{Value, json};
use world::{Consumer, Provider, eventually, pod};

const SPACE: &str = "shop-milan";

#[tokio::test(flavor = "multi_thread")]
async fn nothing_of_a_consumer_reaches_what_is_not_its_own() {
    let sandbox = TestSandbox::start([ClusterSpec::hollow("provider", 1)]).await;
    let provider = Provider::new(sandbox.cluster("provider")).await;
    let _process = provider.start().await;
    let milan = provider.consumer("milan").await;
    milan.sign(&[("cpu", "4"), ("memory", "8Gi"), ("pods", "100")], Enforcement::Hard).await;
    milan.ask("map", &[("shop", SPACE)]).await;
    milan.wait_told("map", "shop", Accepted, "").await;
    policies_are_in_force(&milan).await;

    what_can_be_told_at_once_is_refused_by_admission(&milan).await;
    a_harmless_pod_does_not_become_a_hostile_one(&milan).await;
    what_pod_security_forbids_is_told_in_the_shadow(&provider, &milan).await;
    what_is_not_for_consumers_to_say_is_not_said(&milan).await;
    other_objects_reach_nothing_either(&milan).await;
}

/// A policy is in force some time after it was created.
async fn policies_are_in_force(milan: &Consumer<'_>) {
    eventually("the policies are in force", || async {
        let said = milan.want(SPACE, "try", &with(&json!({ "hostNetwork": true }))).await;
        match said {
            Err(said) if said.contains("liqo-shadowpods") => Ok(()),
            said => {
                let _ = milan.api::<ShadowPod>(SPACE).delete("try", &Default::default()).await;
                Err(format!("{said:?}"))
            }
        }
    })
    .await;
    let mut held = config(json!({ "finalizers": ["example.com/hold"] }));
    // One that slips through stays, and must not be in the way later.
    held.metadata.name = Some("slips-through".to_owned());
    eventually("the policies are in force", || async {
        match milan.create(SPACE, &held).await {
            Err(said) if said.contains("liqo-tenants") => Ok(()),
            said => Err(format!("{said:?}")),
        }
    })
    .await;
}

/// A pod with these fields.
fn with(fields: &Value) -> Value {
    let mut pod = pod("1m");
    for (name, value) in fields.as_object().unwrap() {
        pod[name] = value.clone();
    }
    pod
}

/// A pod whose container has these fields.
fn container(fields: &Value) -> Value {
    let mut pod = pod("1m");
    for (name, value) in fields.as_object().unwrap() {
        pod["containers"][0][name] = value.clone();
    }
    pod
}

fn volume(mut volume: Value) -> Value {
    volume["name"] = json!("it");
    with(&json!({ "volumes": [volume] }))
}

fn refused_at_once() -> Vec<(&'static str, Value)> {
    let port = json!([{ "containerPort": 80, "hostPort": 80 }]);
    let init = json!([{ "name": "init", "image": "app", "ports": port }]);
    let source = |source: Value| volume(json!({ "projected": { "sources": [source] } }));
    vec![
        ("hostNetwork", with(&json!({ "hostNetwork": true }))),
        ("hostPID", with(&json!({ "hostPID": true }))),
        ("hostIPC", with(&json!({ "hostIPC": true }))),
        ("nodeName", with(&json!({ "nodeName": "provider-1" }))),
        ("serviceAccountName", with(&json!({ "serviceAccountName": "admin" }))),
        ("serviceAccount", with(&json!({ "serviceAccount": "admin" }))),
        ("priorityClassName", with(&json!({ "priorityClassName": "system-cluster-critical" }))),
        ("resourceClaims", with(&json!({ "resourceClaims": [{ "name": "x", "resourceClaimName": "y" }] }))),
        ("hostPort", container(&json!({ "ports": port }))),
        ("hostPort of an init container", with(&json!({ "initContainers": init }))),
        ("hostPath", volume(json!({ "hostPath": { "path": "/" } }))),
        ("nfs", volume(json!({ "nfs": { "server": "10.0.0.1", "path": "/" } }))),
        ("csi", volume(json!({ "csi": { "driver": "secrets-store.csi.k8s.io" } }))),
        ("iscsi", volume(json!({ "iscsi": { "targetPortal": "10.0.0.1", "iqn": "i", "lun": 0 } }))),
        ("flexVolume", volume(json!({ "flexVolume": { "driver": "x" } }))),
        ("a volume of a kind that is not known", volume(json!({ "teleport": { "to": "node" } }))),
        ("serviceAccountToken", source(json!({ "serviceAccountToken": { "path": "token" } }))),
        ("clusterTrustBundle", source(json!({ "clusterTrustBundle": { "path": "ca" } }))),
        (
            "podCertificate",
            source(json!({ "podCertificate": { "signerName": "x/y", "keyType": "ED25519" } })),
        ),
    ]
}

async fn what_can_be_told_at_once_is_refused_by_admission(milan: &Consumer<'_>) {
    let mut wrong = Vec::new();
    for (what, pod) in refused_at_once() {
        // As it is on the wire: the types of a client would leave out what they do not know.
        let said = milan.try_shadow(SPACE, "escape", &pod).await;
        if !said.as_ref().is_err_and(|said| said.contains("liqo-shadowpods")) {
            wrong.push(format!("{what}: {said:?}"));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

async fn a_harmless_pod_does_not_become_a_hostile_one(milan: &Consumer<'_>) {
    milan.want(SPACE, "harmless", &pod("1m")).await.unwrap();
    milan.wait_pod(SPACE, "harmless", |_| true).await;
    let shadows = milan.api::<ShadowPod>(SPACE);
    for (what, pod) in refused_at_once() {
        let patch = Patch::Merge(json!({ "spec": { "pod": pod } }));
        let said = shadows.patch("harmless", &PatchParams::default(), &patch).await;
        assert!(
            said.as_ref().is_err_and(|it| it.to_string().contains("liqo-shadowpods")),
            "{what}: {said:?}"
        );
    }
    milan.drop_pod(SPACE, "harmless").await;
    milan.wait_no_pod(SPACE, "harmless").await;
}

async fn what_pod_security_forbids_is_told_in_the_shadow(provider: &Provider<'_>, milan: &Consumer<'_>) {
    let security = |fields: Value| container(&json!({ "securityContext": fields }));
    let hostile = [
        ("privileged", security(json!({ "privileged": true }))),
        ("capabilities", security(json!({ "capabilities": { "add": ["SYS_ADMIN"] } }))),
        ("seccomp", security(json!({ "seccompProfile": { "type": "Unconfined" } }))),
        ("selinux", security(json!({ "seLinuxOptions": { "type": "spc_t" } }))),
        ("apparmor", security(json!({ "appArmorProfile": { "type": "Unconfined" } }))),
        ("host-process", security(json!({ "windowsOptions": { "hostProcess": true } }))),
        (
            "sysctls",
            with(&json!({ "securityContext": { "sysctls": [{ "name": "kernel.msgmax", "value": "1" }] } })),
        ),
    ];
    for (what, pod) in &hostile {
        milan.want(SPACE, what, pod).await.unwrap();
    }
    for (what, _) in &hostile {
        let message = milan.wait_refused(SPACE, what, "Forbidden").await;
        println!("{what}: {message}");
        assert!(provider.api::<Pod>(SPACE).get_opt(what).await.unwrap().is_none(), "{what}");
        milan.drop_pod(SPACE, what).await;
    }
    // What the API server finds no pod in is told as well.
    milan.want(SPACE, "odd", &container(&json!({ "image": "" }))).await.unwrap();
    milan.wait_refused(SPACE, "odd", "Invalid").await;
    milan.drop_pod(SPACE, "odd").await;
}

async fn what_is_not_for_consumers_to_say_is_not_said(milan: &Consumer<'_>) {
    let mut shadow = world::shadow(
        "milan",
        "meek",
        &with(&json!({
            "tolerations": [{ "operator": "Exists" }],
            "nodeSelector": { "node-role.kubernetes.io/control-plane": "" },
            "schedulerName": "mine",
            "automountServiceAccountToken": true,
            "runtimeClassName": "weak",
            "priority": 2_000_000_000,
            "hostUsers": true,
            "hostGalaxy": true,
        })),
    );
    shadow.annotations_mut().insert("k8s.v1.cni.cncf.io/networks".into(), "host".into());
    shadow.labels_mut().insert("liqo.io/remote-cluster-id".into(), "turin".into());
    milan.create(SPACE, &shadow).await.unwrap();
    let pod = milan.wait_pod(SPACE, "meek", |_| true).await;
    assert!(!pod.annotations().contains_key("k8s.v1.cni.cncf.io/networks"));
    assert!(!pod.labels().contains_key("liqo.io/remote-cluster-id"));
    let spec = pod.spec.unwrap();
    let tolerated: Vec<_> = spec.tolerations.unwrap_or_default().into_iter().map(|it| it.key).collect();
    let usual = ["node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"];
    assert!(
        tolerated.iter().all(|key| key.as_deref().is_some_and(|key| usual.contains(&key))),
        "{tolerated:?}"
    );
    assert_eq!((spec.node_selector, spec.runtime_class_name, spec.priority), (None, None, Some(0)));
    assert_eq!(spec.scheduler_name.as_deref(), Some("default-scheduler"));
    assert_eq!((spec.automount_service_account_token, spec.host_users), (Some(false), None));
    assert_eq!(spec.service_account_name.as_deref(), Some("default"));
    let volumes = spec.volumes.unwrap_or_default();
    assert!(volumes.is_empty(), "no token is mounted: {volumes:?}");
    milan.drop_pod(SPACE, "meek").await;
}

fn config(metadata: Value) -> ConfigMap {
    let mut metadata = metadata;
    metadata["name"] = json!("held");
    serde_json::from_value(json!({ "metadata": metadata })).unwrap()
}

async fn other_objects_reach_nothing_either(milan: &Consumer<'_>) {
    let token: Secret = serde_json::from_value(json!({
        "metadata": { "name": "token", "annotations": { "kubernetes.io/service-account.name": "default" } },
        "type": "kubernetes.io/service-account-token",
    }))
    .unwrap();
    let service: Service = serde_json::from_value(json!({
        "metadata": { "name": "thief" },
        "spec": { "ports": [{ "port": 443 }], "externalIPs": ["10.0.0.1"] },
    }))
    .unwrap();
    let claim = |fields: Value| -> PersistentVolumeClaim {
        let mut spec = json!({
            "accessModes": ["ReadWriteOnce"], "resources": { "requests": { "storage": "1Gi" } },
        });
        fields.as_object().unwrap().iter().for_each(|(name, value)| spec[name] = value.clone());
        serde_json::from_value(json!({ "metadata": { "name": "claim" }, "spec": spec })).unwrap()
    };
    let refused = [
        milan.create(SPACE, &token).await,
        milan.create(SPACE, &service).await,
        milan.create(SPACE, &claim(json!({ "volumeName": "backup-of-the-provider" }))).await,
        milan.create(SPACE, &config(json!({ "finalizers": ["example.com/hold"] }))).await,
    ];
    for said in refused {
        assert!(said.as_ref().is_err_and(|said| said.contains("liqo-tenants")), "{said:?}");
    }
    // The same without what is wrong with them.
    milan.create(SPACE, &claim(json!({}))).await.unwrap();
    milan.create(SPACE, &config(json!({}))).await.unwrap();
}
