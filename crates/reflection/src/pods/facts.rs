//! What is kept of pods and ShadowPods: little, as there are many.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Node, Pod, PodStatus};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, OwnerReference, Time};
use liqo_api::namespace_map::MappingPhase;
use liqo_api::shadow_pod::{CREATED, PodPhase, UP_TO_DATE};
use liqo_api::{NamespaceMap, annotations, labels};
use liqo_kit::watch::{Identity, Pairs, Wire};
use serde::Deserialize;

use super::outgoing::Draft;
use super::status::{READY, RUNNING, cut_off_from, fingerprint, kubelets_part, place};
use super::volumes::{self, Tokens};
use crate::fence::{self, Guard};
use crate::route::digest_of;

/// Why a provider does not change a pod that would take more than the contract allows.
const TOO_LARGE: &str = "QuotaExceeded";

/// A pod at home that is bound to a node.
#[derive(Clone, Debug)]
pub(crate) struct Home {
    pub(crate) uid: Box<str>,
    pub(crate) node: Arc<str>,
    pub(crate) deleting: bool,
    /// Whether it has ended: nothing is told about it any more.
    pub(crate) finished: bool,
    pub(crate) pending: bool,
    pub(crate) ready: bool,
    /// The digest of what is sent.
    pub(crate) source: Box<str>,
    /// What is sent, as long as it is not there: JSON, which is smaller than the types.
    pub(crate) draft: Option<Box<[u8]>>,
    /// When it was first seen, bound.
    pub(crate) since: Timestamp,
    /// What home says now.
    pub(crate) shown: u64,
    /// A readiness gate that is not open.
    pub(crate) closed_gate: Option<Box<str>>,
    /// Whether its owner does not want to hear what is said about it elsewhere.
    pub(crate) quiet: bool,
    /// The tokens it reads.
    pub(crate) tokens: Option<Box<Tokens>>,
    /// How it is kept from running twice.
    pub(crate) guard: Guard,
    /// How long it waits for what it runs on to answer again; for ever if nothing is said.
    pub(crate) patience: Option<Duration>,
    /// The node at the provider of which it says that it does not answer, whoever found that out.
    pub(crate) cut_off: Option<Box<str>>,
}

impl Home {
    /// Reads a pod that is seen `now`; `None` as long as it is bound to no node.
    pub(crate) fn read(pod: Pod, now: Timestamp) -> Option<Self> {
        let spec = pod.spec?;
        let node = spec.node_name.as_deref().filter(|node| !node.is_empty())?;
        let (node, tokens) = (Arc::from(node), volumes::tokens(&spec));
        let status = pod.status.unwrap_or_default();
        let is_true = |type_: &str| {
            status.conditions.iter().flatten().any(|it| it.type_ == type_ && it.status == "True")
        };
        let mut gates = spec.readiness_gates.iter().flatten().map(|gate| gate.condition_type.as_str());
        let closed_gate = gates.find(|gate| !is_true(gate)).map(Box::from);
        let ready = is_true(READY);
        let cut_off = cut_off_from(&status).map(Box::from);
        let phase = status.phase.as_deref().unwrap_or_default();
        let (finished, pending) = (["Succeeded", "Failed"].contains(&phase), phase == super::status::PENDING);
        let (guard, patience) = (Guard::of(&pod.metadata, &spec), fence::patience(&spec));
        let notes = pod.metadata.annotations.as_ref();
        let quiet =
            notes.and_then(|notes| notes.get(annotations::SKIP_EVENTS)).is_some_and(|it| it == labels::TRUE);
        let draft = Draft {
            labels: pod.metadata.labels.unwrap_or_default(),
            annotations: pod.metadata.annotations.unwrap_or_default(),
            spec,
            fenced: guard == Guard::Fenced,
        };
        // A pod's specification was JSON a moment ago.
        let draft = serde_json::to_vec(&draft).unwrap_or_default();
        Some(Self {
            uid: pod.metadata.uid.unwrap_or_default().into(),
            node,
            deleting: pod.metadata.deletion_timestamp.is_some(),
            finished,
            pending,
            ready,
            source: digest_of(&draft).into(),
            draft: Some(draft.into()),
            since: now,
            shown: fingerprint(&kubelets_part(status)),
            closed_gate,
            quiet,
            tokens,
            guard,
            patience,
            cut_off,
        })
    }
}

