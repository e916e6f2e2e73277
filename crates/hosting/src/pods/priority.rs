//! Which PriorityClass a pod of a consumer gets: never one with more priority than the policy grants.

use k8s_openapi::api::scheduling::v1::PriorityClass;
use kube::ResourceExt;
use liqo_kit::Store;

use super::{FORBIDDEN, Refusal};

#[cfg(test)]
mod tests;

/// What matters of a PriorityClass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Priority {
    pub(crate) value: i32,
    /// Whether pods that name no class get this one.
    pub(crate) default: bool,
}

impl Priority {
    pub(crate) fn read(class: &PriorityClass) -> Option<Self> {
        // Those of Kubernetes' own pods are for nobody else, whatever the policy says.
        let system = class.name_any().starts_with("system-");
        (!system).then_some(Self { value: class.value, default: class.global_default == Some(true) })
    }
}

/// The class to name; none where that gives no more than is granted.
pub(crate) fn choose(
    asked: Option<&str>,
    most: i32,
    classes: &Store<Priority>,
) -> Result<Option<String>, Refusal> {
    let granted = || classes.iter().filter(|(_, class)| class.value <= most);
    if let Some(asked) = asked
        && let Some((key, _)) = granted().find(|(key, _)| key.name() == asked)
    {
        return Ok(Some(key.name().to_owned()));
    }
    let default = classes.iter().find(|(_, class)| class.default);
    if default.is_none_or(|(_, class)| class.value <= most) {
        return Ok(None);
    }
    // Naming no class would give more than is granted.
    match granted().max_by_key(|(_, class)| class.value) {
        Some((key, _)) => Ok(Some(key.name().to_owned())),
        None => Err(Refusal::new(
            FORBIDDEN,
            format!(
                "spec.priority: this cluster has no PriorityClass of at most {most}, which is what its policy grants"
            ),
        )),
    }
}
