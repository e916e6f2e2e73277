//! What is told about peers and contracts, once each.

use jiff::Timestamp;
use k8s_openapi::api::core::v1::ObjectReference;
use k8s_openapi::api::events::v1::Event;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use kube::api::ObjectMeta;
use kube::{Resource, ResourceExt};
use liqo_api::labels;
use liqo_core::canonical::Digest;

use crate::places::View;
use crate::steps::{Step, Where};

/// Events about objects without namespace are there.
const EVENT_NAMESPACE: &str = "default";
/// The longest note of an event; the API server refuses longer ones.
const MAX_NOTE: usize = 1024;
/// The longest name of an object that an event's name begins with, and digits that tell events apart.
const MAX_NAME: usize = 200;
const DIGITS: usize = 16;
/// Who reports.
pub(crate) const CONTROLLER: &str = "liqo-controller-manager";

/// One thing to tell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Report {
    pub(crate) warning: bool,
    pub(crate) reason: &'static str,
    pub(crate) message: String,
    /// What tells this occasion from another of the same words.
    pub(crate) occasion: String,
}

impl Report {
    #[expect(clippy::needless_pass_by_value, reason = "occasions are mostly made where they are passed")]
    pub(crate) fn new(reason: &'static str, message: impl Into<String>, occasion: impl ToString) -> Self {
        Self { warning: false, reason, message: message.into(), occasion: occasion.to_string() }
    }

    /// The same as a warning.
    #[must_use]
    pub(crate) fn warning(mut self) -> Self {
        self.warning = true;
        self
    }

    /// The step that tells it about `object`. Its name follows from what it says, so that saying it twice makes one event.
    pub(crate) fn about<K: Resource<DynamicType = ()>>(&self, view: &View<'_>, object: &K) -> Step {
        let name = object.name_any();
        let uid = object.uid().unwrap_or_default();
        let text = format!("{uid}\0{}\0{}\0{}", self.reason, self.message, self.occasion);
        let digest = Digest::of("liqo.io/event", text.as_bytes()).to_string();
        let digits = digest.rsplit(':').next().and_then(|hex| hex.get(..DIGITS)).unwrap_or_default();
        let namespace = object.namespace();
        let event_name = format!("{}.{digits}", cut(&name, MAX_NAME));
        let metadata = ObjectMeta {
            name: Some(event_name),
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
            action: Some("Peer".to_owned()),
            event_time: Some(MicroTime(in_microseconds(view.now))),
            note: Some(cut(&self.message, MAX_NOTE).to_owned()),
            reason: Some(self.reason.to_owned()),
            regarding: Some(regarding),
            reporting_controller: Some(format!("liqo.io/{CONTROLLER}")),
            reporting_instance: Some(view.settings.pod.clone()),
            type_: Some(if self.warning { "Warning" } else { "Normal" }.to_owned()),
            ..Event::default()
        };
        Step::note(Where::Here, &event, "report")
    }
}

/// Labels of what this room makes.
pub(crate) fn labels_of() -> std::collections::BTreeMap<String, String> {
    let pairs = [
        ("app.kubernetes.io/name", "liqo"),
        ("app.kubernetes.io/component", "peering"),
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