/// Metadata with the annotations that matter here.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Meta {
    namespace: Option<Box<str>>,
    name: Box<str>,
    #[serde(default)]
    uid: Box<str>,
    #[serde(default)]
    resource_version: Box<str>,
    deletion_timestamp: Option<Time>,
    #[serde(default)]
    labels: Pairs,
    #[serde(default)]
    annotations: Pairs,
    #[serde(default)]
    owner_references: Vec<OwnerReference>,
}

impl Meta {
    fn identity(&self) -> Identity<'_> {
        Identity {
            namespace: self.namespace.as_deref(),
            name: &self.name,
            uid: &self.uid,
            resource_version: &self.resource_version,
        }
    }
}

/// A ShadowPod as it is read: its specification is what we wrote.
#[derive(Deserialize)]
pub(crate) struct ShadowOnWire {
    metadata: Meta,
    #[serde(default)]
    status: StatusOnWire,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct StatusOnWire {
    phase: Option<PodPhase>,
    recreations: Option<u32>,
    conditions: Vec<Condition>,
}

impl Wire for ShadowOnWire {
    fn identity(&self) -> Identity<'_> {
        self.metadata.identity()
    }
}

/// A ShadowPod at a provider.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Shadow {
    pub(crate) uid: Box<str>,
    pub(crate) version: Box<str>,
    pub(crate) deleting: bool,
    /// The cluster it comes from, by its label; none means that it is nobody's to touch.
    pub(crate) origin: Option<Box<str>>,
    /// The pod at home that it was made for.
    pub(crate) pod_uid: Box<str>,
    /// What it was made from.
    pub(crate) content: Box<str>,
    /// The phase that it ended with.
    pub(crate) ended: Option<PodPhase>,
    pub(crate) recreations: u32,
    /// Why the provider does not make the pod: a word and a sentence.
    pub(crate) refusal: Option<Box<(String, String)>>,
    /// Why the provider does not make the pod larger: a sentence, and since when.
    pub(crate) deferred: Option<Box<(String, Timestamp)>>,
}

impl Shadow {
    pub(crate) fn read(wire: ShadowOnWire) -> Self {
        let ShadowOnWire { metadata, status } = wire;
        let note = |key: &str| Box::from(metadata.annotations.get(key).unwrap_or_default());
        let is_false = |it: &Condition, type_: &str| it.type_ == type_ && it.status == "False";
        let deferred = status.conditions.iter().find(|it| is_false(it, UP_TO_DATE) && it.reason == TOO_LARGE);
        let deferred = deferred.map(|it| Box::new((it.message.clone(), it.last_transition_time.0)));
        let refusal = status.conditions.into_iter().find(|it| is_false(it, CREATED));
        Self {
            pod_uid: note(annotations::POD_UID),
            content: note(annotations::CONTENT),
            origin: metadata.labels.get(labels::REFLECTION_ORIGIN).map(Box::from),
            deleting: metadata.deletion_timestamp.is_some(),
            ended: status.phase.filter(|phase| matches!(phase, PodPhase::Succeeded | PodPhase::Failed)),
            recreations: status.recreations.unwrap_or_default(),
            refusal: refusal.map(|it| Box::new((it.reason, it.message))),
            deferred,
            uid: metadata.uid,
            version: metadata.resource_version,
        }
    }
}

