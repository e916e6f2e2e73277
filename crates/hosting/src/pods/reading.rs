//! ShadowPods and pods, as much of them as is kept.

use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Toleration;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use liqo_api::annotations::{PASSED_METADATA, PASSED_SPEC};
use liqo_api::labels::{FENCED, POOL, TRUE};
use liqo_api::shadow_pod::{CREATED, PodPhase, UP_TO_DATE};
use liqo_core::Resources;
use liqo_core::names::PoolName;
use liqo_kit::watch::{Identity, NotedMeta, Pairs, Wire};
use serde::Deserialize;
use serde_json::Value;

use super::Refusal;
use super::labels::digest;
use super::sizes::{Running, SizedSpec};
use super::translate::BORNE;

/// For how long API servers let pods bear nodes that come and go, where nobody says otherwise.
const USUAL_SECONDS: i64 = 300;
/// How many seconds API servers give pods to end, where nobody says otherwise.
const USUAL_GRACE: u32 = 30;

/// A ShadowPod as it is read.
#[derive(Deserialize)]
pub(crate) struct ShadowOnWire {
    metadata: NotedMeta,
    spec: ShadowSpec,
    #[serde(default)]
    status: ShadowStatus,
}

#[derive(Deserialize)]
struct ShadowSpec {
    /// As it stands: one that makes no sense must be told so, and not count as not there.
    pod: Value,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct ShadowStatus {
    phase: Option<PodPhase>,
    #[serde(rename = "podUID")]
    pod_uid: Option<Box<str>>,
    recreations: u32,
    conditions: Vec<Condition>,
}

impl Wire for ShadowOnWire {
    fn identity(&self) -> Identity<'_> {
        self.metadata.identity()
    }
}

/// What a ShadowPod was last told about its pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Said {
    pub(crate) fine: bool,
    pub(crate) reason: Box<str>,
    pub(crate) message: Box<str>,
    pub(crate) since: Timestamp,
}

impl Said {
    fn read(conditions: &[Condition], type_: &str) -> Option<Self> {
        conditions.iter().find(|it| it.type_ == type_).map(|it| Self {
            fine: it.status == "True",
            reason: it.reason.as_str().into(),
            message: it.message.as_str().into(),
            since: it.last_transition_time.0,
        })
    }

    /// Whether this is what was said.
    pub(crate) fn is(&self, refusal: &Refusal) -> bool {
        !self.fine && *self.reason == *refusal.reason && *self.message == *refusal.message
    }
}

/// What matters of a ShadowPod.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Shadow {
    pub(crate) uid: Box<str>,
    pub(crate) resource_version: Box<str>,
    pub(crate) created: Timestamp,
    pub(crate) deleting: bool,
    /// Whether its pod came to its end.
    pub(crate) finished: bool,
    /// How often its pod vanished, and which one was the last that was counted.
    pub(crate) recreations: u32,
    pub(crate) counted: Option<Box<str>>,
    /// What was said about making its pod.
    pub(crate) said: Option<Said>,
    /// What was said about changing it.
    pub(crate) told: Option<Said>,
    pub(crate) labels: Pairs,
    pub(crate) annotations: Pairs,
    /// Whether containers that end are started again, whatever they end with.
    pub(crate) restarts: bool,
    /// The pod as the consumer wants it, as JSON: a third of the room, and it is needed once.
    pub(crate) spec: Box<str>,
    /// A digest of what of it may change while it runs, apart from the size.
    pub(crate) changeable: Box<str>,
    /// What it takes of the contract.
    pub(crate) requests: Arc<Resources>,
    /// The sizes of its containers.
    pub(crate) sizes: Running,
    /// The names of its ephemeral containers.
    pub(crate) ephemeral: Box<[Box<str>]>,
}

impl Shadow {
    pub(crate) fn read(shadow: ShadowOnWire) -> Option<Self> {
        let ShadowOnWire { metadata: meta, spec: ShadowSpec { pod }, status } = shadow;
        // One whose sizes cannot be read cannot be read as a pod either, which is found out when it is to be made.
        let sizes = SizedSpec::deserialize(&pod).unwrap_or_default();
        Some(Self {
            uid: meta.uid,
            resource_version: meta.resource_version,
            created: meta.creation_timestamp.map_or(Timestamp::MIN, |time| time.0),
            deleting: meta.deletion_timestamp.is_some(),
            finished: matches!(status.phase, Some(PodPhase::Succeeded | PodPhase::Failed)),
            recreations: status.recreations,
            counted: status.pod_uid,
            said: Said::read(&status.conditions, CREATED),
            told: Said::read(&status.conditions, UP_TO_DATE),
            labels: meta.labels,
            annotations: meta.annotations,
            restarts: pod["restartPolicy"].as_str().is_none_or(|policy| policy == "Always"),
            spec: pod.to_string().into(),
            changeable: changeable(&pod),
            requests: Arc::new(sizes.requests()),
            sizes: sizes.running(),
            ephemeral: sizes.ephemeral_containers.into_iter().map(|it| it.name).collect(),
        })
    }
}

impl Shadow {
    /// The pool of our nodes that its pod is for.
    pub(crate) fn pool(&self) -> Option<PoolName> {
        pool(&self.labels)
    }

    /// Whether its pod must never run twice.
    pub(crate) fn is_fenced(&self) -> bool {
        is_fenced(&self.labels)
    }

    /// Whether the consumer wants the same as `other` says.
    pub(crate) fn wants_the_same(&self, other: &Self) -> bool {
        self.spec == other.spec && self.labels == other.labels && self.annotations == other.annotations
    }
}

