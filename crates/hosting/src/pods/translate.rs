//! From what a consumer wants to run to what runs here.
//!
//! Every field is named: it is passed on, forced to a value of ours, dropped, or reason to refuse the pod. The structs are
//! taken apart without a rest, so that a field that Kubernetes adds does not compile until somebody has decided about it,
//! and what this version does not know is never passed on.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{
    Affinity, Container, NodeAffinity, NodeSelector, NodeSelectorRequirement, NodeSelectorTerm,
    PodSecurityContext, PodSpec, ResourceRequirements, Toleration,
};
use liqo_api::sharing_policy::PodSecurity;
use liqo_core::Patterns;
use liqo_core::names::PoolName;

use super::containers::container;
use super::volumes::volume;
use super::{FORBIDDEN, INVALID, Refusal};

#[cfg(test)]
mod tests;

/// Taints of nodes that come and go by themselves: how long a pod bears them is for its owner to say.
pub(super) const BORNE: [&str; 2] = ["node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"];

/// The longest time that a pod is given to end: whoever lends wants back what was lent some day.
const MAX_GRACE_SECONDS: i64 = 3600;

/// The rules of this house for one consumer, from the policy that its contract comes from.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct HouseRules {
    pub(crate) level: PodSecurity,
    pub(crate) runtime_class: Option<String>,
    pub(crate) max_priority: i32,
    /// Annotations that pods keep besides the harmless ones.
    pub(crate) kept: Patterns,
    /// The custom kinds that namespaces may have, as their annotation says it; `None` if all.
    pub(crate) custom_kinds: Option<String>,
    /// The nodes that are shared; none means all.
    pub(crate) nodes: Vec<NodeSelectorRequirement>,
    /// The nodes of each pool, where they are lent by pools: one of the terms must hold.
    pub(crate) pools: BTreeMap<PoolName, Vec<NodeSelectorTerm>>,
}

/// What runs here, with this PriorityClass.
pub(crate) fn translate(
    spec: PodSpec,
    rules: &HouseRules,
    priority: Option<String>,
) -> Result<PodSpec, Refusal> {
    let PodSpec {
        active_deadline_seconds,
        // Speaks of nodes, and of what runs on them, of which a consumer knows nothing; but for those that it knows to be
        // dead, which are left out elsewhere.
        affinity: _,
        automount_service_account_token: _,
        containers,
        dns_config,
        dns_policy,
        enable_service_links,
        // Never part of a pod's creation; they come later.
        ephemeral_containers: _,
        host_aliases,
        host_ipc,
        host_network,
        host_pid,
        host_users,
        hostname,
        hostname_override,
        image_pull_secrets,
        init_containers,
        node_name,
        node_selector: _,
        os,
        // The runtime class says how much.
        overhead: _,
        preemption_policy: _,
        priority: _,
        priority_class_name: _,
        readiness_gates,
        resource_claims,
        resources,
        restart_policy,
        runtime_class_name: _,
        scheduler_name: _,
        // Nobody could open them here.
        scheduling_gates: _,
        security_context,
        // Accounts of this cluster are not the consumer's; the one that is left has no token.
        service_account: _,
        service_account_name: _,
        set_hostname_as_fqdn,
        share_process_namespace,
        subdomain,
        termination_grace_period_seconds,
        tolerations,
        topology_spread_constraints,
        volumes,
    } = spec;
    refuse_if(host_network == Some(true), "hostNetwork", "the network of the nodes is not shared")?;
    refuse_if(host_pid == Some(true), "hostPID", "the processes of the nodes are not shared")?;
    refuse_if(host_ipc == Some(true), "hostIPC", "the memory of the nodes is not shared")?;
    refuse_if(is_set(node_name.as_ref()), "nodeName", "on which node a pod runs is for the provider to say")?;
    if resource_claims.is_some_and(|claims| !claims.is_empty()) {
        return Err(Refusal::new(
            INVALID,
            "spec.resourceClaims: claims of devices are not offloaded; ask for an extended resource instead",
        ));
    }
    let says_all = resources.is_some();
    let all = |containers: Vec<Container>, field: &str| -> Result<Vec<Container>, Refusal> {
        containers.into_iter().map(|it| container(it, field, rules.level, says_all)).collect()
    };
    let containers = all(containers, "containers")?;
    let init_containers = init_containers.map(|it| all(it, "initContainers")).transpose()?;
    let requested = |key: &str| {
        let each = containers.iter().chain(init_containers.iter().flatten());
        each.filter_map(|it| it.resources.as_ref()).any(|it| asks_for(it, key))
    };
    let tolerations = tolerations.map(|it| borne(it, requested));
    let volumes = volumes.map(|it| it.into_iter().map(volume).collect::<Result<Vec<_>, _>>()).transpose()?;
    let grace = termination_grace_period_seconds.map(|seconds| seconds.min(MAX_GRACE_SECONDS));
    Ok(PodSpec {
        active_deadline_seconds,
        affinity: shared_nodes(&rules.nodes),
        automount_service_account_token: Some(false),
        dns_config,
        dns_policy,
        enable_service_links,
        ephemeral_containers: None,
        host_aliases,
        host_ipc: None,
        host_network: None,
        host_pid: None,
        // A user namespace of its own may be asked for, the node's may not.
        host_users: host_users.filter(|host| !host),
        hostname,
        hostname_override,
        image_pull_secrets,
        node_name: None,
        node_selector: None,
        os,
        overhead: None,
        preemption_policy: None,
        priority: None,
        priority_class_name: priority,
        readiness_gates,
        resource_claims: None,
        resources: resources.map(without_claims).transpose()?,
        restart_policy,
        runtime_class_name: rules.runtime_class.clone(),
        scheduler_name: None,
        scheduling_gates: None,
        security_context: security_context.map(pod_security).transpose()?,
        service_account: None,
        service_account_name: None,
        set_hostname_as_fqdn,
        share_process_namespace,
        subdomain,
        termination_grace_period_seconds: grace,
        tolerations,
        topology_spread_constraints,
        volumes,
        containers,
        init_containers,
    })
}