/// A pod at a provider as it is read.
#[derive(Deserialize)]
pub(crate) struct RemoteOnWire {
    metadata: Meta,
    #[serde(default)]
    spec: SpecOnWire,
    #[serde(default)]
    status: PodStatus,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct SpecOnWire {
    node_name: Option<Box<str>>,
}

impl Wire for RemoteOnWire {
    fn identity(&self) -> Identity<'_> {
        self.metadata.identity()
    }
}

/// A pod at a provider.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Remote {
    /// The uid of the ShadowPod that it was made for.
    pub(crate) owner: Box<str>,
    /// When it was first seen.
    pub(crate) since: Timestamp,
    /// The node that it is on.
    pub(crate) node: Option<Box<str>>,
    /// Whether it runs, as was last said.
    pub(crate) runs: bool,
    /// Its status as JSON, which is smaller than the types.
    pub(crate) status: Box<[u8]>,
}

impl Remote {
    pub(crate) fn read(mut wire: RemoteOnWire, now: Timestamp) -> Self {
        place(&mut wire.status, wire.spec.node_name.as_deref());
        let owner = wire.metadata.owner_references.iter().find(|owner| owner.kind == "ShadowPod");
        Self {
            owner: owner.map(|owner| owner.uid.as_str()).unwrap_or_default().into(),
            since: now,
            runs: wire.status.phase.as_deref() == Some(RUNNING),
            node: wire.spec.node_name.filter(|node| !node.is_empty()),
            // A status was JSON a moment ago.
            status: serde_json::to_vec(&wire.status).unwrap_or_default().into(),
        }
    }

    /// The status, as far as it can be read.
    pub(crate) fn status(&self) -> PodStatus {
        serde_json::from_slice(&self.status).unwrap_or_default()
    }
}

/// A node that stands for a provider.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct VirtualNode {
    pub(crate) provider: Box<str>,
    /// The pool of the provider's nodes, where it stands for one.
    pub(crate) pool: Option<Box<str>>,
    pub(crate) address: Option<Box<str>>,
}

impl VirtualNode {
    /// Reads a node; `None` if it stands for nobody.
    pub(crate) fn read(node: &Node) -> Option<Self> {
        let labels = node.metadata.labels.as_ref()?;
        let is_virtual = labels.get(labels::NODE_TYPE).is_some_and(|it| it == labels::NODE_TYPE_VIRTUAL);
        let provider = labels.get(labels::REMOTE_CLUSTER_ID).filter(|_| is_virtual)?;
        let addresses = node.status.as_ref().and_then(|status| status.addresses.as_ref());
        let internal = addresses.into_iter().flatten().find(|it| it.type_ == "InternalIP");
        Some(Self {
            provider: provider.as_str().into(),
            pool: labels.get(labels::POOL).map(|it| it.as_str().into()),
            address: internal.map(|it| it.address.as_str().into()),
        })
    }
}

/// Where the namespaces of a NamespaceMap are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Mapping {
    pub(crate) provider: Box<str>,
    /// By the name at home: the name there, and whether it may be used.
    pub(crate) namespaces: BTreeMap<Arc<str>, (Arc<str>, bool)>,
}

impl Mapping {
    /// Reads a map; `None` if it is one that another cluster asks us with.
    pub(crate) fn read(map: NamespaceMap) -> Option<Self> {
        let labels = map.metadata.labels.as_ref()?;
        if labels.get(labels::REPLICATED).is_some_and(|it| it == labels::TRUE) {
            return None;
        }
        let provider = labels.get(labels::REMOTE_CLUSTER_ID)?.as_str().into();
        let current = map.status.map(|status| status.current_mapping).unwrap_or_default();
        let there = current.into_iter().filter(|(_, it)| it.phase != MappingPhase::CreationLoopBackOff);
        let namespaces = there.map(|(home, it)| {
            (home.into(), (it.remote_namespace.into(), it.phase == MappingPhase::Accepted))
        });
        Some(Self { provider, namespaces: namespaces.collect() })
    }
}
