//! The objects that this room makes.

use std::collections::BTreeMap;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Namespace, ObjectReference, Pod, ResourceQuota, ResourceQuotaSpec};
use k8s_openapi::api::events::v1::Event;
use k8s_openapi::api::rbac::v1::{RoleBinding, RoleRef, Subject};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use kube::Resource;
use kube::api::ObjectMeta;
use liqo_api::names::{REMOTE_TENANT_BINDING, REMOTE_TENANT_ROLE};
use liqo_api::{ShadowPod, annotations, labels};
use liqo_core::Resources;
use liqo_core::canonical::Digest;
use liqo_core::names::ClusterId;
use liqo_kit::Key;

use crate::claims::Claim;
use crate::pods::{HouseRules, Refusal};

#[cfg(test)]
mod tests;

/// The name under which this room owns fields.
pub(crate) const FIELD_MANAGER: &str = "liqo-hosting";
/// The label by which a namespace enforces a Pod Security level.
pub(crate) const POD_SECURITY: &str = "pod-security.kubernetes.io/enforce";
/// The label, with its value, by which what this room makes in namespaces is found.
pub(crate) const MADE_HERE: &str = "app.kubernetes.io/component=hosting";

/// Who made an object and reports events.
const CONTROLLER: &str = "liqo-controller-manager";
const RBAC: &str = "rbac.authorization.k8s.io";
/// The longest note of an event; the API server refuses longer ones.
const MAX_NOTE: usize = 1024;
/// The longest name of an object that an event's name begins with, and digits that tell events apart.
const MAX_NAME: usize = 200;
const DIGITS: usize = 16;

type Texts = BTreeMap<String, String>;

fn labels_of(peer: &ClusterId) -> Texts {
    let pairs = [
        ("app.kubernetes.io/name", "liqo"),
        ("app.kubernetes.io/component", "hosting"),
        ("app.kubernetes.io/managed-by", CONTROLLER),
        (labels::PART_OF, labels::PART_OF_LIQO),
        (labels::REMOTE_CLUSTER_ID, peer.as_str()),
    ];
    pairs.map(|(key, value)| (key.to_owned(), value.to_owned())).into()
}

fn metadata(name: &str, namespace: Option<&str>, labels: Texts) -> ObjectMeta {
    ObjectMeta {
        name: Some(name.to_owned()),
        namespace: namespace.map(str::to_owned),
        labels: Some(labels),
        ..ObjectMeta::default()
    }
}

/// A consumer's namespace.
pub(crate) fn namespace(name: &str, claim: &Claim, rules: &HouseRules) -> Namespace {
    let mut labels = labels_of(&claim.peer);
    labels.insert(POD_SECURITY.to_owned(), rules.level.as_label().to_owned());
    let mut metadata = metadata(name, None, labels);
    let notes = [
        (annotations::MANAGED_BY_NAMESPACE_MAP.to_owned(), claim.map.to_string()),
        (annotations::ORIGINAL_NAME.to_owned(), claim.original.clone()),
    ];
    let kinds = rules.custom_kinds.iter().map(|kinds| (annotations::CUSTOM_KINDS.to_owned(), kinds.clone()));
    metadata.annotations = Some(notes.into_iter().chain(kinds).collect());
    Namespace { metadata, ..Namespace::default() }
}

/// A quota in a namespace of a consumer. What its contract allows is the same in each: the sum over all of them is reckoned
/// before pods are made.
pub(crate) fn quota(name: &str, namespace: &str, peer: &ClusterId, hard: &Texts) -> ResourceQuota {
    let hard = hard.iter().map(|(name, amount)| (name.clone(), Quantity(amount.clone()))).collect();
    ResourceQuota {
        metadata: metadata(name, Some(namespace), labels_of(peer)),
        spec: Some(ResourceQuotaSpec { hard: Some(hard), ..ResourceQuotaSpec::default() }),
        status: None,
    }
}

/// What a contract allows, as a quota says it.
pub(crate) fn hard(resources: &Resources) -> Texts {
    let name = |name: &str| if name == "pods" { name.to_owned() } else { format!("requests.{name}") };
    resources.iter().map(|(resource, amount)| (name(resource.as_str()), amount.to_string())).collect()
}

/// The binding that lets a consumer into its namespace.
pub(crate) fn binding(namespace: &str, peer: &ClusterId) -> RoleBinding {
    RoleBinding {
        metadata: metadata(REMOTE_TENANT_BINDING, Some(namespace), labels_of(peer)),
        role_ref: RoleRef {
            api_group: RBAC.to_owned(),
            kind: "ClusterRole".to_owned(),
            name: REMOTE_TENANT_ROLE.to_owned(),
        },
        subjects: Some(subjects(peer)),
    }
}

/// Who a consumer is for the API server: the user that its certificate names.
pub(crate) fn subjects(peer: &ClusterId) -> Vec<Subject> {
    vec![Subject {
        api_group: Some(RBAC.to_owned()),
        kind: "User".to_owned(),
        name: peer.to_string(),
        namespace: None,
    }]
}

/// The object that an event is about, by its uid.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum About {
    ShadowPod(String),
    Pod(String),
}

impl About {
    fn reference(&self, key: &Key) -> ObjectReference {
        let (version, kind, uid) = match self {
            Self::ShadowPod(uid) => (ShadowPod::api_version(&()), ShadowPod::kind(&()), uid),
            Self::Pod(uid) => (Pod::api_version(&()), Pod::kind(&()), uid),
        };
        ObjectReference {
            api_version: Some(version.into_owned()),
            kind: Some(kind.into_owned()),
            name: Some(key.name().to_owned()),
            namespace: key.namespace().map(str::to_owned),
            uid: Some(uid.clone()),
            ..ObjectReference::default()
        }
    }
}

/// What is told about a pod or its ShadowPod. Its name follows from what it says, so that saying it twice makes one event.
pub(crate) fn event(about: &About, key: &Key, said: &Refusal, reporter: &str, now: Timestamp) -> Event {
    let regarding = about.reference(key);
    let uid = regarding.uid.as_deref().unwrap_or_default();
    let text = format!("{uid}\0{}\0{}", said.reason, said.message);
    let digest = Digest::of("liqo.io/event", text.as_bytes()).to_string();
    let digits = digest.rsplit(':').next().and_then(|hex| hex.get(..DIGITS)).unwrap_or_default();
    let name = format!("{}.{digits}", cut(key.name(), MAX_NAME));
    let labels = [(labels::PART_OF.to_owned(), labels::PART_OF_LIQO.to_owned())].into();
    Event {
        metadata: metadata(&name, key.namespace(), labels),
        action: Some("Host".to_owned()),
        event_time: Some(MicroTime(Timestamp::from_microsecond(now.as_microsecond()).unwrap_or(now))),
        note: Some(cut(&said.message, MAX_NOTE).to_owned()),
        reason: Some(said.reason.to_owned()),
        regarding: Some(regarding),
        reporting_controller: Some(format!("liqo.io/{CONTROLLER}")),
        reporting_instance: Some(cut(reporter, 128).to_owned()),
        type_: Some("Warning".to_owned()),
        ..Event::default()
    }
}

/// The beginning of a text, in at most `length` bytes.
fn cut(text: &str, length: usize) -> &str {
    &text[..text.floor_char_boundary(length)]
}