fn pod_security(it: PodSecurityContext) -> Result<PodSecurityContext, Refusal> {
    let PodSecurityContext {
        app_armor_profile,
        fs_group,
        fs_group_change_policy,
        run_as_group,
        run_as_non_root,
        run_as_user,
        se_linux_change_policy,
        se_linux_options,
        seccomp_profile,
        supplemental_groups,
        supplemental_groups_policy,
        // Which of them are harmless is for Pod Security to say.
        sysctls,
        windows_options,
    } = it;
    let host_process = windows_options.as_ref().and_then(|it| it.host_process) == Some(true);
    refuse_if(host_process, "securityContext.windowsOptions.hostProcess", "nodes are not shared")?;
    Ok(PodSecurityContext {
        app_armor_profile,
        fs_group,
        fs_group_change_policy,
        run_as_group,
        run_as_non_root,
        run_as_user,
        se_linux_change_policy,
        se_linux_options,
        seccomp_profile,
        supplemental_groups,
        supplemental_groups_policy,
        sysctls,
        windows_options,
    })
}

/// Sizes without claims of devices, which are refused.
pub(super) fn without_claims(it: ResourceRequirements) -> Result<ResourceRequirements, Refusal> {
    let ResourceRequirements { claims, limits, requests } = it;
    if claims.is_some_and(|claims| !claims.is_empty()) {
        return Err(Refusal::new(INVALID, "resources.claims: claims of devices are not offloaded"));
    }
    Ok(ResourceRequirements { claims: None, limits, requests })
}

fn asks_for(it: &ResourceRequirements, name: &str) -> bool {
    [&it.requests, &it.limits].into_iter().flatten().any(|amounts| amounts.contains_key(name))
}

/// The tolerations that are passed on: those of nodes that come and go, and those of nodes with what the pod asks for. By
/// others a consumer could get onto nodes that are kept for somebody.
fn borne(tolerations: Vec<Toleration>, requested: impl Fn(&str) -> bool) -> Vec<Toleration> {
    let fine = |it: &Toleration| {
        let key = it.key.as_deref().unwrap_or_default();
        BORNE.contains(&key) || key.contains('/') && !key.contains(".kubernetes.io/") && requested(key)
    };
    tolerations.into_iter().filter(fine).collect()
}

/// Pods run on the nodes that are shared, and on no others.
fn shared_nodes(nodes: &[NodeSelectorRequirement]) -> Option<Affinity> {
    if nodes.is_empty() {
        return None;
    }
    Some(on_nodes(vec![NodeSelectorTerm { match_expressions: Some(nodes.to_vec()), match_fields: None }]))
}

/// Has a pod run where one of the terms holds.
pub(super) fn on_nodes(node_selector_terms: Vec<NodeSelectorTerm>) -> Affinity {
    let required = NodeSelector { node_selector_terms };
    let node_affinity = NodeAffinity {
        required_during_scheduling_ignored_during_execution: Some(required),
        preferred_during_scheduling_ignored_during_execution: None,
    };
    Affinity { node_affinity: Some(node_affinity), ..Affinity::default() }
}

pub(super) fn is_set(text: Option<&String>) -> bool {
    text.is_some_and(|text| !text.is_empty())
}

pub(super) fn refuse_if(refused: bool, field: &str, why: &str) -> Result<(), Refusal> {
    if refused { Err(Refusal::new(FORBIDDEN, format!("spec.{field}: {why}"))) } else { Ok(()) }
}
