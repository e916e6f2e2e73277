//! Making another cluster known, without confusing it with one that is.

use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use kube::api::{Patch, PatchParams, PostParams};
use kube::{Api, ResourceExt};
use liqo_api::foreign_cluster::{ForeignIdentity, PeeringEnabled};
use liqo_api::names::{ClusterId, ClusterName, Identity};
use liqo_api::{DiscoveryType, ForeignCluster, ForeignClusterSpec, labels};
use liqo_authentication::client::CaBundle;
use liqo_install::names::FIELD_MANAGER;
use serde_json::{Map, Value, json};
use tokio::time::{Instant, sleep};

use super::key::{self, Shown};
use super::verify::Recognition;
use super::{id_of, known, name_of};
use crate::access::Connection;
use crate::progress::Progress;

/// How often a ForeignCluster that is going away is looked at.
const INTERVAL: Duration = Duration::from_millis(250);

/// A cluster that is to be known.
#[derive(Debug, Clone)]
pub(crate) struct Wanted {
    /// What the ForeignCluster is to be called; the cluster's own name, if nobody says.
    pub(crate) name: Option<String>,
    pub(crate) id: ClusterId,
    /// Not known if nobody could be asked.
    pub(crate) cluster_name: Option<ClusterName>,
    pub(crate) url: String,
    pub(crate) recognition: Recognition,
    pub(crate) key: Shown,
    /// Whether to borrow from it; if not, what is borrowed ends.
    pub(crate) borrow: bool,
    /// Whether to offer it resources unasked; if not, what was said of that stays.
    pub(crate) lend: bool,
}

/// What has to be done for it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Plan {
    Create(Box<ForeignCluster>),
    Change {
        name: String,
        patch: Value,
    },
    Nothing {
        name: String,
    },
    /// It is known and on its way out: it comes back when that is over.
    Wait {
        name: String,
    },
}

/// Why it cannot be made known.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Refused {
    #[error(
        "{name:?} is another cluster here, with the ID {id}. Nothing was changed. Choose another name: liqoctl add \
         cluster {suggestion} …"
    )]
    NameTaken { name: String, id: String, suggestion: String },
    #[error(
        "{0:?} cannot be the name of a ForeignCluster: it consists of lower-case letters, digits, '-' and '.'"
    )]
    Name(String),
    #[error(
        "it is not known how the cluster is called, as it was not asked: give it a name, liqoctl add cluster NAME …"
    )]
    NoName,
}

/// What has to be done.
pub(crate) fn plan(all: &[ForeignCluster], wanted: &Wanted) -> Result<Plan, Refused> {
    if let Some(existing) = all.iter().find(|cluster| id_of(cluster) == Some(wanted.id.as_str())) {
        return Ok(change(existing, wanted));
    }
    let name = choose_name(all, wanted)?;
    // One that somebody made by hand, without knowing the ID: it is this one.
    if let Some(existing) = all.iter().find(|cluster| cluster.name_any() == name) {
        return Ok(change(existing, wanted));
    }
    Ok(Plan::Create(Box::new(object(&name, wanted))))
}

fn choose_name(all: &[ForeignCluster], wanted: &Wanted) -> Result<String, Refused> {
    let taken = |name: &str| all.iter().find(|cluster| cluster.name_any() == name);
    let unique =
        wanted.cluster_name.clone().map(|name| Identity { id: wanted.id.clone(), name }.unique_name());
    let Some(name) = &wanted.name else {
        let own = wanted.cluster_name.as_ref().ok_or(Refused::NoName)?.to_string();
        return Ok(if taken(&own).is_none() { own } else { unique.unwrap_or(own) });
    };
    if !is_object_name(name) {
        return Err(Refused::Name(name.clone()));
    }
    match taken(name) {
        Some(other) if id_of(other).is_some() => Err(Refused::NameTaken {
            name: name.clone(),
            id: id_of(other).unwrap_or_default().to_owned(),
            suggestion: unique.unwrap_or_else(|| format!("{name}-2")),
        }),
        _ => Ok(name.clone()),
    }
}

/// As Kubernetes has it for most names.
fn is_object_name(name: &str) -> bool {
    let part = |part: &str| {
        let bytes = part.as_bytes();
        let fine = |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
        bytes.first().is_some_and(fine)
            && bytes.last().is_some_and(fine)
            && bytes.iter().all(|byte| fine(byte) || *byte == b'-')
    };
    name.len() <= 253 && name.split('.').all(part)
}

fn object(name: &str, wanted: &Wanted) -> ForeignCluster {
    let recognition = &wanted.recognition;
    let spec = ForeignClusterSpec {
        cluster_identity: Some(ForeignIdentity {
            cluster_id: Some(wanted.id.to_string()),
            cluster_name: wanted.cluster_name.as_ref().map(ToString::to_string),
        }),
        outgoing_peering_enabled: if wanted.borrow { PeeringEnabled::Yes } else { PeeringEnabled::No },
        incoming_peering_enabled: if wanted.lend { PeeringEnabled::Yes } else { PeeringEnabled::Auto },
        auth_fingerprint: recognition.fingerprint.map(|fingerprint| fingerprint.to_string()),
        auth_ca_bundle: recognition.authorities.as_ref().map(CaBundle::to_pem),
        insecure_skip_tls_verify: recognition.insecure,
        ..ForeignClusterSpec::new(&wanted.url)
    };
    let mut cluster = ForeignCluster::new(name, spec);
    cluster.metadata.labels = Some(
        [
            (labels::DISCOVERY_TYPE.to_owned(), DiscoveryType::Manual.as_label().to_owned()),
            (labels::CLUSTER_ID.to_owned(), wanted.id.to_string()),
        ]
        .into(),
    );
    cluster
}

