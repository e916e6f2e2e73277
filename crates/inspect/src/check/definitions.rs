//! The kinds: there, accepted by the API server, and those of this version.

use std::sync::LazyLock;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use liqo_install::finding::Finding;
use serde_json::Value;

use super::{World, docs, not_looked_at};
use crate::version;

/// The definitions of this version.
pub(super) static WANTED: LazyLock<Vec<CustomResourceDefinition>> = LazyLock::new(liqo_api::crds);

pub(super) fn check(world: &World<'_>) -> Vec<Finding> {
    let name = "the API server serves all kinds";
    let found = match &world.facts.definitions {
        Ok(found) => found,
        Err(why) => return vec![not_looked_at(name, why)],
    };
    let wanted = WANTED.as_slice();
    let mut findings: Vec<Finding> =
        wanted.iter().filter_map(|wanted| served(wanted, of_name(found, wanted))).collect();
    if findings.is_empty() {
        findings.push(Finding::ok(name, format!("{} of {}", wanted.len(), wanted.len())));
    }
    findings.extend(schemas(world, wanted, found));
    findings
}

fn of_name<'a>(
    found: &'a [CustomResourceDefinition],
    wanted: &CustomResourceDefinition,
) -> Option<&'a CustomResourceDefinition> {
    found.iter().find(|found| found.metadata.name == wanted.metadata.name)
}

/// What is wrong with a kind, if anything.
fn served(wanted: &CustomResourceDefinition, found: Option<&CustomResourceDefinition>) -> Option<Finding> {
    let name = format!("kind {} is served", wanted.spec.names.kind);
    let install = "Run liqoctl install again: it puts the definitions in order";
    let Some(found) = found else {
        let crd = wanted.metadata.name.as_deref().unwrap_or_default();
        return Some(
            Finding::failed(name, format!("CustomResourceDefinition {crd} is not there"))
                .hint(install)
                .docs(docs::KINDS),
        );
    };
    if found.metadata.deletion_timestamp.is_some() {
        let hint = "Its objects are being deleted with it. When it is gone, run liqoctl install";
        return Some(Finding::failed(name, "its definition is being deleted").hint(hint).docs(docs::KINDS));
    }
    let conditions = found.status.iter().filter_map(|status| status.conditions.as_ref()).flatten();
    let bad: Vec<String> = conditions
        .clone()
        .filter(|it| matches!(it.type_.as_str(), "Established" | "NamesAccepted") && it.status != "True")
        .map(|it| format!("{} is {}: {}", it.type_, it.status, it.message.as_deref().unwrap_or_default()))
        .collect();
    let established = conditions.clone().any(|it| it.type_ == "Established" && it.status == "True");
    if established && bad.is_empty() {
        return None;
    }
    let why = if bad.is_empty() { "it is not established yet".to_owned() } else { bad.join("; ") };
    Some(Finding::failed(name, why).hint("Another definition may have taken its names").docs(docs::KINDS))
}

/// Definitions of another version are expected beside a manager of another version, and a mistake beside one of ours.
fn schemas(
    world: &World<'_>,
    wanted: &[CustomResourceDefinition],
    found: &[CustomResourceDefinition],
) -> Option<Finding> {
    let name = format!("the kinds are those of {}", world.client);
    let pairs = wanted.iter().filter_map(|wanted| Some((wanted, of_name(found, wanted)?)));
    let different: Vec<&str> = pairs
        .filter(|(wanted, found)| !is_same(wanted, found))
        .map(|(wanted, _)| wanted.spec.names.kind.as_str())
        .collect();
    if different.is_empty() {
        return (!found.is_empty()).then(|| Finding::ok(name, ""));
    }
    let why = format!("different: {}", different.join(", "));
    let manager = version::manager(&world.facts.config, &world.facts.manager);
    Some(match manager {
        Some(manager) if manager != world.client => {
            Finding::warning(name, format!("{why}; the manager is {manager}"))
                .hint(format!(
                    "Use liqoctl {manager}, or run liqoctl install to bring the cluster to {}",
                    world.client
                ))
                .docs(docs::VERSIONS)
        }
        _ => Finding::failed(name, why)
            .hint("Run liqoctl install again: it puts the definitions in order")
            .docs(docs::KINDS),
    })
}

fn is_same(wanted: &CustomResourceDefinition, found: &CustomResourceDefinition) -> bool {
    let schemas = |crd: &CustomResourceDefinition| {
        let versions = crd.spec.versions.iter();
        versions.map(|it| (it.name.clone(), it.schema.clone())).collect::<Vec<_>>()
    };
    let contained = match (serde_json::to_value(&wanted.spec), serde_json::to_value(&found.spec)) {
        (Ok(wanted), Ok(found)) => contains(&found, &wanted),
        _ => false,
    };
    contained && schemas(wanted) == schemas(found)
}

/// Whether all that is wanted is there; the API server adds defaults of its own.
fn contains(found: &Value, wanted: &Value) -> bool {
    match (found, wanted) {
        (Value::Object(found), Value::Object(wanted)) => {
            wanted.iter().all(|(key, wanted)| found.get(key).is_some_and(|found| contains(found, wanted)))
        }
        (Value::Array(found), Value::Array(wanted)) => {
            found.len() == wanted.len()
                && found.iter().zip(wanted).all(|(found, wanted)| contains(found, wanted))
        }
        (found, wanted) => found == wanted,
    }
}
