//! The containers of a pod: what of each is passed on, and what is reason to refuse the pod.

use k8s_openapi::api::core::v1::{
    Container, ContainerPort, EphemeralContainer, Lifecycle, Probe, ResourceRequirements, SecurityContext,
};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use liqo_api::sharing_policy::PodSecurity;

use super::Refusal;
use super::translate::{HouseRules, is_set, refuse_if, without_claims};

/// What quotas make every container say. Zero is what a container means that does not say it.
const SAID: [&str; 2] = ["cpu", "memory"];

/// Probes and hooks are called by the kubelet, in the network of the node: of the pod itself, and of nobody else.
const CALLS_OTHERS: &str = "the nodes call the pod itself, and no other host";

/// What runs here of a container; `says_all` where the pod as a whole says how large it is.
pub(super) fn container(
    it: Container,
    field: &str,
    level: PodSecurity,
    says_all: bool,
) -> Result<Container, Refusal> {
    let Container {
        args,
        command,
        env,
        env_from,
        image,
        image_pull_policy,
        lifecycle,
        liveness_probe,
        name,
        ports,
        readiness_probe,
        resize_policy,
        resources,
        restart_policy,
        restart_policy_rules,
        security_context,
        startup_probe,
        stdin,
        stdin_once,
        termination_message_path,
        termination_message_policy,
        tty,
        volume_devices,
        volume_mounts,
        working_dir,
    } = it;
    let at = format!("{field}[{name}]");
    for (name, it) in [
        ("livenessProbe", &liveness_probe),
        ("readinessProbe", &readiness_probe),
        ("startupProbe", &startup_probe),
    ] {
        probe(it.as_ref(), &format!("{at}.{name}"))?;
    }
    hooks(lifecycle.as_ref(), &format!("{at}.lifecycle"))?;
    let ports =
        ports.map(|it| it.into_iter().map(|it| port(it, &at)).collect::<Result<_, _>>()).transpose()?;
    let resources = match (resources, says_all) {
        (Some(it), true) => Some(without_claims(it)?),
        (None, true) => None,
        (it, false) => Some(saying(without_claims(it.unwrap_or_default())?)),
    };
    Ok(Container {
        args,
        command,
        env,
        env_from,
        image,
        image_pull_policy,
        lifecycle,
        liveness_probe,
        ports,
        readiness_probe,
        resize_policy,
        resources,
        restart_policy,
        restart_policy_rules,
        security_context: security_context.map(|it| container_security(it, &at, level)).transpose()?,
        startup_probe,
        stdin,
        stdin_once,
        termination_message_path,
        termination_message_policy,
        tty,
        volume_devices,
        volume_mounts,
        working_dir,
        name,
    })
}

fn probe(it: Option<&Probe>, at: &str) -> Result<(), Refusal> {
    let Some(it) = it else { return Ok(()) };
    let http = it.http_get.as_ref().and_then(|call| call.host.as_ref());
    let tcp = it.tcp_socket.as_ref().and_then(|call| call.host.as_ref());
    refuse_if(is_set(http), &format!("{at}.httpGet.host"), CALLS_OTHERS)?;
    refuse_if(is_set(tcp), &format!("{at}.tcpSocket.host"), CALLS_OTHERS)
}

fn hooks(it: Option<&Lifecycle>, at: &str) -> Result<(), Refusal> {
    let Some(it) = it else { return Ok(()) };
    for (name, hook) in [("postStart", &it.post_start), ("preStop", &it.pre_stop)] {
        let http = hook.as_ref().and_then(|hook| hook.http_get.as_ref()?.host.as_ref());
        let tcp = hook.as_ref().and_then(|hook| hook.tcp_socket.as_ref()?.host.as_ref());
        refuse_if(is_set(http.or(tcp)), &format!("{at}.{name}"), CALLS_OTHERS)?;
    }
    Ok(())
}

/// What runs here of a container that is put into a pod that runs. It has neither ports nor probes nor sizes.
pub(super) fn ephemeral(it: EphemeralContainer, rules: &HouseRules) -> Result<EphemeralContainer, Refusal> {
    let EphemeralContainer {
        args,
        command,
        env,
        env_from,
        image,
        image_pull_policy,
        lifecycle: _,
        liveness_probe: _,
        name,
        ports,
        readiness_probe: _,
        resize_policy: _,
        resources: _,
        restart_policy: _,
        restart_policy_rules: _,
        security_context,
        startup_probe: _,
        stdin,
        stdin_once,
        target_container_name,
        termination_message_path,
        termination_message_policy,
        tty,
        volume_devices,
        volume_mounts,
        working_dir,
    } = it;
    let at = format!("ephemeralContainers[{name}]");
    let message = "a container that is put into a running pod has no ports";
    refuse_if(ports.is_some_and(|it| !it.is_empty()), &format!("{at}.ports"), message)?;
    let security_context = security_context.map(|it| container_security(it, &at, rules.level)).transpose()?;
    Ok(EphemeralContainer {
        args,
        command,
        env,
        env_from,
        image,
        image_pull_policy,
        name,
        security_context,
        stdin,
        stdin_once,
        target_container_name,
        termination_message_path,
        termination_message_policy,
        tty,
        volume_devices,
        volume_mounts,
        working_dir,
        ..EphemeralContainer::default()
    })
}

fn port(it: ContainerPort, at: &str) -> Result<ContainerPort, Refusal> {
    let ContainerPort { container_port, host_ip: _, host_port, name, protocol } = it;
    let message = "ports of the nodes are not shared; use a Service";
    refuse_if(host_port.is_some_and(|port| port != 0), &format!("{at}.ports.hostPort"), message)?;
    Ok(ContainerPort { container_port, host_ip: None, host_port: None, name, protocol })
}

/// What is not refused here is for the Pod Security level of the namespace to judge.
fn container_security(it: SecurityContext, at: &str, level: PodSecurity) -> Result<SecurityContext, Refusal> {
    let SecurityContext {
        allow_privilege_escalation,
        app_armor_profile,
        capabilities,
        privileged,
        proc_mount,
        read_only_root_filesystem,
        run_as_group,
        run_as_non_root,
        run_as_user,
        se_linux_options,
        seccomp_profile,
        windows_options,
    } = it;
    let host_process = windows_options.as_ref().and_then(|it| it.host_process) == Some(true);
    let field = |name: &str| format!("{at}.securityContext.{name}");
    refuse_if(host_process, &field("windowsOptions.hostProcess"), "nodes are not shared")?;
    let too_much = privileged == Some(true) && level != PodSecurity::Privileged;
    refuse_if(too_much, &field("privileged"), "the provider's policy does not allow privileged containers")?;
    Ok(SecurityContext {
        allow_privilege_escalation,
        app_armor_profile,
        capabilities,
        privileged,
        proc_mount,
        read_only_root_filesystem,
        run_as_group,
        run_as_non_root,
        run_as_user,
        se_linux_options,
        seccomp_profile,
        windows_options,
    })
}

/// The same, saying zero where it says nothing.
fn saying(mut it: ResourceRequirements) -> ResourceRequirements {
    for name in SAID {
        // Who names a limit alone requests as much.
        if !it.limits.as_ref().is_some_and(|limits| limits.contains_key(name)) {
            let requests = it.requests.get_or_insert_default();
            requests.entry(name.to_owned()).or_insert_with(|| Quantity("0".to_owned()));
        }
    }
    it
}
