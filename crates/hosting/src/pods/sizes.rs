//! How large a pod is: what it takes of the contract, and what of it can be changed while it runs.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::Toleration;
use liqo_core::Resources;
use liqo_core::capacity::{InitContainer, PodRequests};
use liqo_kit::watch::Pairs;
use serde::{Deserialize, Deserializer};
use serde_json::{Value, json};

#[cfg(test)]
mod tests;

/// What Kubernetes can change of a container that runs.
const RESIZABLE: [&str; 2] = ["cpu", "memory"];
/// The restart policy of an init container that keeps running beside the others.
const SIDECAR: &str = "Always";

/// What of a pod's specification says how large it is, and what else is kept of it.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct SizedSpec {
    #[serde(deserialize_with = "or_none")]
    containers: Vec<SizedContainer>,
    #[serde(deserialize_with = "or_none")]
    init_containers: Vec<SizedContainer>,
    #[serde(deserialize_with = "or_none")]
    overhead: Amounts,
    #[serde(deserialize_with = "or_none")]
    resources: Sizes,
    #[serde(deserialize_with = "or_none")]
    pub(super) ephemeral_containers: Vec<Named>,
    #[serde(deserialize_with = "or_none")]
    pub(super) tolerations: Vec<Toleration>,
    pub(super) termination_grace_period_seconds: Option<i64>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct SizedContainer {
    #[serde(deserialize_with = "or_none")]
    name: Box<str>,
    #[serde(deserialize_with = "or_none")]
    resources: Sizes,
    restart_policy: Option<String>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Sizes {
    #[serde(deserialize_with = "or_none")]
    requests: Amounts,
    #[serde(deserialize_with = "or_none")]
    limits: Amounts,
}

/// Something of which the name matters.
#[derive(Deserialize)]
pub(super) struct Named {
    pub(super) name: Box<str>,
}

/// `null` is nothing, as it is when the pod is made: a consumer must not be able to hide by it how large a pod is.
fn or_none<'de, D: Deserializer<'de>, T: Default + Deserialize<'de>>(deserializer: D) -> Result<T, D::Error> {
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}

/// Amounts by resource, each a text or a number.
#[derive(Default, Deserialize)]
#[serde(transparent)]
struct Amounts(BTreeMap<String, Value>);

impl Amounts {
    fn texts(&self) -> impl Iterator<Item = (&String, String)> {
        let text = |value: &Value| match value {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        self.0.iter().map(move |(name, value)| (name, text(value)))
    }

    fn read(&self) -> Resources {
        // What cannot be read is refused by the API server when the pod is made.
        Resources::parse(self.texts()).resources.refuse_negative().resources
    }

    fn resizable(&self) -> Pairs {
        self.texts().filter(|(name, _)| RESIZABLE.contains(&name.as_str())).collect()
    }
}

impl Sizes {
    /// Who names a limit alone requests as much.
    fn read(&self) -> Resources {
        let mut requests = self.limits.read();
        requests.extend(self.requests.read());
        requests
    }
}

impl SizedSpec {
    /// What the pod takes of the contract.
    pub(super) fn requests(&self) -> Resources {
        let init =
            |it: &SizedContainer| InitContainer { requests: it.resources.read(), sidecar: it.is_sidecar() };
        let pod = PodRequests {
            containers: self.containers.iter().map(|it| it.resources.read()).collect(),
            init_containers: self.init_containers.iter().map(init).collect(),
            pod_level: self.resources.read(),
            overhead: self.overhead.read(),
        };
        let mut needed = pod.effective();
        needed.retain(|_, amount| !amount.is_zero());
        if let (Ok(pods), Ok(one)) = ("pods".parse(), "1".parse()) {
            needed.insert(pods, one);
        }
        needed
    }

    /// What of it can be changed while it runs.
    pub(super) fn running(&self) -> Running {
        let size = |it: &SizedContainer, init: bool| ContainerSize {
            name: it.name.clone(),
            init,
            requests: it.resources.requests.resizable(),
            limits: it.resources.limits.resizable(),
        };
        let sidecars = self.init_containers.iter().filter(|it| it.is_sidecar()).map(|it| size(it, true));
        let all = self.containers.iter().map(|it| size(it, false)).chain(sidecars);
        Running(all.collect())
    }
}

impl SizedContainer {
    fn is_sidecar(&self) -> bool {
        self.restart_policy.as_deref() == Some(SIDECAR)
    }
}

/// The sizes of the containers that keep running.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Running(Box<[ContainerSize]>);

#[derive(Clone, Debug, PartialEq)]
struct ContainerSize {
    name: Box<str>,
    init: bool,
    requests: Pairs,
    limits: Pairs,
}

impl Running {
    /// The patch that makes a pod of the size `actual` as large as this one; none if it is. What this one does not name is
    /// as the provider had it, who may have limits for those who name none.
    pub(crate) fn patch(&self, actual: &Self) -> Option<Value> {
        if self == actual {
            return None;
        }
        let (mut containers, mut init_containers) = (Vec::new(), Vec::new());
        for wanted in &self.0 {
            let found = actual.0.iter().find(|it| it.name == wanted.name && it.init == wanted.init);
            let Some(found) = found else { continue };
            if differs(&wanted.requests, &found.requests) || differs(&wanted.limits, &found.limits) {
                let resources =
                    json!({ "requests": object(&wanted.requests), "limits": object(&wanted.limits) });
                let list = if wanted.init { &mut init_containers } else { &mut containers };
                list.push(json!({ "name": wanted.name, "resources": resources }));
            }
        }
        let lists = [("containers", containers), ("initContainers", init_containers)];
        let named = lists.into_iter().filter(|(_, list)| !list.is_empty());
        let spec: serde_json::Map<String, Value> =
            named.map(|(name, list)| (name.to_owned(), Value::Array(list))).collect();
        (!spec.is_empty()).then(|| json!({ "spec": spec }))
    }
}

/// Whether an amount that is wanted is another one than there is.
fn differs(wanted: &Pairs, actual: &Pairs) -> bool {
    if wanted == actual {
        return false;
    }
    let read = |pairs: &Pairs| Resources::parse(pairs.iter()).resources;
    let actual = read(actual);
    read(wanted).iter().any(|(name, amount)| actual.get(name.as_str()) != Some(amount))
}

fn object(pairs: &Pairs) -> Value {
    Value::Object(pairs.iter().map(|(name, amount)| (name.to_owned(), json!(amount))).collect())
}
