//! Objects of a peering, for tests.

use kube::Resource;
use liqo_api::{Contract, ForeignCluster, ResourceOffer};
use serde_json::{Value, json};

use super::Papers;

/// A ForeignCluster that is called `name` here and has this ID.
pub(crate) fn cluster(name: &str, id: &str) -> ForeignCluster {
    of_spec(
        name,
        &json!({
            "clusterIdentity": {"clusterID": id, "clusterName": name},
            "foreignAuthUrl": "https://203.0.113.7:31520",
            "outgoingPeeringEnabled": "Yes",
        }),
    )
}

/// A ForeignCluster with this spec.
pub(crate) fn of_spec(name: &str, spec: &Value) -> ForeignCluster {
    let object = json!({
        "apiVersion": "discovery.liqo.io/v1alpha1", "kind": "ForeignCluster", "metadata": {"name": name}, "spec": spec,
    });
    serde_json::from_value(object).unwrap()
}

/// The same with these conditions: type, status, message.
pub(crate) fn telling(mut cluster: ForeignCluster, conditions: &[(&str, &str, &str)]) -> ForeignCluster {
    let conditions: Vec<Value> = conditions
        .iter()
        .map(|(part, status, message)| {
            let reason = if message.is_empty() { "" } else { "Told" };
            json!({
                "type": part, "status": status, "reason": reason, "message": message,
                "lastTransitionTime": "2026-03-01T12:00:00Z",
            })
        })
        .collect();
    let status = json!({ "tenantNamespace": {"local": "liqo-tenant-x"}, "peeringConditions": conditions });
    cluster.status = Some(serde_json::from_value(status).unwrap());
    cluster
}

/// What a cluster offers.
pub(crate) fn offer(provider: &str, phase: &str, message: &str) -> ResourceOffer {
    let object = json!({
        "apiVersion": "sharing.liqo.io/v1alpha1", "kind": "ResourceOffer",
        "metadata": {"name": provider, "namespace": "liqo-tenant-x"},
        "spec": {"clusterId": provider, "resourceQuota": {"hard": {"pods": "40", "memory": "6Gi", "cpu": "3500m"}}},
        "status": {"phase": phase, "conditions": [{
            "type": "Accepted", "status": "False", "reason": "Told", "message": message,
            "lastTransitionTime": "2026-03-01T12:00:00Z",
        }]},
    });
    serde_json::from_value(object).unwrap()
}

/// A contract between the two.
pub(crate) fn contract(name: &str, provider: &str, consumer: &str, phase: &str) -> Contract {
    let object = json!({
        "apiVersion": "sharing.liqo.io/v1alpha1", "kind": "Contract",
        "metadata": {"name": name, "namespace": "liqo-tenant-x", "creationTimestamp": "2026-03-01T12:00:00Z"},
        "spec": {
            "providerID": provider, "consumerID": consumer, "terms": "{}", "consumerSignature": "ed25519:00",
        },
        "status": {
            "phase": phase, "validUntil": "2026-03-02T12:00:00Z", "resources": {"cpu": "3500m"}, "price": "EUR 1 per hour",
            "sequence": 0,
        },
    });
    serde_json::from_value(object).unwrap()
}

/// Papers with these.
pub(crate) fn papers(offers: Vec<ResourceOffer>, contracts: Vec<Contract>) -> Papers {
    Papers { offers, contracts }
}

/// The same, made then.
pub(crate) fn made_at(mut contract: Contract, time: &str) -> Contract {
    contract.meta_mut().creation_timestamp = Some(serde_json::from_value(json!(time)).unwrap());
    contract
}

/// The certificate of an authority, as a file has it.
pub(crate) fn authority(name: &str) -> String {
    let mut params = rcgen::CertificateParams::default();
    params.distinguished_name = rcgen::DistinguishedName::new();
    params.distinguished_name.push(rcgen::DnType::CommonName, name);
    params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    let key = rcgen::KeyPair::generate().unwrap();
    params.self_signed(&key).unwrap().pem().replace('\r', "")
}
