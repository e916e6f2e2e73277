//! What is told about a pod in an event.

use jiff::Timestamp;
use k8s_openapi::api::core::v1::ObjectReference;
use k8s_openapi::api::events::v1::Event;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use kube::api::ObjectMeta;
use liqo_kit::Key;
use liqo_kit::write::{Target, Write};

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
        let mut digits = digest(&(uid, &self.reason, &self.message));
        digits.truncate(DIGITS);
        let name = format!("{}.{digits}", cut(object.name(), MAX_NAME));
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

/// The beginning of a text, in at most `length` bytes.
pub(crate) fn cut(text: &str, length: usize) -> &str {
    &text[..text.floor_char_boundary(length)]
}

fn in_microseconds(time: Timestamp) -> Timestamp {
    Timestamp::from_microsecond(time.as_microsecond()).unwrap_or(time)
}
