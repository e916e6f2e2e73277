//! What lies in the clusters that are measured.

use anyhow::{Context, Result, bail};
use k8s_openapi::api::certificates::v1::CertificateSigningRequest;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{
    ApiResource, DeleteParams, DynamicObject, GroupVersionKind, ListParams, Patch, PatchParams, PostParams,
};
use kube::{Api, Client, ResourceExt};
use liqo_api::contract::ContractPhase;
use liqo_api::{Contract, ForeignCluster};
use liqo_chart::{Chart, Release};
use serde_json::{Value, json};
use tokio::time::Instant;

use super::manager::until;

/// The namespace that liqo is in.
pub(super) const NAMESPACE: &str = "liqo";
const FIELD_MANAGER: &str = "bench";

/// Puts the kinds, the namespace and what says what peers may write into a cluster in which the manager is a process.
pub(super) async fn prepare(client: &Client, api_server: &str) -> Result<()> {
    let params = PatchParams::apply(FIELD_MANAGER).force();
    let definitions: Api<CustomResourceDefinition> = Api::all(client.clone());
    let kinds = liqo_api::crds();
    for kind in &kinds {
        definitions.patch(&kind.name_any(), &params, &Patch::Apply(kind)).await?;
    }
    let namespace: Namespace = serde_json::from_value(json!({ "metadata": { "name": NAMESPACE } }))?;
    let namespaces: Api<Namespace> = Api::all(client.clone());
    namespaces.patch(NAMESPACE, &params, &Patch::Apply(with_type(&namespace, "v1", "Namespace")?)).await?;
    let network: ConfigMap = serde_json::from_value(json!({
        "metadata": { "name": "liqo-network" }, "data": { "apiServerAddress": api_server }
    }))?;
    let maps: Api<ConfigMap> = Api::namespaced(client.clone(), NAMESPACE);
    maps.patch("liqo-network", &params, &Patch::Apply(with_type(&network, "v1", "ConfigMap")?)).await?;
    for object in admission()? {
        put(client, &object).await?;
    }
    for kind in &kinds {
        until(&format!("{} is not established", kind.name_any()), async || {
            let found = definitions.get(&kind.name_any()).await?;
            let conditions = found.status.and_then(|status| status.conditions).unwrap_or_default();
            let established = conditions.iter().any(|it| it.type_ == "Established" && it.status == "True");
            if established { Ok(()) } else { bail!("not yet") }
        })
        .await?;
    }
    Ok(())
}

fn with_type(object: &impl serde::Serialize, version: &str, kind: &str) -> Result<Value> {
    let mut value = serde_json::to_value(object)?;
    value["apiVersion"] = json!(version);
    value["kind"] = json!(kind);
    Ok(value)
}

/// The part of the chart that every write of a peer goes through.
fn admission() -> Result<Vec<Value>> {
    let release = Release {
        name: "liqo".to_owned(),
        namespace: NAMESPACE.to_owned(),
        service: "liqoctl".to_owned(),
        is_upgrade: false,
        revision: 1,
        kubernetes_version: String::new(),
        api_versions: Vec::new(),
    };
    let objects = Chart::embedded().render(&release, &json!({}))?;
    let wanted = ["ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"];
    Ok(objects.into_iter().filter(|object| wanted.iter().any(|kind| object["kind"] == *kind)).collect())
}

async fn put(client: &Client, object: &Value) -> Result<()> {
    let text = |field: &str| object[field].as_str().unwrap_or_default().to_owned();
    let version = text("apiVersion");
    let (group, version) = version.split_once('/').unwrap_or(("", &version));
    let kind = GroupVersionKind { group: group.to_owned(), version: version.to_owned(), kind: text("kind") };
    let name = object["metadata"]["name"].as_str().context("an object without a name")?;
    let api: Api<DynamicObject> = Api::all_with(client.clone(), &ApiResource::from_gvk(&kind));
    api.patch(name, &PatchParams::apply(FIELD_MANAGER).force(), &Patch::Apply(object)).await?;
    Ok(())
}

/// How many contracts are in force in a cluster.
pub(super) async fn in_force(client: &Client) -> Result<usize> {
    let contracts: Api<Contract> = Api::all(client.clone());
    let all = contracts.list(&ListParams::default()).await?;
    let phase = |contract: &Contract| contract.status.as_ref().map(|status| status.phase);
    Ok(all.iter().filter(|contract| phase(contract) == Some(ContractPhase::Active)).count())
}

/// The clusters that are known in a cluster.
pub(super) async fn known(client: &Client) -> Result<Vec<ForeignCluster>> {
    let clusters: Api<ForeignCluster> = Api::all(client.clone());
    Ok(clusters.list(&ListParams::default()).await?.items)
}

/// Whether nothing of a peering is left.
pub(super) async fn is_empty(client: &Client) -> Result<()> {
    let contracts: Api<Contract> = Api::all(client.clone());
    let (clusters, contracts) =
        (known(client).await?.len(), contracts.list(&ListParams::default()).await?.items.len());
    let namespaces: Api<Namespace> = Api::all(client.clone());
    let all = namespaces.list(&ListParams::default()).await?;
    let tenants = all.iter().filter(|namespace| namespace.name_any().starts_with("liqo-tenant-")).count();
    if (clusters, contracts, tenants) == (0, 0, 0) {
        return Ok(());
    }
    bail!("{clusters} ForeignClusters, {contracts} Contracts and {tenants} tenant namespaces are left")
}

/// Seconds until Kubernetes has signed a certificate that is approved at once: the part of peering that is not ours.
pub(super) async fn sign_certificate(client: &Client, name: &str) -> Result<f64> {
    let api: Api<CertificateSigningRequest> = Api::all(client.clone());
    let key = rcgen::KeyPair::generate()?;
    let mut params = rcgen::CertificateParams::default();
    params.distinguished_name.push(rcgen::DnType::CommonName, name);
    params.distinguished_name.push(rcgen::DnType::OrganizationName, "liqo.io");
    let pem = params.serialize_request(&key)?.pem()?;
    let request: CertificateSigningRequest = serde_json::from_value(json!({
        "metadata": { "name": name },
        "spec": {
            "request": k8s_openapi::ByteString(pem.into_bytes()),
            "signerName": "kubernetes.io/kube-apiserver-client",
            "usages": ["client auth", "digital signature"],
        },
    }))?;
    let started = Instant::now();
    let mut made = api.create(&PostParams::default(), &request).await?;
    made.status = Some(serde_json::from_value(json!({ "conditions": [
        { "type": "Approved", "status": "True", "reason": "Bench", "message": "" }
    ] }))?);
    api.patch_approval(name, &PatchParams::default(), &Patch::Merge(json!({ "status": made.status })))
        .await?;
    until("no certificate is signed", async || {
        let found = api.get(name).await?;
        found.status.and_then(|status| status.certificate).map(|_| ()).context("not signed yet")
    })
    .await?;
    let took = started.elapsed().as_secs_f64();
    api.delete(name, &DeleteParams::default()).await?;
    Ok(took)
}
