//! Every field of a pod, one by one, as a consumer would use it to escape, against the admission of a real API server and
//! the room behind it. The list of fields is the API server's own: one that Kubernetes adds fails here until it is decided.

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

use std::collections::BTreeSet;

use k8s_openapi::api::core::v1::Pod;
use liqo_api::namespace_map::MappingPhase::Accepted;
use liqo_core::contract::Enforcement;
use liqo_sandbox::{ClusterSpec, TestSandbox};
use serde_json::{Value, json};
use world::{Consumer, Provider, eventually, pod};

const SPACE: &str = "shop-milan";

/// What must become of a pod with a field.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Fate {
    /// Admission refuses the ShadowPod.
    Refused,
    /// No pod is made, and the ShadowPod says why.
    Told,
    /// A pod is made, and what was said is not said of it.
    Unheard,
    /// It concerns nobody else, and is passed on.
    Passed,
    /// It concerns nobody else; what becomes of it depends on the version of Kubernetes.
    Harmless,
    /// Its own fields are tried.
    Inside,
}
use Fate::{Harmless, Inside, Passed, Refused, Told, Unheard};

/// A kind of Kubernetes, where in a pod it is, and what becomes of its fields.
struct Kind {
    name: &'static str,
    /// The path to it in a pod's specification.
    path: &'static str,
    fields: Vec<(&'static str, Value, Fate)>,
}

#[tokio::test(flavor = "multi_thread")]
async fn each_field_of_a_pod_is_decided() {
    let sandbox = TestSandbox::start([ClusterSpec::hollow("provider", 1)]).await;
    let provider = Provider::new(sandbox.cluster("provider")).await;
    let _process = provider.start().await;
    let milan = provider.consumer("milan").await;
    milan.sign(&[("cpu", "4"), ("memory", "8Gi"), ("pods", "500")], Enforcement::Hard).await;
    milan.ask("map", &[("shop", SPACE)]).await;
    milan.wait_told("map", "shop", Accepted, "").await;
    let hostile = at("/hostNetwork", json!(true));
    eventually("the policies are in force", || async {
        match milan.try_shadow(SPACE, "try", &hostile).await {
            Err(said) if said.contains("liqo-shadowpods") => Ok(()),
            said => Err(format!("{said:?}")),
        }
    })
    .await;
    let kinds = [pods(), containers(), pod_security(), container_security(), volumes(), probes()];
    nothing_is_left_out(&provider, &kinds).await;
    let wrong = each_has_its_fate(&milan, &kinds).await;
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// A pod with this value at this place.
fn at(path: &str, value: Value) -> Value {
    let mut pod = pod("1m");
    let mut place = &mut pod;
    let mut parts = path.split('/').skip(1).peekable();
    while let Some(part) = parts.next() {
        place = match part.parse::<usize>() {
            Ok(index) => &mut place[index],
            Err(_) => &mut place[part],
        };
        if place.is_null() && parts.peek().is_some_and(|next| next.parse::<usize>().is_ok()) {
            *place = json!([{}]);
        }
    }
    *place = value;
    if path.starts_with("/volumes/0/") {
        pod["volumes"][0]["name"] = json!("it");
    }
    pod
}

fn pods() -> Kind {
    let claim = json!([{ "name": "x", "resourceClaimName": "y" }]);
    let node = json!({ "nodeAffinity": { "requiredDuringSchedulingIgnoredDuringExecution": { "nodeSelectorTerms": [
        { "matchExpressions": [{ "key": "secret", "operator": "DoesNotExist" }] }] } } });
    let spread = json!([{ "maxSkew": 1, "topologyKey": "kubernetes.io/hostname", "whenUnsatisfiable": "ScheduleAnyway",
        "labelSelector": { "matchLabels": { "app": "test" } } }]);
    let debugger = json!([{ "name": "debugger", "image": "x", "securityContext": { "privileged": true } }]);
    let fields = vec![
        ("activeDeadlineSeconds", json!(3600), Passed),
        ("affinity", node, Unheard),
        ("automountServiceAccountToken", json!(true), Unheard),
        ("containers", Value::Null, Inside),
        ("dnsConfig", json!({ "nameservers": ["10.0.0.10"] }), Passed),
        ("dnsPolicy", json!("Default"), Passed),
        ("enableServiceLinks", json!(false), Passed),
        ("ephemeralContainers", debugger, Unheard),
        ("hostAliases", json!([{ "ip": "10.0.0.1", "hostnames": ["db"] }]), Passed),
        ("hostIPC", json!(true), Refused),
        ("hostNetwork", json!(true), Refused),
        ("hostPID", json!(true), Refused),
        ("hostUsers", json!(true), Unheard),
        ("hostname", json!("web"), Passed),
        ("hostnameOverride", json!("web"), Harmless),
        ("imagePullSecrets", json!([{ "name": "own" }]), Passed),
        ("initContainers", Value::Null, Inside),
        ("nodeName", json!("provider-hollow-1"), Refused),
        ("nodeSelector", json!({ "node-role.kubernetes.io/control-plane": "" }), Unheard),
        ("os", json!({ "name": "linux" }), Passed),
        ("overhead", json!({ "cpu": "1m" }), Unheard),
        ("preemptionPolicy", json!("Never"), Unheard),
        ("priority", json!(2_000_000_000), Unheard),
        ("priorityClassName", json!("system-node-critical"), Refused),
        ("readinessGates", json!([{ "conditionType": "example.com/gate" }]), Passed),
        ("resourceClaims", claim, Refused),
        ("resources", json!({ "requests": { "cpu": "2m" } }), Passed),
        ("restartPolicy", json!("Never"), Passed),
        ("runtimeClassName", json!("weak"), Unheard),
        ("schedulerName", json!("mine"), Unheard),
        ("schedulingGates", json!([{ "name": "example.com/gate" }]), Unheard),
        ("securityContext", Value::Null, Inside),
        ("serviceAccount", json!("admin"), Refused),
        ("serviceAccountName", json!("admin"), Refused),
        ("setHostnameAsFQDN", json!(true), Passed),
        ("shareProcessNamespace", json!(true), Passed),
        ("subdomain", json!("sub"), Passed),
        // Nobody waits for thirty years until a consumer has left.
        ("terminationGracePeriodSeconds", json!(1_000_000_000), Unheard),
        ("tolerations", json!([{ "key": "control-plane", "operator": "Exists" }]), Unheard),
        ("topologySpreadConstraints", spread, Passed),
        ("volumes", Value::Null, Inside),
    ];
    Kind { name: "PodSpec", path: "", fields }
}

fn containers() -> Kind {
    // The kubelet asks, from the node and with its network.
    let probe = json!({ "httpGet": { "host": "127.0.0.1", "port": 10248, "path": "/healthz" } });
    let hook = json!({ "postStart": { "httpGet": { "host": "169.254.169.254", "port": 80 } } });
    let config = json!([{ "configMapRef": { "name": "own", "optional": true } }]);
    let fields = vec![
        ("args", json!(["x"]), Passed),
        ("command", json!(["x"]), Passed),
        ("env", json!([{ "name": "A", "value": "b" }]), Passed),
        ("envFrom", config, Passed),
        ("image", json!("example.com/other"), Passed),
        ("imagePullPolicy", json!("Always"), Passed),
        ("lifecycle", hook, Told),
        ("livenessProbe", probe.clone(), Told),
        ("name", json!("other"), Passed),
        ("ports", json!([{ "containerPort": 80, "hostPort": 80 }]), Refused),
        ("readinessProbe", probe.clone(), Told),
        ("resizePolicy", json!([{ "resourceName": "cpu", "restartPolicy": "NotRequired" }]), Passed),
        ("resources", json!({ "claims": [{ "name": "gpu" }] }), Told),
        ("restartPolicy", json!("Always"), Harmless),
        ("restartPolicyRules", json!([{ "action": "Restart" }]), Harmless),
        ("securityContext", Value::Null, Inside),
        ("startupProbe", probe, Told),
        ("stdin", json!(true), Passed),
        ("stdinOnce", json!(true), Passed),
        ("terminationMessagePath", json!("/end"), Passed),
        ("terminationMessagePolicy", json!("FallbackToLogsOnError"), Passed),
        ("tty", json!(true), Passed),
        // Of a volume that is not there: the API server says so.
        ("volumeDevices", json!([{ "name": "none", "devicePath": "/dev/sda" }]), Told),
        ("volumeMounts", json!([{ "name": "none", "mountPath": "/mnt" }]), Told),
        ("workingDir", json!("/"), Passed),
    ];
    Kind { name: "Container", path: "/containers/0", fields }
}

fn pod_security() -> Kind {
    let fields = vec![
        ("appArmorProfile", json!({ "type": "Unconfined" }), Told),
        ("fsGroup", json!(0), Passed),
        ("fsGroupChangePolicy", json!("OnRootMismatch"), Passed),
        ("runAsGroup", json!(0), Passed),
        ("runAsNonRoot", json!(true), Passed),
        ("runAsUser", json!(0), Passed),
        ("seLinuxChangePolicy", json!("Recursive"), Harmless),
        ("seLinuxOptions", json!({ "type": "spc_t" }), Told),
        ("seccompProfile", json!({ "type": "Unconfined" }), Told),
        ("supplementalGroups", json!([0]), Passed),
        ("supplementalGroupsPolicy", json!("Strict"), Harmless),
        ("sysctls", json!([{ "name": "kernel.msgmax", "value": "1" }]), Told),
        ("windowsOptions", json!({ "hostProcess": true }), Told),
    ];
    Kind { name: "PodSecurityContext", path: "/securityContext", fields }
}

fn container_security() -> Kind {
    let fields = vec![
        ("allowPrivilegeEscalation", json!(true), Passed),
        ("appArmorProfile", json!({ "type": "Unconfined" }), Told),
        ("capabilities", json!({ "add": ["SYS_ADMIN"] }), Told),
        ("privileged", json!(true), Told),
        ("procMount", json!("Unmasked"), Told),
        ("readOnlyRootFilesystem", json!(true), Passed),
        ("runAsGroup", json!(0), Passed),
        ("runAsNonRoot", json!(true), Passed),
        ("runAsUser", json!(0), Passed),
        ("seLinuxOptions", json!({ "type": "spc_t" }), Told),
        ("seccompProfile", json!({ "type": "Unconfined" }), Told),
        ("windowsOptions", json!({ "hostProcess": true }), Told),
    ];
    Kind { name: "SecurityContext", path: "/containers/0/securityContext", fields }
}

fn volumes() -> Kind {
    let template = json!({ "volumeClaimTemplate": { "spec": { "accessModes": ["ReadWriteOnce"],
        "resources": { "requests": { "storage": "1Gi" } } } } });
    let token = json!({ "sources": [{ "serviceAccountToken": { "path": "token" } }] });
    let fields = vec![
        ("awsElasticBlockStore", json!({ "volumeID": "x" }), Refused),
        ("azureDisk", json!({ "diskName": "x", "diskURI": "y" }), Refused),
        ("azureFile", json!({ "secretName": "x", "shareName": "y" }), Refused),
        ("cephfs", json!({ "monitors": ["10.0.0.1"] }), Refused),
        ("cinder", json!({ "volumeID": "x" }), Refused),
        ("configMap", json!({ "name": "own", "optional": true }), Passed),
        ("csi", json!({ "driver": "example.com" }), Refused),
        ("downwardAPI", json!({ "items": [] }), Harmless),
        ("emptyDir", json!({ "medium": "Memory" }), Passed),
        ("ephemeral", template, Passed),
        ("fc", json!({ "wwids": ["x"] }), Refused),
        ("flexVolume", json!({ "driver": "x" }), Refused),
        ("flocker", json!({ "datasetName": "x" }), Refused),
        ("gcePersistentDisk", json!({ "pdName": "x" }), Refused),
        ("gitRepo", json!({ "repository": "https://example.com" }), Refused),
        ("glusterfs", json!({ "endpoints": "x", "path": "y" }), Refused),
        ("hostPath", json!({ "path": "/" }), Refused),
        ("image", json!({ "reference": "example.com/data" }), Harmless),
        ("iscsi", json!({ "targetPortal": "10.0.0.1", "iqn": "i", "lun": 0 }), Refused),
        ("name", Value::Null, Inside),
        ("nfs", json!({ "server": "10.0.0.1", "path": "/" }), Refused),
        ("persistentVolumeClaim", json!({ "claimName": "own" }), Passed),
        ("photonPersistentDisk", json!({ "pdID": "x" }), Refused),
        ("portworxVolume", json!({ "volumeID": "x" }), Refused),
        ("projected", token, Refused),
        ("quobyte", json!({ "registry": "10.0.0.1:1", "volume": "x" }), Refused),
        ("rbd", json!({ "monitors": ["10.0.0.1"], "image": "x" }), Refused),
        ("scaleIO", json!({ "gateway": "x", "system": "y", "secretRef": { "name": "z" } }), Refused),
        ("secret", json!({ "secretName": "own", "optional": true }), Passed),
        ("storageos", json!({ "volumeName": "x" }), Refused),
        ("vsphereVolume", json!({ "volumePath": "x" }), Refused),
    ];
    Kind { name: "Volume", path: "/volumes/0", fields }
}

/// What a kubelet is told to ask, without saying whom: the pod itself.
fn probes() -> Kind {
    let fields = vec![
        ("exec", json!({ "command": ["true"] }), Passed),
        ("failureThreshold", Value::Null, Inside),
        ("grpc", json!({ "port": 80 }), Passed),
        ("httpGet", json!({ "port": 80 }), Passed),
        ("initialDelaySeconds", Value::Null, Inside),
        ("periodSeconds", Value::Null, Inside),
        ("successThreshold", Value::Null, Inside),
        ("tcpSocket", json!({ "port": 80, "host": "10.0.0.1" }), Told),
        ("terminationGracePeriodSeconds", Value::Null, Inside),
        ("timeoutSeconds", Value::Null, Inside),
    ];
    Kind { name: "Probe", path: "/containers/0/livenessProbe", fields }
}

/// The API server knows no field that is not in the lists.
async fn nothing_is_left_out(provider: &Provider<'_>, kinds: &[Kind]) {
    let request = http::Request::get("/openapi/v3/api/v1").body(Vec::new()).unwrap();
    let text = provider.client.request_text(request).await.unwrap();
    let document: Value = serde_json::from_str(&text).unwrap();
    for kind in kinds {
        let schema = &document["components"]["schemas"][format!("io.k8s.api.core.v1.{}", kind.name)];
        let known: BTreeSet<&str> =
            schema["properties"].as_object().unwrap().keys().map(String::as_str).collect();
        let listed: BTreeSet<&str> = kind.fields.iter().map(|(name, ..)| *name).collect();
        let missing: Vec<_> = known.difference(&listed).collect();
        assert!(missing.is_empty(), "{}: nobody has decided about {missing:?}", kind.name);
    }
}

/// Tries each; returns those for which it went otherwise.
async fn each_has_its_fate(milan: &Consumer<'_>, kinds: &[Kind]) -> Vec<String> {
    let mut wrong = Vec::new();
    let mut made = Vec::new();
    for kind in kinds {
        for (field, value, fate) in kind.fields.iter().filter(|(.., fate)| *fate != Inside) {
            let path = format!("{}/{field}", kind.path);
            let name = format!("{}-{field}", kind.name).to_lowercase();
            let said = milan.try_shadow(SPACE, &name, &at(&path, value.clone())).await;
            let refused = said.as_ref().is_err_and(|said| said.contains("liqo-shadowpods"));
            match fate {
                Refused if refused => {}
                Refused => wrong.push(format!("{path} was not refused: {said:?}")),
                _ if said.is_ok() => made.push((path, name, value, *fate)),
                _ => wrong.push(format!("{path} was refused: {said:?}")),
            }
        }
    }
    for (path, name, value, fate) in made.into_iter().filter(|(.., fate)| *fate != Harmless) {
        if fate == Told {
            let message = wait_told(milan, &name).await;
            println!("{path}: {message}");
            assert!(milan.api::<Pod>(SPACE).get_opt(&name).await.unwrap().is_none(), "{path}");
            continue;
        }
        let pod = milan.wait_pod(SPACE, &name, |_| true).await;
        let spec = serde_json::to_value(pod.spec.unwrap()).unwrap();
        let found = spec.pointer(&path).unwrap_or(&Value::Null);
        let fine = match fate {
            Passed => says(found, value),
            Unheard => !says(found, value),
            _ => true,
        };
        if !fine {
            wrong.push(format!("{path}, which should be {fate:?}: {found}"));
        }
    }
    wrong
}

/// Waits until it is told why there is no pod; returns the words.
async fn wait_told(milan: &Consumer<'_>, name: &str) -> String {
    eventually(&format!("{name} is refused"), || async {
        let shadow = milan.api::<liqo_api::ShadowPod>(SPACE).get(name).await.map_err(|it| it.to_string())?;
        let conditions = shadow.status.map(|status| status.conditions).unwrap_or_default();
        match conditions.into_iter().find(|it| it.type_ == "Created" && it.status == "False") {
            Some(it) => Ok(format!("{}: {}", it.reason, it.message)),
            None => Err("not yet".to_owned()),
        }
    })
    .await
}

/// Whether all that was said is there; defaults may come on top.
fn says(found: &Value, said: &Value) -> bool {
    match (found, said) {
        (Value::Object(found), Value::Object(said)) => {
            said.iter().all(|(key, value)| found.get(key).is_some_and(|found| says(found, value)))
        }
        (Value::Array(found), Value::Array(said)) => {
            said.iter().all(|value| found.iter().any(|found| says(found, value)))
        }
        _ => found == said,
    }
}
