//! What of a pod is sent to a provider, and what stays.

use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::api::core::v1::{
    Affinity, Container, EnvFromSource, EnvVar, EphemeralContainer, NodeAffinity, NodeSelector,
    NodeSelectorRequirement, NodeSelectorTerm, PodSpec, Toleration,
};
use kube::api::ObjectMeta;
use liqo_api::shadow_pod::{ShadowPod, ShadowPodSpec};
use liqo_api::{annotations, labels, names};
use serde::{Deserialize, Serialize};

use super::volumes;
use crate::route::{self, Route, config_map_name, digest};

#[cfg(test)]
mod tests;

/// Grows when the same pod is translated to something else than before, so that what older versions sent is renewed.
const TRANSLATION: u32 = 1;
/// How many nodes a pod is kept from; providers listen to no more.
const MOST_AVOIDED: usize = 32;
/// The service account of pods that name none.
pub(crate) const DEFAULT_ACCOUNT: &str = "default";

/// Why a pod is not sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Refusal {
    /// One word for programs.
    pub(crate) reason: &'static str,
    /// A sentence for people.
    pub(crate) message: String,
}

/// What of a pod is translated: its labels, annotations and specification.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub(crate) struct Draft {
    pub(crate) labels: BTreeMap<String, String>,
    pub(crate) annotations: BTreeMap<String, String>,
    pub(crate) spec: PodSpec,
    /// Whether it must never run twice.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) fenced: bool,
}

/// What a ShadowPod's annotation says if it was made from this draft for this route.
pub(crate) fn content(draft: &str, route: &Route<'_>) -> String {
    digest(&(TRANSLATION, draft, route.home, route.provider, route.namespace, route.storage_class))
}

/// The ShadowPod for a pod.
pub(crate) fn shadow_pod(
    name: &str,
    uid: &str,
    draft: Draft,
    source: &str,
    route: &Route<'_>,
) -> Result<ShadowPod, Refusal> {
    let mut notes = route::annotations(Some(&draft.annotations));
    notes.insert(annotations::POD_UID.to_owned(), uid.to_owned());
    notes.insert(annotations::CONTENT.to_owned(), content(source, route));
    let mut labels = route.labels(Some(&draft.labels));
    if draft.fenced {
        labels.insert(labels::FENCED.to_owned(), labels::TRUE.to_owned());
    }
    let metadata = ObjectMeta {
        name: Some(name.to_owned()),
        namespace: Some(route.remote.to_owned()),
        labels: Some(labels),
        annotations: Some(notes),
        ..ObjectMeta::default()
    };
    let pod = pod_spec(draft.spec, route)?;
    Ok(ShadowPod { metadata, spec: ShadowPodSpec { pod }, status: None })
}

/// The specification at the provider. Every field is named, so that a new one is decided about when it comes.
pub(crate) fn pod_spec(spec: PodSpec, route: &Route<'_>) -> Result<PodSpec, Refusal> {
    let PodSpec {
        active_deadline_seconds,
        // Where a pod runs was decided here by these; the nodes there are others.
        affinity: _,
        node_name: _,
        node_selector: _,
        scheduler_name: _,
        scheduling_gates: _,
        // Accounts there are not ours: tokens come as Secrets.
        automount_service_account_token: _,
        service_account,
        service_account_name,
        containers,
        dns_config,
        dns_policy,
        enable_service_links,
        ephemeral_containers,
        host_aliases,
        // What belongs to a node of the provider is never ours.
        host_ipc: _,
        host_network: _,
        host_pid: _,
        host_users,
        hostname,
        hostname_override,
        image_pull_secrets,
        init_containers,
        os,
        // Reckoned anew there, from the class there.
        overhead: _,
        preemption_policy: _,
        priority: _,
        priority_class_name,
        // What they wait for is told to the pod here, and judged here.
        readiness_gates: _,
        resource_claims,
        resources,
        restart_policy,
        runtime_class_name,
        security_context,
        set_hostname_as_fqdn,
        share_process_namespace,
        subdomain,
        termination_grace_period_seconds,
        tolerations,
        topology_spread_constraints,
        volumes,
    } = spec;
    if resource_claims.is_some_and(|claims| !claims.is_empty()) {
        return Err(Refusal {
            reason: "ResourceClaimsNotSupported",
            message: "the pod uses resource claims (spec.resourceClaims), which are about devices of this cluster's nodes: \
                      it cannot run at a provider. Ask for an extended resource that a provider lends, or keep the pod \
                      here with the strategy Local"
                .to_owned(),
        });
    }
    let account = service_account_name.or(service_account).filter(|name| !name.is_empty());
    let account = account.unwrap_or_else(|| DEFAULT_ACCOUNT.to_owned());
    let container = |it: Container| translate_container(it, route, &account);
    Ok(PodSpec {
        active_deadline_seconds,
        automount_service_account_token: Some(false),
        containers: containers.into_iter().map(container).collect(),
        dns_config,
        dns_policy,
        enable_service_links,
        ephemeral_containers: ephemeral_containers
            .map(|all| all.into_iter().map(|it| translate_ephemeral(it, route, &account)).collect()),
        host_aliases,
        host_users,
        hostname,
        hostname_override,
        image_pull_secrets,
        init_containers: init_containers.map(|all| all.into_iter().map(container).collect()),
        os,
        priority_class_name,
        resources,
        restart_policy,
        runtime_class_name,
        security_context,
        set_hostname_as_fqdn,
        share_process_namespace,
        subdomain,
        termination_grace_period_seconds,
        tolerations: tolerations.map(|all| all.into_iter().filter(is_not_ours).collect()),
        topology_spread_constraints,
        volumes: volumes
            .map(|all| all.into_iter().map(|it| volumes::translate(it, route, &account)).collect()),
        ..PodSpec::default()
    })
}

