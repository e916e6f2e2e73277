//! Turns steps into writes.

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use k8s_openapi::api::events::v1::Event;
use liqo_api::ClusterConfig;
use liqo_api::cluster_config::{CLUSTER_CONFIG, CLUSTER_ID_CONFIG_MAP, IDENTITY_SECRET, KEY_FINGERPRINT};
use liqo_kit::Key;
use liqo_kit::write::{Target, Write};
use serde_json::json;

use crate::Settings;
use crate::identity::Identity;
use crate::key::KeyError;
use crate::objects;
use crate::plan::Step;

/// The plural of events.
pub(super) const EVENTS: &str = "events";

/// Why an object cannot be made.
#[derive(Debug, thiserror::Error)]
pub(super) enum WriteError {
    #[error("{0}")]
    Key(#[from] KeyError),
    #[error("it is no JSON: {0}")]
    Json(#[from] serde_json::Error),
}

/// The object that a step is about.
pub(super) fn target(step: &Step, settings: &Settings) -> Target {
    let here = |name: &str| Key::namespaced(settings.namespace.as_str(), name);
    match step {
        Step::CreateSecret => Target::of::<Secret>(here(IDENTITY_SECRET)),
        Step::CreateConfigMap(_) | Step::MarkConfigMap { .. } => {
            Target::of::<ConfigMap>(here(CLUSTER_ID_CONFIG_MAP))
        }
        Step::CreateClusterConfig | Step::WriteStatus { .. } => {
            Target::of::<ClusterConfig>(Key::cluster(CLUSTER_CONFIG))
        }
        Step::Report(report) => Target::of::<Event>(here(&report.name)),
    }
}

/// The write that makes a step.
pub(super) fn write(step: &Step, settings: &Settings, now: Timestamp) -> Result<Write, WriteError> {
    let target = target(step, settings);
    let namespace = settings.namespace.as_str();
    Ok(match step {
        Step::CreateSecret => {
            let identity = Identity::generate(&settings.wanted)?;
            Write::create(target, &objects::secret(&identity, namespace)?)?
        }
        Step::CreateConfigMap(identity) => Write::create(target, &objects::config_map(identity, namespace))?,
        Step::MarkConfigMap { resource_version, fingerprint } => {
            let labels = objects::config_map_labels();
            let patch =
                json!({ "metadata": { "labels": labels, "annotations": { KEY_FINGERPRINT: fingerprint } } });
            Write::merge(target, resource_version, &patch)?
        }
        Step::CreateClusterConfig => Write::create(target, &objects::cluster_config())?,
        Step::WriteStatus { resource_version, status } => {
            Write::merge_status(target, resource_version, status)?
        }
        Step::Report(report) => Write::create(target, &objects::event(report, settings, now))?.or_exists(),
    })
}

/// The kind of a target, in the plural: the name of its watch.
pub(super) fn plural(target: &Target) -> String {
    let text = target.to_string();
    text.rsplit('/').nth(1).unwrap_or_default().to_owned()
}
