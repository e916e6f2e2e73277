//! What is told about an object in an event.

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{self as core, EventSource, ObjectReference};
use k8s_openapi::api::events::v1::Event;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{MicroTime, Time};
use kube::api::ObjectMeta;
use liqo_kit::Key;
use liqo_kit::write::{Target, Write};

use crate::events::{Said, Subject};
use crate::route::digest;

/// The longest note of an event; the API server refuses longer ones.
const MAX_NOTE: usize = 1024;
/// The longest name of a pod that an event's name begins with, and digits that tell events apart.
const MAX_NAME: usize = 200;
const DIGITS: usize = 16;
/// Who reports.
const CONTROLLER: &str = "liqo.io/liqo-controller-manager";

/// One thing to tell about a pod.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Report {
    pub(crate) warning: bool,
    pub(crate) reason: String,
    pub(crate) message: String,
}

impl Report {
    /// Something is wrong.
    pub(crate) fn warning(reason: &str, message: &str) -> Self {
        Self { warning: true, reason: reason.to_owned(), message: message.to_owned() }
    }

    /// Something is as it should be.
    pub(crate) fn normal(reason: &str, message: &str) -> Self {
        Self { warning: false, ..Self::warning(reason, message) }
    }

    /// The write that tells it about a pod.
    pub(crate) fn about(&self, pod: &Key, uid: &str, instance: &str, now: Timestamp) -> Option<Write> {
        self.about_kind(("v1", "Pod"), pod, uid, instance, now)
    }

    /// The write that tells it about an object of this API version and kind. Its name follows from what it says, so that
    /// saying it twice makes one event.
    pub(crate) fn about_kind(
        &self,
        (api_version, kind): (&str, &str),
        object: &Key,
        uid: &str,
        instance: &str,
        now: Timestamp,
    ) -> Option<Write> {
        let name = name(object, uid, &self.reason, &self.message);
        let namespace = object.namespace().map(str::to_owned);
        let event = Event {
            metadata: ObjectMeta {
                name: Some(name.clone()),
                namespace: namespace.clone(),
                ..ObjectMeta::default()
            },
            action: Some("Offload".to_owned()),
            event_time: Some(MicroTime(in_microseconds(now))),
            note: Some(cut(&self.message, MAX_NOTE).to_owned()),
            reason: Some(self.reason.clone()),
            regarding: Some(ObjectReference {
                api_version: Some(api_version.to_owned()),
                kind: Some(kind.to_owned()),
                name: Some(object.name().to_owned()),
                namespace,
                uid: Some(uid.to_owned()),
                ..ObjectReference::default()
            }),
            reporting_controller: Some(CONTROLLER.to_owned()),
            reporting_instance: Some(instance.to_owned()),
            type_: Some(if self.warning { "Warning" } else { "Normal" }.to_owned()),
            ..Event::default()
        };
        let target = Target::of::<Event>(Key::new(object.namespace(), &name));
        Write::create(target, &event).ok().map(Write::or_exists)
    }
}

/// The write that tells at home what is said at a provider, or that it is said again.
pub(crate) fn retell(subject: &Subject, uid: &str, said: &Said) -> Option<Write> {
    let object = subject.key();
    let kind = match subject {
        Subject::Pod(_) => "Pod",
        Subject::Claim(_) => "PersistentVolumeClaim",
    };
    let name = name(object, uid, &said.reason, &said.message);
    let namespace = object.namespace().map(str::to_owned);
    // The older kind of event: its count can be changed without knowing the rest.
    let event = core::Event {
        metadata: ObjectMeta {
            name: Some(name.clone()),
            namespace: namespace.clone(),
            ..ObjectMeta::default()
        },
        count: Some(said.count),
        first_timestamp: Some(Time(said.first)),
        last_timestamp: Some(Time(said.last)),
        involved_object: ObjectReference {
            api_version: Some("v1".to_owned()),
            kind: Some(kind.to_owned()),
            name: Some(object.name().to_owned()),
            namespace,
            uid: Some(uid.to_owned()),
            ..ObjectReference::default()
        },
        message: Some(cut(&said.message, MAX_NOTE).to_owned()),
        reason: Some(said.reason.clone()),
        source: Some(EventSource { component: Some(said.component.clone()), host: None }),
        type_: Some(if said.warning { "Warning" } else { "Normal" }.to_owned()),
        ..core::Event::default()
    };
    Write::apply(Target::of::<core::Event>(Key::new(object.namespace(), &name)), &event).ok()
}

/// The name of an event, which follows from what it says.
fn name(object: &Key, uid: &str, reason: &str, message: &str) -> String {
    let mut digits = digest(&(uid, reason, message));
    digits.truncate(DIGITS);
    format!("{}.{digits}", cut(object.name(), MAX_NAME))
}

/// The beginning of a text, in at most `length` bytes.
pub(crate) fn cut(text: &str, length: usize) -> &str {
    &text[..text.floor_char_boundary(length)]
}

fn in_microseconds(time: Timestamp) -> Timestamp {
    Timestamp::from_microsecond(time.as_microsecond()).unwrap_or(time)
}