fn pool(of: &Pairs) -> Option<PoolName> {
    of.get(POOL)?.parse().ok()
}

fn is_fenced(of: &Pairs) -> bool {
    of.get(FENCED) == Some(TRUE)
}

/// A digest of what Kubernetes lets be changed of a pod that runs, apart from its size.
fn changeable(pod: &Value) -> Box<str> {
    let images = |list: &str| -> Vec<(Value, Value)> {
        let all = pod[list].as_array().into_iter().flatten();
        all.map(|it| (it["name"].clone(), it["image"].clone())).collect()
    };
    let all =
        (images("containers"), images("initContainers"), &pod["activeDeadlineSeconds"], &pod["tolerations"]);
    digest(&all)
}

/// A pod as it is read.
#[derive(Deserialize)]
pub(crate) struct PodOnWire {
    metadata: NotedMeta,
    #[serde(default)]
    spec: SizedSpec,
    #[serde(default)]
    status: PodStatusOnWire,
}

#[derive(Default, Deserialize)]
struct PodStatusOnWire {
    #[serde(default)]
    phase: Phase,
}

/// The phases of a pod, as far as they differ here.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
pub(crate) enum Phase {
    Succeeded,
    Failed,
    #[default]
    #[serde(other)]
    Living,
}

impl Wire for PodOnWire {
    fn identity(&self) -> Identity<'_> {
        self.metadata.identity()
    }
}

/// What matters of a pod that was made for a ShadowPod.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct PodFacts {
    pub(crate) uid: Box<str>,
    /// The ShadowPod that it was made for.
    pub(crate) owner: Box<str>,
    pub(crate) deleting: bool,
    pub(crate) phase: Phase,
    pub(crate) created: Timestamp,
    /// What it takes of the contract.
    pub(crate) requests: Arc<Resources>,
    /// The sizes of its containers.
    pub(crate) sizes: Running,
    /// The names of its ephemeral containers.
    pub(crate) ephemeral: Box<[Box<str>]>,
    /// What it bears, as JSON; none for what nearly all pods do.
    tolerations: Option<Box<str>>,
    /// From what it has its labels and annotations, and what of it may change while it runs.
    pub(crate) passed_metadata: Box<str>,
    pub(crate) passed_spec: Box<str>,
    /// The pool of our nodes that it is for.
    pub(crate) pool: Option<PoolName>,
    /// Whether it must never run twice.
    pub(crate) fenced: bool,
    /// How many seconds it wants to end, and how many it was given if it is ending.
    pub(crate) grace: u32,
    pub(crate) given: Option<u32>,
}

impl PodFacts {
    pub(crate) fn read(pod: PodOnWire) -> Option<Self> {
        let PodOnWire { metadata: meta, spec, status } = pod;
        let grace = spec.termination_grace_period_seconds.and_then(|grace| u32::try_from(grace).ok());
        let note = |key: &str| Box::from(meta.annotations.get(key).unwrap_or_default());
        let owner = meta.owner_references.into_iter().find(|owner| owner.controller == Some(true))?;
        Some(Self {
            uid: meta.uid,
            owner: owner.uid.into(),
            deleting: meta.deletion_timestamp.is_some(),
            phase: status.phase,
            created: meta.creation_timestamp.map_or(Timestamp::MIN, |time| time.0),
            requests: Arc::new(spec.requests()),
            sizes: spec.running(),
            tolerations: unusual(&spec.tolerations),
            ephemeral: spec.ephemeral_containers.into_iter().map(|it| it.name).collect(),
            passed_metadata: note(PASSED_METADATA),
            passed_spec: note(PASSED_SPEC),
            pool: pool(&meta.labels),
            fenced: is_fenced(&meta.labels),
            grace: grace.unwrap_or(USUAL_GRACE),
            given: meta.deletion_grace_period_seconds.and_then(|given| u32::try_from(given).ok()),
        })
    }

    /// Whether it runs, or is about to, and stays.
    pub(crate) fn is_alive(&self) -> bool {
        self.phase == Phase::Living && !self.deleting
    }

    /// What it bears.
    pub(crate) fn tolerations(&self) -> Vec<Toleration> {
        let kept = self.tolerations.as_deref().and_then(|text| serde_json::from_str(text).ok());
        kept.unwrap_or_else(usual_tolerations)
    }

    /// How the pod came to its end, if it did. One that `restarts` and is being removed was stopped by that, as when its
    /// node is drained: it goes on elsewhere.
    pub(crate) fn end(&self, restarts: bool) -> Option<PodPhase> {
        let phase = match self.phase {
            Phase::Succeeded => PodPhase::Succeeded,
            Phase::Failed => PodPhase::Failed,
            Phase::Living => return None,
        };
        (!self.deleting || !restarts).then_some(phase)
    }
}

/// What a pod bears, as JSON, unless it is what nearly all do.
fn unusual(tolerations: &[Toleration]) -> Option<Box<str>> {
    // They were JSON a moment ago.
    let text = || serde_json::to_string(tolerations).unwrap_or_default().into();
    (tolerations != usual_tolerations()).then(text)
}

/// What nearly all pods bear, since API servers add it.
fn usual_tolerations() -> Vec<Toleration> {
    let usual = |key: &str| Toleration {
        key: Some(key.to_owned()),
        operator: Some("Exists".to_owned()),
        effect: Some("NoExecute".to_owned()),
        toleration_seconds: Some(USUAL_SECONDS),
        value: None,
    };
    BORNE.map(usual).into()
}
