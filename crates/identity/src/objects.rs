//! The objects that this room makes.

use std::collections::BTreeMap;

use jiff::Timestamp;
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::{ConfigMap, ObjectReference, Secret};
use k8s_openapi::api::events::v1::Event;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use kube::api::ObjectMeta;
use liqo_api::cluster_config::{
    CLUSTER_CONFIG, CLUSTER_ID_CONFIG_MAP, CLUSTER_ID_KEY, CLUSTER_NAME_KEY, IDENTITY_SECRET,
    IDENTITY_SECRET_TYPE, KEY_FINGERPRINT, identity_secret,
};
use liqo_api::{ClusterConfig, ClusterConfigSpec, labels};

use crate::Settings;
use crate::identity::Identity;
use crate::key::KeyError;
use crate::plan::{About, Report};

/// Who made an object and reports events.
pub(crate) const CONTROLLER: &str = "liqo-controller-manager";

/// The longest note of an event; the API server refuses longer ones.
const MAX_NOTE: usize = 1024;

type Labels = BTreeMap<String, String>;

/// No version among them: an upgrade would have to write objects that it does not otherwise change.
fn common_labels(name: &str) -> Labels {
    let pairs = [
        ("app.kubernetes.io/name", name),
        ("app.kubernetes.io/component", "controller-manager"),
        ("app.kubernetes.io/managed-by", CONTROLLER),
        (labels::PART_OF, labels::PART_OF_LIQO),
    ];
    pairs.map(|(key, value)| (key.to_owned(), value.to_owned())).into()
}

pub(crate) fn config_map_labels() -> Labels {
    common_labels(CLUSTER_ID_CONFIG_MAP)
}

fn metadata(name: &str, namespace: Option<&str>, labels: Labels) -> ObjectMeta {
    ObjectMeta {
        name: Some(name.to_owned()),
        namespace: namespace.map(str::to_owned),
        labels: Some(labels),
        ..ObjectMeta::default()
    }
}

pub(crate) fn secret(identity: &Identity, namespace: &str) -> Result<Secret, KeyError> {
    let data = [
        (identity_secret::PRIVATE_KEY, identity.key.to_pem()?.as_bytes().to_vec()),
        (identity_secret::PUBLIC_KEY, identity.public_key().to_pem().into_bytes()),
        (identity_secret::CLUSTER_ID, identity.id.as_str().as_bytes().to_vec()),
        (identity_secret::CLUSTER_NAME, identity.name.as_str().as_bytes().to_vec()),
    ];
    Ok(Secret {
        metadata: metadata(IDENTITY_SECRET, Some(namespace), common_labels("liqo")),
        type_: Some(IDENTITY_SECRET_TYPE.to_owned()),
        data: Some(data.map(|(key, value)| (key.to_owned(), ByteString(value))).into()),
        ..Secret::default()
    })
}

pub(crate) fn config_map(identity: &Identity, namespace: &str) -> ConfigMap {
    let data = [(CLUSTER_ID_KEY, identity.id.as_str()), (CLUSTER_NAME_KEY, identity.name.as_str())];
    let mut metadata = metadata(CLUSTER_ID_CONFIG_MAP, Some(namespace), config_map_labels());
    metadata.annotations = Some([(KEY_FINGERPRINT.to_owned(), identity.public_key().fingerprint())].into());
    ConfigMap {
        metadata,
        data: Some(data.map(|(key, value)| (key.to_owned(), value.to_owned())).into()),
        ..ConfigMap::default()
    }
}

pub(crate) fn cluster_config() -> ClusterConfig {
    let mut config = ClusterConfig::new(CLUSTER_CONFIG, ClusterConfigSpec::default());
    config.metadata.labels = Some(common_labels("liqo"));
    config
}

/// An event about the ConfigMap or the Secret, as an event must be in the namespace of what it is about.
pub(crate) fn event(report: &Report, settings: &Settings, now: Timestamp) -> Event {
    let namespace = settings.namespace.as_str();
    let (kind, name) = match report.about {
        About::ConfigMap => ("ConfigMap", CLUSTER_ID_CONFIG_MAP),
        About::Secret => ("Secret", IDENTITY_SECRET),
    };
    Event {
        metadata: metadata(&report.name, Some(namespace), common_labels("liqo")),
        action: Some("EstablishIdentity".to_owned()),
        event_time: Some(MicroTime(now)),
        note: Some(cut(&report.message, MAX_NOTE)),
        reason: Some(report.reason.to_owned()),
        regarding: Some(ObjectReference {
            api_version: Some("v1".to_owned()),
            kind: Some(kind.to_owned()),
            name: Some(name.to_owned()),
            namespace: Some(namespace.to_owned()),
            uid: Some(report.uid.clone()),
            ..ObjectReference::default()
        }),
        reporting_controller: Some(format!("liqo.io/{CONTROLLER}")),
        reporting_instance: Some(settings.pod.clone()),
        type_: Some("Warning".to_owned()),
        ..Event::default()
    }
}

/// The beginning of a text, in at most `length` bytes.
fn cut(text: &str, length: usize) -> String {
    const MORE: &str = "…";
    if text.len() <= length {
        return text.to_owned();
    }
    let end = text.floor_char_boundary(length - MORE.len());
    format!("{}{MORE}", &text[..end])
}