/// Keeps a pod from nodes that are gone: the provider's scheduler notices that later than we do. It is said when the pod is
/// sent, and is no reason to send it again.
pub(crate) fn away_from<'a>(nodes: impl Iterator<Item = &'a Arc<str>>) -> Option<Affinity> {
    // One name in each, as Kubernetes wants it.
    let one = |name: &Arc<str>| NodeSelectorRequirement {
        key: "metadata.name".to_owned(),
        operator: "NotIn".to_owned(),
        values: Some(vec![name.to_string()]),
    };
    let fields: Vec<_> = nodes.take(MOST_AVOIDED).map(one).collect();
    if fields.is_empty() {
        return None;
    }
    let term = NodeSelectorTerm { match_fields: Some(fields), match_expressions: None };
    let required = NodeSelector { node_selector_terms: vec![term] };
    let node_affinity = NodeAffinity {
        required_during_scheduling_ignored_during_execution: Some(required),
        preferred_during_scheduling_ignored_during_execution: None,
    };
    Some(Affinity { node_affinity: Some(node_affinity), ..Affinity::default() })
}

/// Whether a toleration is about anything else than virtual nodes: the provider's own are not for others' pods.
fn is_not_ours(toleration: &Toleration) -> bool {
    let key = toleration.key.as_deref();
    key != Some(names::VIRTUAL_NODE_TAINT) && key != Some(names::UNREACHABLE_TAINT)
}

fn translate_container(mut container: Container, route: &Route<'_>, account: &str) -> Container {
    translate_env(container.env.as_mut(), route, account);
    translate_env_from(container.env_from.as_mut(), route);
    container
}

fn translate_ephemeral(mut it: EphemeralContainer, route: &Route<'_>, account: &str) -> EphemeralContainer {
    translate_env(it.env.as_mut(), route, account);
    translate_env_from(it.env_from.as_mut(), route);
    it
}

/// What a container is told of itself is what is so at home.
fn translate_env(env: Option<&mut Vec<EnvVar>>, route: &Route<'_>, account: &str) {
    for variable in env.into_iter().flatten() {
        let Some(source) = &mut variable.value_from else { continue };
        let field = source.field_ref.as_ref().map(|field| field.field_path.as_str());
        let value = match field {
            Some("metadata.namespace") => Some(route.namespace),
            Some("spec.serviceAccountName") => Some(account),
            _ => None,
        };
        if let Some(value) = value {
            variable.value = Some(value.to_owned());
            variable.value_from = None;
        } else if let Some(map) = &mut source.config_map_key_ref {
            map.name = config_map_name(&map.name, route.home);
        }
    }
}

fn translate_env_from(env: Option<&mut Vec<EnvFromSource>>, route: &Route<'_>) {
    for map in env.into_iter().flatten().filter_map(|source| source.config_map_ref.as_mut()) {
        map.name = config_map_name(&map.name, route.home);
    }
}
