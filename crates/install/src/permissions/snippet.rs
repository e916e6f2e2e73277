//! What an administrator must apply so that somebody may install. Pure.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::Right;

/// Who is to get the rights.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Subject {
    /// A user.
    User(String),
    /// A service account: namespace and name.
    ServiceAccount(String, String),
}

impl Subject {
    /// From the name by which the API server knows them.
    pub(crate) fn of(username: &str) -> Self {
        let mut parts = username.strip_prefix("system:serviceaccount:").unwrap_or_default().split(':');
        match (parts.next(), parts.next()) {
            (Some(namespace), Some(name)) => Self::ServiceAccount(namespace.into(), name.into()),
            _ => Self::User(username.to_owned()),
        }
    }

    fn value(&self) -> Value {
        match self {
            Self::User(name) => json!({"kind": "User", "apiGroup": super::RBAC, "name": name}),
            Self::ServiceAccount(namespace, name) => {
                json!({"kind": "ServiceAccount", "namespace": namespace, "name": name})
            }
        }
    }
}

impl std::fmt::Display for Subject {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::User(name) => write!(f, "user {name}"),
            Self::ServiceAccount(namespace, name) => write!(f, "service account {namespace}/{name}"),
        }
    }
}

/// Roles with exactly the missing rights, bound to the one who misses them, as one YAML text.
pub(crate) fn snippet(missing: &[Right], subject: Option<&Subject>) -> String {
    const NAME: &str = "liqo-installer";
    let unknown = Subject::User("SOMEBODY".into());
    let subject = subject.unwrap_or(&unknown).value();
    let mut places: BTreeMap<Option<&str>, Vec<&Right>> = BTreeMap::new();
    for right in missing {
        places.entry(right.namespace.as_deref()).or_default().push(right);
    }
    let mut documents = Vec::new();
    for (namespace, rights) in places {
        let kind = if namespace.is_some() { "Role" } else { "ClusterRole" };
        let metadata = match namespace {
            Some(namespace) => json!({"name": NAME, "namespace": namespace}),
            None => json!({"name": NAME}),
        };
        let version = format!("{}/v1", super::RBAC);
        documents.push(
            json!({"apiVersion": version, "kind": kind, "metadata": metadata, "rules": rules(&rights)}),
        );
        documents.push(json!({
            "apiVersion": version, "kind": format!("{kind}Binding"), "metadata": metadata,
            "roleRef": {"apiGroup": super::RBAC, "kind": kind, "name": NAME},
            "subjects": [subject],
        }));
    }
    let texts = documents.iter().filter_map(|document| serde_saphyr::to_string(document).ok());
    texts.collect::<Vec<_>>().join("---\n")
}

/// One rule per group, name and set of verbs, so that people can read it.
fn rules(rights: &[&Right]) -> Vec<Value> {
    let mut verbs: BTreeMap<(&str, Option<&str>, &str), Vec<&str>> = BTreeMap::new();
    for right in rights {
        verbs.entry((&right.group, right.name.as_deref(), &right.resource)).or_default().push(&right.verb);
    }
    let mut resources = BTreeMap::<_, Vec<&str>>::new();
    for ((group, name, resource), mut verbs) in verbs {
        verbs.sort_unstable();
        verbs.dedup();
        resources.entry((group, name, verbs)).or_default().push(resource);
    }
    resources
        .into_iter()
        .map(|((group, name, verbs), resources)| {
            let mut rule = json!({"apiGroups": [group], "resources": resources, "verbs": verbs});
            if let Some(name) = name {
                rule["resourceNames"] = json!([name]);
            }
            rule
        })
        .collect()
}
