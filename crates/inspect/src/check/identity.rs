//! The identity: three objects that must say the same.

use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use liqo_api::ClusterIdentity;
use liqo_api::cluster_config::{
    CLUSTER_ID_CONFIG_MAP, CLUSTER_ID_KEY, CLUSTER_NAME_KEY, IDENTITY_SECRET, KEY_FINGERPRINT,
};
use liqo_install::finding::Finding;
use rustls::pki_types::SubjectPublicKeyInfoDer;
use rustls::pki_types::pem::PemObject;
use serde_json::Value;
use sha2::{Digest, Sha256};

use super::{World, docs, not_looked_at};

const NAMED: &str = "the cluster has a name and an ID";
const KEY: &str = "the cluster has the key that proves its identity";
const AGREE: &str = "all objects tell the same identity";
const LOGS_HINT: &str = "The manager makes it at its first start; what keeps it from that: liqoctl logs";

pub(super) fn check(world: &World<'_>) -> Vec<Finding> {
    let facts = world.facts;
    let mut findings = vec![
        match &facts.identity {
            Ok(map) => named(map),
            Err(why) if why.is_absent() => {
                Finding::failed(NAMED, why.to_string()).hint(LOGS_HINT).docs(docs::IDENTITY)
            }
            Err(why) => not_looked_at(NAMED, why),
        },
        match &facts.key {
            Ok(secret) => key(secret),
            Err(why) if why.is_absent() && facts.identity.is_ok() => lost(&facts.namespace_name),
            Err(why) if why.is_absent() => {
                Finding::failed(KEY, why.to_string()).hint(LOGS_HINT).docs(docs::IDENTITY)
            }
            Err(why) => not_looked_at(KEY, why),
        },
    ];
    let known = [
        facts.identity.as_ref().ok().map(Told::by_map),
        facts.key.as_ref().ok().map(Told::by_secret),
        facts.config.as_ref().ok().map(Told::by_config),
    ];
    let known: Vec<Told> = known.into_iter().flatten().collect();
    if known.len() > 1 {
        findings.push(agree(&known));
    }
    findings
}

fn named(map: &ConfigMap) -> Finding {
    let value = |key: &str| map.data.as_ref().and_then(|data| data.get(key)).cloned().unwrap_or_default();
    let identity =
        ClusterIdentity { cluster_id: value(CLUSTER_ID_KEY), cluster_name: value(CLUSTER_NAME_KEY) };
    match identity.parse() {
        Ok(identity) => Finding::ok(NAMED, format!("{}, {}", identity.name, identity.id)),
        Err(error) => Finding::failed(NAMED, format!("ConfigMap {CLUSTER_ID_CONFIG_MAP}: {error}"))
            .hint(format!("Put the right values back: those of Secret {IDENTITY_SECRET}, keys cluster-id and cluster-name"))
            .docs(docs::IDENTITY_DIFFERS),
    }
}

fn lost(namespace: &str) -> Finding {
    Finding::failed(KEY, format!("Secret {IDENTITY_SECRET} is gone, though the cluster has an identity"))
        .hint(format!(
            "Restore the Secret from a backup: kubectl -n {namespace} apply -f BACKUP.yaml\n\
             Without one, give the cluster a new identity, after which all peerings must be made again:\n\
             kubectl -n {namespace} delete configmap {CLUSTER_ID_CONFIG_MAP}"
        ))
        .docs(docs::KEY_LOST)
}

fn key(secret: &Secret) -> Finding {
    let size =
        |key: &str| secret.data.as_ref().and_then(|data| data.get(key)).map_or(0, |value| value.0.len());
    let missing: Vec<&str> = ["private-key", "public-key"].into_iter().filter(|key| size(key) == 0).collect();
    match missing.as_slice() {
        [] => Finding::ok(KEY, ""),
        missing => {
            Finding::failed(KEY, format!("Secret {IDENTITY_SECRET} has no {}", missing.join(" and no ")))
                .hint("Restore the Secret from a backup")
                .docs(docs::KEY_LOST)
        }
    }
}

/// What one object tells of the identity.
struct Told {
    by: &'static str,
    id: Option<String>,
    name: Option<String>,
    fingerprint: Option<String>,
}

impl Told {
    fn by_map(map: &ConfigMap) -> Self {
        let value = |key: &str| map.data.as_ref().and_then(|data| data.get(key)).cloned();
        let noted = map.metadata.annotations.as_ref().and_then(|notes| notes.get(KEY_FINGERPRINT));
        Self {
            by: "the ConfigMap",
            id: value(CLUSTER_ID_KEY),
            name: value(CLUSTER_NAME_KEY),
            fingerprint: noted.cloned(),
        }
    }

    fn by_secret(secret: &Secret) -> Self {
        let value = |key: &str| {
            let ByteString(bytes) = secret.data.as_ref()?.get(key)?;
            String::from_utf8(bytes.clone()).ok()
        };
        let fingerprint = value("public-key").and_then(|pem| fingerprint(&pem));
        Self { by: "the Secret", id: value("cluster-id"), name: value("cluster-name"), fingerprint }
    }

    fn by_config(config: &Value) -> Self {
        let status = &config["status"];
        let text = |value: &Value| value.as_str().map(str::to_owned);
        Self {
            by: "the ClusterConfig",
            id: text(&status["clusterIdentity"]["clusterID"]),
            name: text(&status["clusterIdentity"]["clusterName"]),
            fingerprint: text(&status["fingerprint"]),
        }
    }
}

/// The SHA-256 of a public key, as the ClusterConfig shows it.
fn fingerprint(pem: &str) -> Option<String> {
    let key = SubjectPublicKeyInfoDer::from_pem_slice(pem.as_bytes()).ok()?;
    Some(Sha256::digest(&key).iter().map(|byte| format!("{byte:02x}")).collect())
}

fn agree(told: &[Told]) -> Finding {
    let differ = |what: &str, values: Vec<(&str, Option<&String>)>| {
        let known: Vec<(&str, &String)> =
            values.into_iter().filter_map(|(by, value)| Some((by, value?))).collect();
        let same = known.windows(2).all(|pair| pair[0].1 == pair[1].1);
        let shown =
            known.iter().map(|(by, value)| format!("{by} says {value}")).collect::<Vec<_>>().join(", ");
        (!same).then(|| format!("{what}: {shown}"))
    };
    let differences: Vec<String> = [
        differ("ID", told.iter().map(|it| (it.by, it.id.as_ref())).collect()),
        differ("name", told.iter().map(|it| (it.by, it.name.as_ref())).collect()),
        differ("fingerprint", told.iter().map(|it| (it.by, it.fingerprint.as_ref())).collect()),
    ]
    .into_iter()
    .flatten()
    .collect();
    match differences.as_slice() {
        [] => Finding::ok(AGREE, ""),
        differences => Finding::failed(AGREE, differences.join("; "))
            .hint("If the Secret is right, delete the ConfigMap: the manager makes it again from the Secret. If the ConfigMap is right,\n\
             restore the Secret from a backup")
            .docs(docs::IDENTITY_DIFFERS),
    }
}
