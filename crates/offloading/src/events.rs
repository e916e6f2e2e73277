//! What is told about offloaded namespaces, once each.

use jiff::Timestamp;
use k8s_openapi::api::core::v1::ObjectReference;
use k8s_openapi::api::events::v1::Event;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use kube::api::ObjectMeta;
use kube::{Resource, ResourceExt};
use liqo_api::labels;
use liqo_core::canonical::Digest;

use crate::steps::Step;

/// Events about objects without namespace are there.
const EVENT_NAMESPACE: &str = "default";
/// The longest note of an event; the API server refuses longer ones.
const MAX_NOTE: usize = 1024;
/// The longest name of an object that an event's name begins with, and digits that tell events apart.
const MAX_NAME: usize = 200;
const DIGITS: usize = 16;
/// Who reports.
const CONTROLLER: &str = "liqo-controller-manager";

/// One thing to tell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Report {
    pub(crate) warning: bool,
    pub(crate) reason: String,
    pub(crate) message: String,
    /// What tells this occasion from another of the same words.
    pub(crate) occasion: String,
}

impl Report {
    /// The step that tells it about `object`. Its name follows from what it says, so that saying it twice makes one event.
    pub(crate) fn about<K: Resource<DynamicType = ()>>(&self, object: &K, pod: &str, now: Timestamp) -> Step {
        let (name, uid, namespace) =
            (object.name_any(), object.uid().unwrap_or_default(), object.namespace());
        let text = format!("{uid}\0{}\0{}\0{}", self.reason, self.message, self.occasion);
        let digest = Digest::of("liqo.io/event", text.as_bytes()).to_string();
        let digits = digest.rsplit(':').next().and_then(|hex| hex.get(..DIGITS)).unwrap_or_default();
        let metadata = ObjectMeta {
            name: Some(format!("{}.{digits}", cut(&name, MAX_NAME))),
            namespace: Some(namespace.clone().unwrap_or_else(|| EVENT_NAMESPACE.to_owned())),
            labels: Some(labels_of()),
            ..ObjectMeta::default()
        };
        let regarding = ObjectReference {
            api_version: Some(K::api_version(&()).into_owned()),
            kind: Some(K::kind(&()).into_owned()),
            name: Some(name),
            namespace,
            uid: Some(uid),
            ..ObjectReference::default()
        };
        let event = Event {
            metadata,
            action: Some("Offload".to_owned()),
            event_time: Some(MicroTime(in_microseconds(now))),
            note: Some(cut(&self.message, MAX_NOTE).to_owned()),
            reason: Some(self.reason.clone()),
            regarding: Some(regarding),
            reporting_controller: Some(format!("liqo.io/{CONTROLLER}")),
            reporting_instance: Some(pod.to_owned()),
            type_: Some(if self.warning { "Warning" } else { "Normal" }.to_owned()),
            ..Event::default()
        };
        Step::note(&event, "report")
    }
}

/// Labels of what this room makes.
pub(crate) fn labels_of() -> std::collections::BTreeMap<String, String> {
    let pairs = [
        ("app.kubernetes.io/name", "liqo"),
        ("app.kubernetes.io/component", "offloading"),
        ("app.kubernetes.io/managed-by", CONTROLLER),
        (labels::PART_OF, labels::PART_OF_LIQO),
    ];
    pairs.map(|(key, value)| (key.to_owned(), value.to_owned())).into()
}

/// The beginning of a text, in at most `length` bytes.
pub(crate) fn cut(text: &str, length: usize) -> &str {
    &text[..text.floor_char_boundary(length)]
}

fn in_microseconds(time: Timestamp) -> Timestamp {
    Timestamp::from_microsecond(time.as_microsecond()).unwrap_or(time)
}
