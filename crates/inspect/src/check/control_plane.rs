//! The manager: there, available, led by one, of the right version.

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::coordination::v1::Lease;
use liqo_install::finding::Finding;

use super::{World, docs, not_looked_at, pods};
use crate::age;
use crate::facts::Facts;
use crate::installation::{MANAGER, Unread, pod_of};
use crate::version;

const AVAILABLE: &str = "the manager is available";
/// How long a Lease is valid if it does not say so; the manager's is always longer.
const DEFAULT_LEASE_SECONDS: i32 = 15;

/// Whether there is nothing to look at: neither a manager nor a namespace that could have had one.
pub(super) fn is_absent(facts: &Facts) -> bool {
    facts.manager.as_ref().is_err_and(Unread::is_absent)
}

pub(super) fn absent(facts: &Facts) -> Vec<Finding> {
    let namespace = &facts.namespace_name;
    let why = format!("there is no Deployment {MANAGER} in namespace {namespace}");
    let elsewhere: Vec<&String> = facts.elsewhere.iter().filter(|other| *other != namespace).collect();
    let hint = match elsewhere.as_slice() {
        [] => "Install it: liqoctl install".to_owned(),
        [other, ..] => format!("It is in namespace {other}: add -n {other}"),
    };
    vec![Finding::failed("liqo is installed", why).hint(hint).docs(docs::NOT_INSTALLED)]
}

pub(super) fn check(world: &World<'_>) -> Vec<Finding> {
    let facts = world.facts;
    let mut findings = match &facts.manager {
        Ok(manager) => vec![available(manager, AVAILABLE, &facts.namespace_name)],
        Err(why) => vec![not_looked_at(AVAILABLE, why)],
    };
    findings.extend(pods::check(world));
    findings.push(match &facts.lease {
        Ok(lease) => leader(lease, world.hello.now),
        Err(why) if why.is_absent() => {
            Finding::failed(LEADS, "no lease has been taken yet").hint(LEADER_HINT).docs(docs::LEADER)
        }
        Err(why) => not_looked_at(LEADS, why),
    });
    findings.extend(versions(world));
    findings
}

/// Whether a Deployment has the pods that it should have.
pub(super) fn available(deployment: &Deployment, name: &str, namespace: &str) -> Finding {
    let shown = deployment.metadata.name.as_deref().unwrap_or(MANAGER);
    let wanted = deployment.spec.as_ref().and_then(|spec| spec.replicas).unwrap_or(1);
    let status = deployment.status.clone().unwrap_or_default();
    let have = status.available_replicas.unwrap_or(0);
    if wanted == 0 {
        return Finding::failed(name, "it is scaled to 0 replicas")
            .hint(format!("kubectl -n {namespace} scale deployment {shown} --replicas=1"))
            .docs(docs::NOT_AVAILABLE);
    }
    let conditions = status.conditions.unwrap_or_default();
    let failing = conditions.iter().find(|it| {
        (it.type_ == "ReplicaFailure" && it.status == "True")
            || (it.type_ == "Progressing" && it.status == "False")
    });
    let why = format!("{have} of {wanted} replicas are available");
    let words = failing.map(|it| it.message.clone().unwrap_or_default()).filter(|text| !text.is_empty());
    if have < wanted {
        let why = words.map_or_else(|| why.clone(), |words| format!("{why}: {words}"));
        return Finding::failed(name, why)
            .hint("The lines below tell which pod, and why")
            .docs(docs::NOT_AVAILABLE);
    }
    match words {
        Some(words) => {
            Finding::warning(name, format!("{why}, but the last change does not get through: {words}"))
                .hint(format!("kubectl -n {namespace} rollout status deployment {shown}"))
                .docs(docs::NOT_AVAILABLE)
        }
        None => Finding::ok(name, why),
    }
}

const LEADS: &str = "one manager leads";
const LEADER_HINT: &str = "Look at what the managers say: liqoctl logs --all";

fn leader(lease: &Lease, now: Timestamp) -> Finding {
    let spec = lease.spec.clone().unwrap_or_default();
    let holder = spec.holder_identity.filter(|holder| !holder.is_empty());
    let holder = holder.as_deref().map(pod_of);
    let seconds = spec.lease_duration_seconds.unwrap_or(DEFAULT_LEASE_SECONDS);
    let failed = |why: String| Finding::failed(LEADS, why).hint(LEADER_HINT).docs(docs::LEADER);
    match (holder, spec.renew_time) {
        (None, _) => failed("the lease is free: the last leader gave it back, and nobody took it".into()),
        (Some(holder), None) => failed(format!("{holder} holds the lease, but never renewed it")),
        (Some(holder), Some(renewed)) => {
            let since = now.duration_since(renewed.0);
            if since > SignedDuration::from_secs(seconds.into()) {
                let ago = age::text(since);
                return failed(format!(
                    "{holder} held the lease and renewed it {ago} ago; it was good for {seconds} s"
                ));
            }
            Finding::ok(LEADS, holder)
        }
    }
}

fn versions(world: &World<'_>) -> Option<Finding> {
    const NAME: &str = "liqoctl and the manager have the same version";
    let manager = version::manager(&world.facts.config, &world.facts.manager)?;
    let installed = world.facts.manager.as_ref().ok().and_then(version::label);
    let client = world.client;
    Some(match installed {
        Some(installed) if installed != manager => Finding::warning(
            NAME,
            format!("{installed} is installed, but {manager} leads: an upgrade is under way, or stuck"),
        )
        .hint("See above whether the new pod starts")
        .docs(docs::VERSIONS),
        _ if manager == client => Finding::ok(NAME, manager),
        _ => Finding::warning(NAME, format!("liqoctl is {client}, the manager {manager}"))
            .hint(format!("Use liqoctl {manager}, or run liqoctl install to bring the cluster to {client}"))
            .docs(docs::VERSIONS),
    })
}
