//! What the user may read, and what the manager's account may do.

use k8s_openapi::api::rbac::v1::{PolicyRule, RoleRef, Subject};
use liqo_install::finding::Finding;

use super::rights::{Rights, lacking};
use super::{World, docs, not_looked_at};
use crate::facts::{Facts, Read};
use crate::installation::{MANAGER, Unread};
use crate::version;

pub(super) fn check(world: &World<'_>) -> Vec<Finding> {
    vec![reading(world.facts), account(world)]
}

/// Everything but the Secret: who may only view a cluster may not read Secrets, and need not.
fn reading(facts: &Facts) -> Finding {
    const NAME: &str = "you may read everything that is looked at";
    let unread = [
        facts.namespace.as_ref().err(),
        facts.definitions.as_ref().err(),
        facts.manager.as_ref().err(),
        facts.pods.as_ref().err(),
        facts.events.as_ref().err(),
        facts.lease.as_ref().err(),
        facts.account.as_ref().err(),
        facts.cluster_role.as_ref().err(),
        facts.cluster_binding.as_ref().err(),
        facts.role.as_ref().err(),
        facts.binding.as_ref().err(),
        facts.identity.as_ref().err(),
        facts.network.as_ref().err(),
        facts.config.as_ref().err(),
        facts.policies.as_ref().err(),
        facts.flow_schemas.as_ref().err(),
        facts.webhooks.as_ref().err(),
        facts.peers.as_ref().err(),
    ];
    let mut refused: Vec<String> = unread
        .into_iter()
        .flatten()
        .filter_map(|why| match why {
            Unread::Forbidden { reason, .. } => Some(rule(reason)),
            _ => None,
        })
        .collect();
    refused.dedup();
    match refused.as_slice() {
        [] => Finding::ok(NAME, ""),
        refused => Finding::failed(NAME, format!("missing: {}", refused.join(", ")))
            .hint("Ask an administrator for these rights, or use another --context")
            .docs(docs::PERMISSIONS),
    }
}

/// The missing rule in short, from the API server's `… cannot list resource "pods" in API group "" in the namespace "x"`.
fn rule(reason: &str) -> String {
    let words = || {
        let (_, rest) = reason.split_once(" cannot ")?;
        let (verb, rest) = rest.split_once(" resource \"")?;
        let (resource, rest) = rest.split_once("\" in API group \"")?;
        let (group, rest) = rest.split_once('"')?;
        let dot = if group.is_empty() { "" } else { "." };
        let place = rest.split_once("namespace \"").and_then(|(_, rest)| rest.split_once('"'));
        let place = place.map(|(namespace, _)| format!(" in namespace {namespace}")).unwrap_or_default();
        Some(format!("{verb} {resource}{dot}{group}{place}"))
    };
    words().unwrap_or_else(|| reason.to_owned())
}

fn account(world: &World<'_>) -> Finding {
    let facts = world.facts;
    const NAME: &str = "the manager's account has its rights";
    let mut wrong = Vec::new();
    let mut unread = None;
    let mut look = |problem: Result<Option<String>, &Unread>| match problem {
        Ok(problem) => wrong.extend(problem),
        Err(why) if why.is_absent() => wrong.push(why.to_string()),
        Err(why) => unread = Some(why.clone()),
    };
    look(present(&facts.account));
    let wanted = wanted(world);
    look(facts.cluster_role.as_ref().map(|it| short_of("ClusterRole", &wanted.cluster, it.rules.as_deref())));
    look(facts.role.as_ref().map(|it| short_of("Role", &wanted.namespace, it.rules.as_deref())));
    let namespace = &facts.namespace_name;
    look(facts.cluster_binding.as_ref().map(|it| {
        unbound("ClusterRoleBinding", "ClusterRole", &it.role_ref, it.subjects.as_deref(), namespace)
    }));
    look(
        facts
            .binding
            .as_ref()
            .map(|it| unbound("RoleBinding", "Role", &it.role_ref, it.subjects.as_deref(), namespace)),
    );
    match (wrong.as_slice(), unread) {
        ([], None) => Finding::ok(NAME, ""),
        ([], Some(why)) => not_looked_at(NAME, &why),
        (wrong, _) => Finding::failed(NAME, wrong.join("; "))
            .hint("Run liqoctl install again: it puts back what is missing")
            .docs(docs::MANAGER_RIGHTS),
    }
}

/// What a manager of this version needs. Nothing is known about other versions, which are told of elsewhere.
fn wanted(world: &World<'_>) -> Rights {
    let manager = version::manager(&world.facts.config, &world.facts.manager);
    if manager.as_deref() != Some(world.client) {
        return Rights::default();
    }
    match Rights::wanted() {
        Ok(rights) => rights.clone(),
        Err(error) => {
            tracing::warn!(%error, "the manager's rights are not compared");
            Rights::default()
        }
    }
}

fn short_of(role: &str, wanted: &[PolicyRule], given: Option<&[PolicyRule]>) -> Option<String> {
    let lacking = lacking(wanted, given.unwrap_or_default());
    (!lacking.is_empty()).then(|| format!("{role} {MANAGER} lacks: {}", lacking.join(", ")))
}

fn present<T>(read: &Read<T>) -> Result<Option<String>, &Unread> {
    read.as_ref().map(|_| None)
}

/// Why a binding does not give the role to the manager's account, if so.
fn unbound(
    binding: &str,
    role_kind: &str,
    role: &RoleRef,
    subjects: Option<&[Subject]>,
    namespace: &str,
) -> Option<String> {
    if role.kind != role_kind || role.name != MANAGER {
        return Some(format!("{binding} {MANAGER} gives {} {} instead", role.kind, role.name));
    }
    let account = |subject: &Subject| {
        subject.kind == "ServiceAccount"
            && subject.name == MANAGER
            && subject.namespace.as_deref() == Some(namespace)
    };
    let bound = subjects.unwrap_or_default().iter().any(account);
    (!bound).then(|| {
        format!("{binding} {MANAGER} does not name ServiceAccount {MANAGER} of namespace {namespace}")
    })
}
