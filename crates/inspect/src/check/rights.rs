//! The rights that the manager of this version needs, as its chart has them.

use std::sync::LazyLock;

use k8s_openapi::api::rbac::v1::PolicyRule;
use liqo_chart::{Chart, ChartError, Release};
use serde_json::{Value, json};

use crate::installation::MANAGER;

/// The rules of the manager's two roles.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Rights {
    pub(crate) cluster: Vec<PolicyRule>,
    pub(crate) namespace: Vec<PolicyRule>,
}

/// Rendered once: rules depend neither on values nor on the namespace.
static WANTED: LazyLock<Result<Rights, ChartError>> = LazyLock::new(|| {
    let release = Release {
        name: "liqo".into(),
        namespace: "liqo".into(),
        service: "liqoctl".into(),
        is_upgrade: false,
        revision: 1,
        kubernetes_version: String::new(),
        api_versions: vec![],
    };
    let objects = Chart::embedded().render(&release, &json!({}))?;
    let rules = |kind: &str| -> Vec<PolicyRule> {
        let ours = |object: &&Value| object["kind"] == kind && object["metadata"]["name"] == MANAGER;
        let found = objects.iter().find(ours).map(|object| object["rules"].clone());
        found.and_then(|rules| serde_json::from_value(rules).ok()).unwrap_or_default()
    };
    Ok(Rights { cluster: rules("ClusterRole"), namespace: rules("Role") })
});

impl Rights {
    /// As this version's chart gives them.
    pub(crate) fn wanted() -> Result<&'static Self, &'static ChartError> {
        WANTED.as_ref()
    }
}

/// What is wanted and not given, in short.
pub(super) fn lacking(wanted: &[PolicyRule], given: &[PolicyRule]) -> Vec<String> {
    let mut lacking: Vec<String> = wanted
        .iter()
        .flat_map(single)
        .filter(|wanted| !given.iter().any(|rule| wanted.is_given_by(rule)))
        .map(|it| it.to_string())
        .collect();
    lacking.dedup();
    lacking
}

/// One thing that is allowed.
struct Single<'a> {
    group: &'a str,
    resource: &'a str,
    verb: &'a str,
    /// None means any object.
    name: Option<&'a str>,
}

fn single(rule: &PolicyRule) -> Vec<Single<'_>> {
    let groups = rule.api_groups.as_deref().unwrap_or_default();
    let resources = rule.resources.as_deref().unwrap_or_default();
    let names = rule.resource_names.as_deref().unwrap_or_default();
    let names: Vec<Option<&str>> =
        if names.is_empty() { vec![None] } else { names.iter().map(|name| Some(name.as_str())).collect() };
    let mut all = Vec::new();
    for group in groups {
        for resource in resources {
            for verb in &rule.verbs {
                all.extend(names.iter().map(|name| Single { group, resource, verb, name: *name }));
            }
        }
    }
    all
}

impl Single<'_> {
    fn is_given_by(&self, rule: &PolicyRule) -> bool {
        let has = |values: Option<&[String]>, wanted: &str| {
            values.unwrap_or_default().iter().any(|value| value == wanted || value == "*")
        };
        let names = rule.resource_names.as_deref().unwrap_or_default();
        has(rule.api_groups.as_deref(), self.group)
            && has(rule.resources.as_deref(), self.resource)
            && has(Some(&rule.verbs), self.verb)
            && (names.is_empty() || self.name.is_some_and(|wanted| names.iter().any(|name| name == wanted)))
    }
}

impl std::fmt::Display for Single<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let dot = if self.group.is_empty() { "" } else { "." };
        write!(f, "{} {}{dot}{}", self.verb, self.resource, self.group)
    }
}

#[cfg(test)]
mod tests;
