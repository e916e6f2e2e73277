//! Planned changes for tests.

use kube::api::{ApiResource, GroupVersionKind};
use serde_json::{Value, json};

use super::{Action, Planned};
use crate::kinds::Kind;
use crate::objects::{Id, Owner};

/// A planned change of an object that is named like this.
pub(crate) fn planned(
    api_version: &str,
    kind: &str,
    namespace: Option<&str>,
    name: &str,
    action: Action,
) -> Planned {
    let (group, version) = api_version.rsplit_once('/').unwrap_or(("", api_version));
    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind));
    let id = Id {
        api_version: api_version.into(),
        kind: kind.into(),
        namespace: namespace.map(str::to_owned),
        name: name.into(),
    };
    let owner = (action != Action::Create).then_some(Owner::Ours);
    let wanted = (action != Action::Remove).then(|| json!({"metadata": {"name": name}}));
    Planned {
        id,
        action,
        differences: vec![],
        object: wanted.clone(),
        unasked: None,
        wanted,
        kind: Kind { resource, namespaced: namespace.is_some() },
        owner,
        terminating: false,
    }
}

/// A role that would be made, with these rules.
pub(crate) fn role(kind: &str, namespace: Option<&str>, rules: &Value) -> Planned {
    let mut role = planned("rbac.authorization.k8s.io/v1", kind, namespace, "manager", Action::Create);
    role.wanted = Some(json!({"rules": rules.clone()}));
    role
}
