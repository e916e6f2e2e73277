//! Which containers' logs are meant.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::core::v1::Pod;

use super::{LogError, LogRequest, Remark};

/// A container of a pod.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Source {
    /// The pod.
    pub pod: String,
    /// Tells apart pods that had the same name one after the other.
    pub uid: String,
    /// The container.
    pub container: String,
}

/// The containers of the pods that were asked for; of several replicas those that lead.
pub(super) fn select(
    pods: &[Pod],
    leader: Option<&str>,
    request: &LogRequest,
    namespace: &str,
) -> Result<(Vec<Source>, Option<Remark>), LogError> {
    if pods.is_empty() {
        return Err(LogError::NoPods { namespace: namespace.to_owned() });
    }
    let wanted = request.component.as_deref();
    if let Some(pod) = pods.iter().find(|pod| wanted.is_some() && pod.metadata.name.as_deref() == wanted) {
        return Ok((containers(pod), None));
    }
    let mut by_component: BTreeMap<&str, Vec<&Pod>> = BTreeMap::new();
    for pod in pods {
        by_component.entry(component(pod)).or_default().push(pod);
    }
    if let Some(wanted) = wanted {
        let short = wanted.strip_prefix("liqo-").unwrap_or(wanted);
        by_component.retain(|component, _| *component == wanted || *component == short);
        if by_component.is_empty() {
            return Err(LogError::Unknown { wanted: wanted.to_owned(), known: known(pods) });
        }
    }
    let mut left_out = None;
    let mut sources = Vec::new();
    for mut replicas in by_component.into_values() {
        let leads = |pod: &&Pod| pod.metadata.name.as_deref() == leader;
        if !request.all && replicas.len() > 1 && replicas.iter().any(leads) {
            left_out = Some(Remark::StandbyLeftOut { replicas: replicas.len() });
            replicas.retain(leads);
        }
        sources.extend(replicas.into_iter().flat_map(containers));
    }
    sources.sort();
    Ok((sources, left_out))
}

fn component(pod: &Pod) -> &str {
    let labels = pod.metadata.labels.as_ref();
    labels
        .and_then(|labels| labels.get("app.kubernetes.io/component"))
        .map(String::as_str)
        .unwrap_or_default()
}

fn known(pods: &[Pod]) -> Vec<String> {
    let components: BTreeSet<&str> = pods.iter().map(component).filter(|name| !name.is_empty()).collect();
    let names = pods.iter().filter_map(|pod| pod.metadata.name.as_deref());
    components.into_iter().chain(names).map(str::to_owned).collect()
}

fn containers(pod: &Pod) -> Vec<Source> {
    let spec = pod.spec.iter().flat_map(|spec| &spec.containers);
    spec.map(|container| Source {
        pod: pod.metadata.name.clone().unwrap_or_default(),
        uid: pod.metadata.uid.clone().unwrap_or_default(),
        container: container.name.clone(),
    })
    .collect()
}
