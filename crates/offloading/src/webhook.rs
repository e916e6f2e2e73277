//! The webhook that tells pods where they may run, in every replica of the manager.
//!
//! - [`certificate`] is what it shows and what the API server trusts: made, staged and renewed by the leader;
//! - [`review`] is the answer to one question of the API server;
//! - [`server`] listens.

mod certificate;
pub(crate) mod review;
pub(crate) mod server;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use k8s_openapi::api::admissionregistration::v1::MutatingWebhookConfiguration;
use k8s_openapi::api::core::v1::Secret;
use kube::Resource;
use liqo_kit::Key;
use serde_json::json;

use crate::plan::{Planned, View};
use crate::steps::{Deed, Step, Where};

pub(crate) use certificate::{CertificateError, Kept, create, replace, stage};

/// The MutatingWebhookConfiguration.
pub const CONFIGURATION: &str = "liqo";
/// The Service, and the Secret with its certificate.
pub const SERVICE: &str = "liqo-webhook";
/// Where pods are asked about.
pub const PATH: &str = "/mutate/pods";

/// What the API server is told to trust.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Configured {
    /// The name of each webhook, and the authorities that it must be shown a certificate of.
    bundles: Vec<(String, Vec<u8>)>,
}

impl Configured {
    pub(crate) fn read(configuration: &MutatingWebhookConfiguration) -> Self {
        let bundle =
            |bytes: Option<&k8s_openapi::ByteString>| bytes.map(|it| it.0.clone()).unwrap_or_default();
        let all = configuration.webhooks.iter().flatten();
        let bundles = all.map(|it| (it.name.clone(), bundle(it.client_config.ca_bundle.as_ref())));
        Self { bundles: bundles.collect() }
    }

    /// Whether the API server trusts these authorities, and these alone.
    pub(crate) fn trusts(&self, authorities: &[u8]) -> bool {
        !self.bundles.is_empty() && self.bundles.iter().all(|(_, bundle)| bundle == authorities)
    }
}

/// What is missing for the webhook to be asked and believed.
pub(crate) fn plan(view: &View<'_>) -> Planned {
    let key = || Key::namespaced(view.settings.namespace.as_str(), SERVICE);
    let step = |what, deed| Step::new::<Secret>(Where::Here, key(), what, deed);
    let Some(kept) = &view.index.kept else {
        return Planned { steps: vec![step("certify", Deed::CreateCertificate)], wake: None };
    };
    let Some(shown) = &kept.shown else {
        let deed = Deed::ReplaceCertificate { resource_version: kept.resource_version.clone() };
        return Planned { steps: vec![step("certify", deed)], wake: None };
    };
    let configured = view.index.configured.as_ref();
    let mut steps = Vec::new();
    let promoted = kept.promote();
    let wake = promoted.is_none().then(|| shown.due());
    match promoted {
        // Without a configuration nobody is asked to trust anything.
        Some(deed) if configured.is_none_or(|configured| configured.trusts(&kept.authorities)) => {
            steps.push(step("show", deed));
        }
        Some(_) => {}
        None if shown.is_due(view.now) => {
            let authorities = kept.authorities.clone();
            let deed =
                Deed::StageCertificate { resource_version: kept.resource_version.clone(), authorities };
            steps.push(step("renew", deed));
        }
        None => {}
    }
    if let Some(configured) = configured.filter(|configured| !configured.trusts(&kept.authorities)) {
        steps.push(trust(configured, &kept.authorities));
    }
    Planned { steps, wake }
}

/// Tells the API server whom to trust. The rest of the object is the chart's.
fn trust(configured: &Configured, authorities: &[u8]) -> Step {
    let bundle = STANDARD.encode(authorities);
    let webhook =
        |(name, _): &(String, Vec<u8>)| json!({ "name": name, "clientConfig": { "caBundle": bundle } });
    let object = json!({
        "apiVersion": MutatingWebhookConfiguration::api_version(&()),
        "kind": MutatingWebhookConfiguration::kind(&()),
        "metadata": { "name": CONFIGURATION },
        "webhooks": configured.bundles.iter().map(webhook).collect::<Vec<_>>(),
    });
    let key = Key::cluster(CONFIGURATION);
    Step::new::<MutatingWebhookConfiguration>(Where::Here, key, "trust", Deed::Apply(object))
}

#[cfg(test)]
mod tests;