/// Only what differs: what people set besides stays, and doing it twice writes once.
fn change(existing: &ForeignCluster, wanted: &Wanted) -> Plan {
    let name = existing.name_any();
    if existing.metadata.deletion_timestamp.is_some() {
        return Plan::Wait { name };
    }
    let target = object(&name, wanted);
    let (have, want) = (&existing.spec, &target.spec);
    let mut spec = Map::new();
    let mut set = |field: &str, differs: bool, value: Value| {
        if differs {
            spec.insert(field.to_owned(), value);
        }
    };
    set("foreignAuthUrl", have.foreign_auth_url != want.foreign_auth_url, json!(want.foreign_auth_url));
    set("authFingerprint", have.auth_fingerprint != want.auth_fingerprint, json!(want.auth_fingerprint));
    set("authCaBundle", have.auth_ca_bundle != want.auth_ca_bundle, json!(want.auth_ca_bundle));
    let insecure = have.insecure_skip_tls_verify != want.insecure_skip_tls_verify;
    set("insecureSkipTLSVerify", insecure, json!(want.insecure_skip_tls_verify));
    let outgoing = want.outgoing_peering_enabled;
    set("outgoingPeeringEnabled", have.outgoing_peering_enabled != outgoing, json!(outgoing));
    let lend = wanted.lend && have.incoming_peering_enabled != PeeringEnabled::Yes;
    set("incomingPeeringEnabled", lend, json!(PeeringEnabled::Yes));
    // Somebody wants it now: it is not forgotten when nobody advertises it any more.
    set("ttl", have.ttl.is_some(), Value::Null);
    let lacks_name = name_of(existing).is_none() && wanted.cluster_name.is_some();
    let lacks_id = have.cluster_identity.as_ref().is_none_or(|identity| identity.cluster_id.is_none());
    set("clusterIdentity", lacks_name || lacks_id, json!(want.cluster_identity));

    let mut labels = Map::new();
    for (key, value) in target.labels() {
        if existing.labels().get(key) != Some(value) {
            labels.insert(key.clone(), json!(value));
        }
    }
    let mut patch = Map::new();
    if !labels.is_empty() {
        patch.insert("metadata".to_owned(), json!({ "labels": labels }));
    }
    if !spec.is_empty() {
        patch.insert("spec".to_owned(), Value::Object(spec));
    }
    if patch.is_empty() { Plan::Nothing { name } } else { Plan::Change { name, patch: Value::Object(patch) } }
}

/// Fails if it cannot be made known; writes nothing.
pub(crate) async fn check(connection: &Connection, wanted: &Wanted) -> Result<()> {
    match plan(&known::list(connection).await?, wanted)? {
        // The key of one that is being forgotten binds nobody.
        Plan::Wait { .. } => Ok(()),
        _ => key::check(connection, &wanted.id, &wanted.key).await,
    }
}

/// Makes it known, and returns the ForeignCluster's name and whether something had to be written.
pub(crate) async fn declare(
    connection: &Connection,
    wanted: &Wanted,
    deadline: Instant,
    progress: &mut Progress,
) -> Result<(String, bool)> {
    let api: Api<ForeignCluster> = Api::all(connection.client.clone());
    let post = PostParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PostParams::default() };
    let patching = PatchParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PatchParams::default() };
    loop {
        let done = match plan(&known::list(connection).await?, wanted)? {
            Plan::Nothing { name } => Ok((name, false)),
            Plan::Create(cluster) => api.create(&post, &cluster).await.map(|made| (made.name_any(), true)),
            Plan::Change { name, patch } => {
                api.patch(&name, &patching, &Patch::Merge(&patch)).await.map(|_| (name, true))
            }
            Plan::Wait { name } => {
                if Instant::now() >= deadline {
                    bail!(
                        "{name} is still being removed. See liqoctl status peer {name}; liqoctl remove cluster {name} \
                         --force does not wait for the other cluster"
                    );
                }
                progress.busy(&format!("{name} is being removed; it is added again when that is over"));
                sleep(INTERVAL).await;
                continue;
            }
        };
        match done {
            // Somebody else was quicker: look again.
            Err(kube::Error::Api(status))
                if (status.code == 409 || status.code == 404) && Instant::now() < deadline =>
            {
                sleep(INTERVAL).await;
            }
            Err(error) => {
                return Err(connection.target.explain(&error)).context("cannot write the ForeignCluster");
            }
            Ok(done) => return Ok(done),
        }
    }
}

#[cfg(test)]
mod tests;
