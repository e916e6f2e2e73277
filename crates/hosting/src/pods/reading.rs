//! ShadowPods and pods, as much of them as is kept.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use liqo_api::shadow_pod::{CREATED, PodPhase};
use liqo_core::Resources;
use liqo_core::capacity::{InitContainer, PodRequests};
use liqo_kit::watch::{Identity, Meta, Pairs, Wire};
use serde::Deserialize;
use serde_json::Value;

use super::Refusal;

/// A ShadowPod as it is read.
#[derive(Deserialize)]
pub(crate) struct ShadowOnWire {
    metadata: ShadowMeta,
    spec: ShadowSpec,
    #[serde(default)]
    status: ShadowStatus,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ShadowMeta {
    #[serde(flatten)]
    meta: Meta,
    creation_timestamp: Option<Time>,
    #[serde(default)]
    annotations: Pairs,
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
    conditions: Vec<Condition>,
}

impl Wire for ShadowOnWire {
    fn identity(&self) -> Identity<'_> {
        self.metadata.meta.identity()
    }
}

/// What a ShadowPod was last told about its pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Said {
    pub(crate) created: bool,
    reason: Box<str>,
    message: Box<str>,
}

impl Said {
    /// Whether this is what was said.
    pub(crate) fn is(&self, refusal: &Refusal) -> bool {
        !self.created && *self.reason == *refusal.reason && *self.message == *refusal.message
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
    pub(crate) said: Option<Said>,
    pub(crate) labels: Pairs,
    pub(crate) annotations: Pairs,
    /// Whether containers that end are started again, whatever they end with.
    pub(crate) restarts: bool,
    /// The pod as the consumer wants it, as JSON: a third of the room, and it is needed once.
    pub(crate) spec: Box<str>,
    /// What it takes of the contract.
    pub(crate) requests: Arc<Resources>,
}

impl Shadow {
    pub(crate) fn read(shadow: ShadowOnWire) -> Option<Self> {
        let ShadowOnWire { metadata, spec: ShadowSpec { pod }, status } = shadow;
        let ShadowMeta { meta, creation_timestamp, annotations } = metadata;
        let said = status.conditions.into_iter().find(|it| it.type_ == CREATED).map(|it| Said {
            created: it.status == "True",
            reason: it.reason.into(),
            message: it.message.into(),
        });
        // One whose sizes cannot be read cannot be read as a pod either, which is found out when it is to be made.
        let sizes = SizedSpec::deserialize(&pod).unwrap_or_default();
        Some(Self {
            uid: meta.uid,
            resource_version: meta.resource_version,
            created: creation_timestamp.map_or(Timestamp::MIN, |time| time.0),
            deleting: meta.deletion_timestamp.is_some(),
            finished: matches!(status.phase, Some(PodPhase::Succeeded | PodPhase::Failed)),
            said,
            labels: meta.labels,
            annotations,
            restarts: pod["restartPolicy"].as_str().is_none_or(|policy| policy == "Always"),
            spec: pod.to_string().into(),
            requests: Arc::new(sizes.requests()),
        })
    }
}

/// A pod as it is read.
#[derive(Deserialize)]
pub(crate) struct PodOnWire {
    metadata: PodMeta,
    #[serde(default)]
    spec: SizedSpec,
    #[serde(default)]
    status: PodStatusOnWire,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct PodMeta {
    #[serde(flatten)]
    meta: Meta,
    #[serde(default)]
    owner_references: Vec<Owner>,
}

#[derive(Deserialize)]
struct Owner {
    uid: Box<str>,
    #[serde(default)]
    controller: bool,
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
        self.metadata.meta.identity()
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
    /// What it takes of the contract.
    pub(crate) requests: Arc<Resources>,
}

impl PodFacts {
    pub(crate) fn read(pod: PodOnWire) -> Option<Self> {
        let PodOnWire { metadata: PodMeta { meta, owner_references }, spec, status } = pod;
        let owner = owner_references.into_iter().find(|owner| owner.controller)?;
        Some(Self {
            uid: meta.uid,
            owner: owner.uid,
            deleting: meta.deletion_timestamp.is_some(),
            phase: status.phase,
            requests: Arc::new(spec.requests()),
        })
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

/// What of a pod's specification says how large it is.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct SizedSpec {
    containers: Vec<SizedContainer>,
    init_containers: Vec<SizedContainer>,
    overhead: Amounts,
    resources: Sizes,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct SizedContainer {
    resources: Sizes,
    restart_policy: Option<String>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Sizes {
    requests: Amounts,
    limits: Amounts,
}

/// Amounts by resource, each a text or a number.
#[derive(Default, Deserialize)]
#[serde(transparent)]
struct Amounts(BTreeMap<String, Value>);

impl Amounts {
    fn read(&self) -> Resources {
        let text = |value: &Value| match value {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        // What cannot be read is refused by the API server when the pod is made.
        let read = Resources::parse(self.0.iter().map(|(name, value)| (name, text(value)))).resources;
        read.refuse_negative().resources
    }
}

impl Sizes {
    /// Who names a limit alone requests as much.
    fn read(&self) -> Resources {
        let mut requests = self.limits.read();
        requests.extend(self.requests.read());
        requests
    }
}

impl SizedSpec {
    fn requests(&self) -> Resources {
        let init = |it: &SizedContainer| InitContainer {
            requests: it.resources.read(),
            sidecar: it.restart_policy.as_deref() == Some("Always"),
        };
        let pod = PodRequests {
            containers: self.containers.iter().map(|it| it.resources.read()).collect(),
            init_containers: self.init_containers.iter().map(init).collect(),
            pod_level: self.resources.read(),
            overhead: self.overhead.read(),
        };
        let mut needed = pod.effective();
        needed.retain(|_, amount| !amount.is_zero());
        if let (Ok(pods), Ok(one)) = ("pods".parse(), "1".parse()) {
            needed.insert(pods, one);
        }
        needed
    }
}
