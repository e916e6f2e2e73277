//! Turns steps into writes.

use std::collections::BTreeMap;

use jiff::Timestamp;
use liqo_api::foreign_cluster::PeeringEnabled;
use liqo_api::names::Identity;
use liqo_api::{DiscoveryType, ForeignCluster, ForeignClusterSpec, annotations, labels};
use liqo_kit::Key;
use liqo_kit::write::{Target, Write};
use serde_json::{Value, json};

use super::index::Peer;
use super::plan::{Found, Step};
use crate::advert::Source;

/// The write that a step needs; asking somebody needs none.
pub(crate) fn write(step: &Step, now: Timestamp) -> Result<Option<Write>, serde_json::Error> {
    let target = Target::of::<ForeignCluster>(Key::cluster(step.name()));
    Ok(Some(match step {
        Step::Create { name, identity, found } => {
            Write::create(target, &foreign_cluster(name, identity.clone(), found))?
        }
        Step::Refresh { peer, found } => Write::merge(target, &peer.resource_version, &patch(found))?,
        Step::Mark { peer } => Write::merge(target, &peer.resource_version, &mark(peer, now))?,
        Step::Delete { peer } => Write::delete(target, &peer.uid),
        Step::Ask { .. } => return Ok(None),
    }))
}

pub(super) fn mark(peer: &Peer, now: Timestamp) -> Value {
    let heard = Timestamp::from_second(peer.heard_by(now)).unwrap_or(now);
    json!({ "metadata": { "annotations": { annotations::UNADVERTISED_SINCE: heard.to_string() } } })
}

fn labels_of(found: &Found) -> BTreeMap<&'static str, Option<String>> {
    let (kind, domain) = match &found.source {
        Source::Lan => (DiscoveryType::Lan, None),
        Source::Wan(domain) => (DiscoveryType::Wan, Some(domain.to_string())),
    };
    BTreeMap::from([
        (labels::CLUSTER_ID, Some(found.id.clone())),
        (labels::DISCOVERY_TYPE, Some(kind.as_label().to_owned())),
        (labels::SEARCH_DOMAIN, domain),
    ])
}

pub(super) fn foreign_cluster(name: &str, identity: Identity, found: &Found) -> ForeignCluster {
    let spec = ForeignClusterSpec {
        cluster_identity: Some(identity.into()),
        outgoing_peering_enabled: PeeringEnabled::Auto,
        auth_fingerprint: found.fingerprint.clone(),
        ttl: Some(found.ttl),
        ..ForeignClusterSpec::new(&found.url)
    };
    let mut object = ForeignCluster::new(name, spec);
    let labels = labels_of(found).into_iter();
    object.metadata.labels = Some(labels.filter_map(|(key, value)| Some((key.to_owned(), value?))).collect());
    object.metadata.annotations =
        Some([(annotations::LAST_UPDATE.to_owned(), found.heard.to_string())].into());
    object
}

/// Only what finding clusters knows about: what people set stays.
pub(super) fn patch(found: &Found) -> Value {
    json!({
        "metadata": {
            "labels": labels_of(found),
            "annotations": {
                annotations::LAST_UPDATE: found.heard.to_string(),
                annotations::UNADVERTISED_SINCE: null,
            },
        },
        "spec": {
            "foreignAuthUrl": found.url,
            "authFingerprint": found.fingerprint,
            "ttl": found.ttl,
        },
    })
}
