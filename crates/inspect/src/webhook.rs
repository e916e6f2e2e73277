//! Admission webhooks: one whose program is gone can stop a whole cluster.

use k8s_openapi::api::admissionregistration::v1::{
    MutatingWebhookConfiguration, ServiceReference, ValidatingWebhookConfiguration,
};

use crate::facts::Read;
use crate::installation::Installation;

/// One entry of a webhook configuration that calls a Service of ours.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Webhook {
    /// `validatingwebhookconfiguration` or `mutatingwebhookconfiguration`, as kubectl takes it.
    pub(crate) kind: &'static str,
    pub(crate) configuration: String,
    pub(crate) name: String,
    /// What happens when nobody answers: `Fail` or `Ignore`.
    pub(crate) failure_policy: String,
    pub(crate) namespace: String,
    pub(crate) service: String,
}

/// All entries that carry our label or call a Service in our namespace.
pub(crate) async fn read(installation: &Installation) -> Read<Vec<Webhook>> {
    let (validating, mutating) = tokio::join!(
        installation.list_global::<ValidatingWebhookConfiguration>(""),
        installation.list_global::<MutatingWebhookConfiguration>(""),
    );
    let validating = validating?.into_iter().flat_map(|configuration| {
        let name = configuration.metadata.name.unwrap_or_default();
        let hooks = configuration.webhooks.unwrap_or_default().into_iter();
        hooks.filter_map(move |hook| {
            let policy = hook.failure_policy.clone();
            entry("validatingwebhookconfiguration", &name, hook.name, policy, hook.client_config.service)
        })
    });
    let mutating = mutating?.into_iter().flat_map(|configuration| {
        let name = configuration.metadata.name.unwrap_or_default();
        let hooks = configuration.webhooks.unwrap_or_default().into_iter();
        hooks.filter_map(move |hook| {
            let policy = hook.failure_policy.clone();
            entry("mutatingwebhookconfiguration", &name, hook.name, policy, hook.client_config.service)
        })
    });
    let ours = |webhook: &Webhook| {
        webhook.namespace == installation.namespace || webhook.configuration.starts_with("liqo-")
    };
    Ok(validating.chain(mutating).filter(ours).collect())
}

fn entry(
    kind: &'static str,
    configuration: &str,
    name: String,
    policy: Option<String>,
    service: Option<ServiceReference>,
) -> Option<Webhook> {
    let service = service?;
    Some(Webhook {
        kind,
        configuration: configuration.to_owned(),
        name,
        // What Kubernetes assumes when nothing is said.
        failure_policy: policy.unwrap_or_else(|| "Fail".into()),
        namespace: service.namespace,
        service: service.name,
    })
}
