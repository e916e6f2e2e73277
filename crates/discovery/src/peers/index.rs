//! What is known of the ForeignClusters.

use std::collections::BTreeMap;

use jiff::Timestamp;
use kube::ResourceExt;
use liqo_api::foreign_cluster::{PeeringConditionStatus, PeeringConditionType};
use liqo_api::{DiscoveryType, ForeignCluster, annotations, labels};
use liqo_kit::{Index, Key};

/// By how many seconds the clocks of a cluster's machines may differ.
const CLOCKS_DIFFER: i64 = 300;

/// One ForeignCluster, as much of it as finding clusters needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Peer {
    pub(crate) name: String,
    pub(crate) uid: String,
    pub(crate) resource_version: String,
    pub(crate) kind: DiscoveryType,
    /// The SearchDomain through which it was found.
    pub(crate) domain: Option<String>,
    /// The cluster's ID, where it is known.
    pub(crate) id: Option<String>,
    /// Whether the label says the same.
    pub(crate) labelled: bool,
    pub(crate) url: String,
    pub(crate) fingerprint: Option<String>,
    /// Whether it is to be recognised by authorities that somebody named, and hence by no fingerprint.
    pub(crate) vouched: bool,
    pub(crate) ttl: Option<u32>,
    /// When it was last heard of, as the annotation says.
    pub(crate) heard: Option<i64>,
    pub(crate) created: i64,
    /// Whether it is marked as advertised no longer.
    pub(crate) unadvertised: bool,
    /// Whether a peering is there or is being undone.
    pub(crate) engaged: bool,
    /// Whether we have an identity there.
    pub(crate) trusted: bool,
    pub(crate) deleting: bool,
}

impl Peer {
    pub(crate) fn read(object: &ForeignCluster) -> Self {
        let meta = &object.metadata;
        let label = |key: &str| meta.labels.as_ref().and_then(|labels| labels.get(key)).cloned();
        let annotation = |key: &str| meta.annotations.as_ref().and_then(|all| all.get(key));
        let known = object.spec.cluster_identity.as_ref().and_then(|identity| identity.cluster_id.clone());
        let labelled = label(labels::CLUSTER_ID);
        let status = |part| object.peering_status(part);
        let engaged = |part| {
            matches!(
                status(part),
                PeeringConditionStatus::Established | PeeringConditionStatus::Disconnecting
            )
        };
        Self {
            name: object.name_any(),
            uid: meta.uid.clone().unwrap_or_default(),
            resource_version: meta.resource_version.clone().unwrap_or_default(),
            kind: object.discovery_type(),
            domain: label(labels::SEARCH_DOMAIN),
            labelled: labelled.is_some() && (known.is_none() || known == labelled),
            id: known.or(labelled),
            url: object.spec.foreign_auth_url.clone(),
            fingerprint: object.spec.auth_fingerprint.clone(),
            vouched: object.spec.auth_ca_bundle.is_some() && object.spec.auth_fingerprint.is_none(),
            ttl: object.spec.ttl,
            heard: annotation(annotations::LAST_UPDATE).and_then(|text| text.parse().ok()),
            created: meta.creation_timestamp.as_ref().map_or(0, |time| time.0.as_second()),
            unadvertised: annotation(annotations::UNADVERTISED_SINCE).is_some(),
            engaged: engaged(PeeringConditionType::OutgoingPeering)
                || engaged(PeeringConditionType::IncomingPeering),
            trusted: status(PeeringConditionType::AuthenticationStatus)
                == PeeringConditionStatus::Established,
            deleting: meta.deletion_timestamp.is_some(),
        }
    }

    /// Whether it came to be by being found.
    pub(crate) fn is_found(&self) -> bool {
        matches!(self.kind, DiscoveryType::Lan | DiscoveryType::Wan)
    }

    /// When it was last heard of. Clocks of machines differ a little; a time that is far ahead is none, or the object would
    /// live for too long.
    pub(crate) fn heard_by(&self, now: Timestamp) -> i64 {
        let now = now.as_second();
        let heard = self.heard.filter(|heard| *heard <= now.saturating_add(CLOCKS_DIFFER));
        heard.unwrap_or(self.created).min(now)
    }
}

/// The ForeignClusters by name.
#[derive(Debug, Default)]
pub(crate) struct Peers {
    peers: BTreeMap<String, Peer>,
    synced: bool,
}

impl Peers {
    pub(crate) fn is_synced(&self) -> bool {
        self.synced
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Peer> {
        self.peers.values()
    }

    pub(crate) fn get(&self, name: &str) -> Option<&Peer> {
        self.peers.get(name)
    }

    /// The objects that stand for clusters: of each ID the oldest, and those whose ID is not known yet, by their URL.
    pub(crate) fn holders(&self) -> Holders<'_> {
        let mut holders = Holders::default();
        for peer in self.peers.values() {
            let (map, key) = match &peer.id {
                Some(id) => (&mut holders.by_id, id.as_str()),
                None => (&mut holders.by_url, super::plan::normal(&peer.url)),
            };
            let oldest = map.entry(key).or_insert(peer);
            if (peer.created, &peer.name) < (oldest.created, &oldest.name) {
                *oldest = peer;
            }
        }
        holders
    }
}

/// Which object stands for which cluster.
#[derive(Debug, Default)]
pub(crate) struct Holders<'a> {
    by_id: BTreeMap<&'a str, &'a Peer>,
    by_url: BTreeMap<&'a str, &'a Peer>,
}

impl<'a> Holders<'a> {
    /// The object of the cluster with this ID, which may be known by one of these URLs only.
    pub(crate) fn of<'u>(&self, id: &str, mut urls: impl Iterator<Item = &'u str>) -> Option<&'a Peer> {
        self.by_id.get(id).copied().or_else(|| urls.find_map(|url| self.by_url.get(url).copied()))
    }
}

impl Index<Peer> for Peers {
    fn apply(&mut self, key: &Key, object: Peer) {
        self.peers.insert(key.name().to_owned(), object);
    }

    fn delete(&mut self, key: &Key) {
        self.peers.remove(key.name());
    }

    fn synced(&mut self) {
        self.synced = true;
    }
}
