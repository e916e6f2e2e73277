//! Admission webhooks: one whose program is gone can stop a whole cluster.

use k8s_openapi::api::admissionregistration::v1::{
    MutatingWebhookConfiguration, ServiceReference, ValidatingWebhookConfiguration,
};
use k8s_openapi::api::core::v1::Service;
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::Api;
use kube::api::ListParams;

use crate::facts::Read;
use crate::installation::{self, Installation, Unread};

/// Whether anybody is behind a webhook.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Answer {
    /// Somebody is.
    Somebody,
    /// Its Service does not exist.
    NoService,
    /// Its Service has no pod that is ready.
    Nobody,
    /// It could not be found out.
    Unknown(Unread),
}

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
    pub(crate) answer: Answer,
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
    let mut found: Vec<Webhook> = validating.chain(mutating).filter(ours).collect();
    for webhook in &mut found {
        webhook.answer = answer(installation, &webhook.namespace, &webhook.service).await;
    }
    Ok(found)
}

async fn answer(installation: &Installation, namespace: &str, service: &str) -> Answer {
    let services: Api<Service> = Api::namespaced(installation.client.clone(), namespace);
    let slices: Api<EndpointSlice> = Api::namespaced(installation.client.clone(), namespace);
    let of_service = ListParams::default().labels(&format!("kubernetes.io/service-name={service}"));
    let what = format!("Service {service} in namespace {namespace}");
    match services.get(service).await.map_err(|error| Unread::new(what, &error)) {
        Err(why) if why.is_absent() => return Answer::NoService,
        Err(why) => return Answer::Unknown(why),
        Ok(_) => {}
    }
    match installation::list(&slices, &of_service, "endpointslices").await {
        Err(why) => Answer::Unknown(why),
        Ok(slices) => {
            let mut endpoints = slices.iter().flat_map(|slice| &slice.endpoints);
            // What says nothing is ready, as Kubernetes has it.
            let ready = endpoints.any(|it| it.conditions.as_ref().and_then(|it| it.ready) != Some(false));
            if ready { Answer::Somebody } else { Answer::Nobody }
        }
    }
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
        answer: Answer::Somebody,
    })
}
