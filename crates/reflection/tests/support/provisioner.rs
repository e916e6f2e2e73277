//! Directories on nodes as volumes: the least that a cluster needs to have a storage class of its own.

use std::time::Duration;

use k8s_openapi::api::core::v1::{PersistentVolume, PersistentVolumeClaim};
use kube::api::{DeleteParams, ListParams, PostParams};
use kube::{Api, ResourceExt};
use serde_json::json;
use tokio::task::JoinSet;

use crate::install::put;

const PROVISIONER: &str = "test.example.com/directories";
/// How often it looks.
const PERIOD: Duration = Duration::from_millis(100);

/// Provides volumes of the class `name` until it is dropped.
pub(crate) struct Provisioner {
    _task: JoinSet<()>,
}

impl Provisioner {
    pub(crate) async fn start(client: &kube::Client, name: &'static str) -> Self {
        let class = json!({ "apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": { "name": name,
            "annotations": { "storageclass.kubernetes.io/is-default-class": "true" } },
            "provisioner": PROVISIONER, "volumeBindingMode": "WaitForFirstConsumer" });
        put(client, &class).await;
        let client = client.clone();
        let mut task = JoinSet::new();
        task.spawn(async move {
            loop {
                // An API server that does not answer is asked again.
                let _ = look(&client, name).await;
                tokio::time::sleep(PERIOD).await;
            }
        });
        Self { _task: task }
    }
}

async fn look(client: &kube::Client, class: &str) -> kube::Result<()> {
    let claims: Api<PersistentVolumeClaim> = Api::all(client.clone());
    let volumes: Api<PersistentVolume> = Api::all(client.clone());
    for claim in claims.list(&ListParams::default()).await? {
        let node = claim.annotations().get("volume.kubernetes.io/selected-node");
        let spec = claim.spec.as_ref().unwrap();
        let (Some(node), None, Some(wanted)) = (node, &spec.volume_name, &spec.storage_class_name) else {
            continue;
        };
        if wanted != class {
            continue;
        }
        let uid = claim.uid().unwrap();
        let volume = json!({
            "metadata": { "name": format!("directory-{uid}"),
                          "annotations": { "pv.kubernetes.io/provisioned-by": PROVISIONER } },
            "spec": {
                "capacity": spec.resources.as_ref().unwrap().requests, "accessModes": spec.access_modes,
                "storageClassName": class, "persistentVolumeReclaimPolicy": "Delete",
                "hostPath": { "path": format!("/var/lib/kubelet/test-{uid}"), "type": "DirectoryOrCreate" },
                "claimRef": { "apiVersion": "v1", "kind": "PersistentVolumeClaim", "uid": uid,
                              "name": claim.name_any(), "namespace": claim.namespace() },
                "nodeAffinity": { "required": { "nodeSelectorTerms": [{ "matchExpressions": [
                    { "key": "kubernetes.io/hostname", "operator": "In", "values": [node] }] }] } },
            },
        });
        let volume = serde_json::from_value(volume).unwrap();
        match volumes.create(&PostParams::default(), &volume).await {
            Err(kube::Error::Api(status)) if status.reason == "AlreadyExists" => {}
            made => drop(made?),
        }
    }
    for volume in volumes.list(&ListParams::default()).await? {
        let ours =
            volume.annotations().get("pv.kubernetes.io/provisioned-by").is_some_and(|it| it == PROVISIONER);
        let phase = volume.status.as_ref().and_then(|status| status.phase.as_deref());
        if ours && phase == Some("Released") {
            volumes.delete(&volume.name_any(), &DeleteParams::default()).await?;
        }
    }
    Ok(())
}
