//! What a node says of itself: how much there is, and how it is.

use jiff::Timestamp;
use k8s_openapi::api::core::v1::NodeCondition;
use liqo_core::{Format, Quantity, Resources};
use liqo_providers::{Health, Provider};
use serde_json::{Map, Value, json};

use super::{Part, Stand, View, What, meta, object};
use crate::node::Facts;

/// The version of Kubernetes whose kubelets this one stands in for.
const KUBERNETES: &str = "v1.34.0";
/// Why a node is not ready whose provider answers, though nothing behind it does.
const NODES_UNREACHABLE: &str = "ProviderNodesUnreachable";
/// The condition that matters most.
pub(crate) const READY: &str = "Ready";
/// How many pods a node takes whose contract does not limit them: more than any provider has. A node that says nothing gets
/// none from the scheduler.
const MANY_PODS: i64 = 1_000_000;
const PODS: &str = "pods";
const CPU: &str = "cpu";
const MEMORY: &str = "memory";

/// A condition as it should be, but for the times.
struct Wish {
    kind: &'static str,
    holds: bool,
    reason: &'static str,
    message: String,
}

/// The status still to be written.
pub(super) fn status(
    view: &View<'_>,
    name: &str,
    facts: &Facts,
    stand: &Stand<'_>,
    behind: &Health,
) -> Option<What> {
    // Of one that lends no more, what it lent stays shown until the node goes.
    let capacity = stand.lent.as_ref().map_or_else(|| facts.capacity.clone(), countable);
    let wishes = wishes(facts, stand, behind, &capacity);
    let addresses: Vec<_> =
        view.settings.address.into_iter().map(|it| ("InternalIP", it.to_string())).collect();
    let port = if addresses.is_empty() { 0 } else { view.settings.port };
    let version = format!("{KUBERNETES}-liqo-{}", view.settings.version);
    let architecture = meta::architecture(stand, facts);
    let is_so = wishes.iter().all(|wish| wish.is_met(facts))
        && (&capacity, &capacity) == (&facts.capacity, &facts.allocatable)
        && addresses.iter().all(|(kind, it)| facts.addresses.contains(&((*kind).to_owned(), it.clone())))
        && addresses.len() == facts.addresses.len()
        && port == facts.port
        && (version.as_str(), architecture.as_str()) == (&facts.version_shown, &facts.architecture);
    if is_so {
        return None;
    }
    let wished = wishes.iter().map(|wish| wish.condition(facts, view.now));
    // What is not said again would be taken back.
    let said = facts.condition(READY).filter(|_| wishes.iter().all(|wish| wish.kind != READY));
    let conditions: Vec<_> = said.map(|condition| json!(condition)).into_iter().chain(wished).collect();
    let addresses: Vec<_> =
        addresses.iter().map(|(kind, it)| json!({ "type": kind, "address": it })).collect();
    let amounts = amounts(&capacity);
    let status = json!({
        "capacity": amounts,
        "allocatable": amounts,
        "conditions": conditions,
        "addresses": addresses,
        "daemonEndpoints": { "kubeletEndpoint": { "Port": port } },
        "nodeInfo": {
            "kubeletVersion": version,
            "kubeProxyVersion": "",
            "operatingSystem": "linux",
            "architecture": architecture,
            "osImage": "Liqo",
            "containerRuntimeVersion": format!("liqo://{}", view.settings.version),
            "kernelVersion": "",
            "machineID": "",
            "systemUUID": "",
            "bootID": "",
        },
    });
    Some(What::Status(object(name, &facts.uid, &status)))
}

/// What a node may say: amounts that are not negative, and a number of pods.
fn countable(part: &Part<'_>) -> Resources {
    let mut resources = part.resources.clone().refuse_negative().resources;
    if resources.get(PODS).is_none()
        && let Ok(pods) = PODS.parse()
    {
        // Where the contract limits pods and the pool has none of them, it takes none.
        let limited = part.by.resources.get(PODS).is_some();
        let most = if limited { 0 } else { MANY_PODS };
        resources.insert(pods, Quantity::from_units(most, Format::DecimalSi));
    }
    resources
}

fn amounts(resources: &Resources) -> Map<String, Value> {
    resources.iter().map(|(name, amount)| (name.to_string(), json!(amount.to_string()))).collect()
}

fn wishes(facts: &Facts, stand: &Stand<'_>, behind: &Health, capacity: &Resources) -> Vec<Wish> {
    let missing = |what: &str| !capacity.amount(what).is_positive();
    let pressure = |kind, missing: bool| {
        let (reason, message) = if missing {
            ("NothingLent", "the contract has none of it")
        } else {
            (
                "KeptByProvider",
                "what the contract promises is the provider's to keep; its machines are not seen from here",
            )
        };
        Wish { kind, holds: missing, reason, message: message.to_owned() }
    };
    let network = Wish {
        kind: "NetworkUnavailable",
        holds: false,
        reason: "NotConnected",
        message: "pods there have the provider's network; this version connects none".to_owned(),
    };
    let ready = ready(facts, stand, behind, missing(CPU) || missing(MEMORY));
    let others = [
        pressure("MemoryPressure", missing(MEMORY)),
        pressure("DiskPressure", false),
        pressure("PIDPressure", missing(PODS)),
        network,
    ];
    ready.into_iter().chain(others).collect()
}

/// Whether pods can run there; nothing while nobody knows, and then it stays as it was.
fn ready(facts: &Facts, stand: &Stand<'_>, behind: &Health, nothing_lent: bool) -> Option<Wish> {
    let (holds, reason, message) = match stand.provider {
        Some(provider) => match (stand.lent, &provider.link, &provider.health) {
            (None, _, _) => return Some(over(stand)),
            (Some(_), Err(why), _) => (false, "NoIdentity", why.to_string()),
            (_, _, Health::Unknown) => return None,
            (_, _, Health::Unreachable { since, why }) => {
                let message = || {
                    format!("{} has not answered since {}: {why}", called(provider), since.strftime("%FT%TZ"))
                };
                return Some(unreachable(facts, "ProviderUnreachable", message));
            }
            (_, _, Health::Reachable) if stays_unreachable(facts, behind) => return None,
            (_, _, Health::Reachable) if nothing_lent => {
                (false, "NothingLent", "the contract has no CPU or no memory".to_owned())
            }
            (_, _, Health::Reachable) if behind.is_gone() => {
                return Some(unreachable(facts, NODES_UNREACHABLE, || nothing_left(provider, behind)));
            }
            (Some(part), _, Health::Reachable) => (
                true,
                "ProviderReachable",
                format!("{} answers, and {} is in force", called(provider), part.by.contract),
            ),
        },
        None => return Some(over(stand)),
    };
    Some(Wish { kind: READY, holds, reason, message })
}

fn over(stand: &Stand<'_>) -> Wish {
    let goes_on = stand.provider.is_some_and(|provider| provider.lent.is_some());
    let (reason, message) = match &stand.place.pool {
        Some(pool) if goes_on => ("PoolOver", format!("the contract in force has no pool {pool} any more")),
        None if goes_on => {
            ("PoolOver", "the contract in force is about pools, which have nodes of their own".to_owned())
        }
        _ => ("ContractOver", "no contract with this provider is in force".to_owned()),
    };
    Wish { kind: READY, holds: false, reason, message }
}

fn unreachable(facts: &Facts, reason: &'static str, message: impl FnOnce() -> String) -> Wish {
    // Who leads anew began to ask later than the one who said this first.
    let said =
        facts.condition(READY).filter(|it| it.status == "False" && it.reason.as_deref() == Some(reason));
    let message = said.and_then(|it| it.message.clone()).unwrap_or_else(message);
    Wish { kind: READY, holds: false, reason, message }
}

/// What is said where a provider answers and none of its nodes does.
fn nothing_left(provider: &Provider, behind: &Health) -> String {
    let (since, why) = match behind {
        Health::Unreachable { since, why } => (since.strftime("%FT%TZ").to_string(), &**why),
        Health::Unknown | Health::Reachable => (String::new(), ""),
    };
    format!("{} answers, but none of its nodes with our pods has since {since}: {why}", called(provider))
}

/// Whether it was said that nothing behind the node answers, and nobody has found out yet whether that is still so.
pub(super) fn stays_unreachable(facts: &Facts, behind: &Health) -> bool {
    let said = facts.condition(READY).and_then(|it| it.reason.as_deref());
    *behind == Health::Unknown && said == Some(NODES_UNREACHABLE)
}

fn called(provider: &Provider) -> &str {
    provider.name.as_ref().map_or_else(|| provider.id.as_str(), |name| name.as_str())
}

impl Wish {
    const fn word(&self) -> &'static str {
        if self.holds { "True" } else { "False" }
    }

    fn is_met(&self, facts: &Facts) -> bool {
        facts.condition(self.kind).is_some_and(|it| {
            it.status == self.word()
                && it.reason.as_deref() == Some(self.reason)
                && it.message.as_deref() == Some(self.message.as_str())
        })
    }

    fn condition(&self, facts: &Facts, now: Timestamp) -> Value {
        let before = facts.condition(self.kind).filter(|it| it.status == self.word());
        let since =
            before.and_then(|it: &NodeCondition| Some(it.last_transition_time.as_ref()?.0)).unwrap_or(now);
        json!({
            "type": self.kind,
            "status": self.word(),
            "reason": self.reason,
            "message": self.message,
            "lastTransitionTime": seconds(since),
            "lastHeartbeatTime": seconds(now),
        })
    }
}

/// Kubernetes keeps whole seconds.
fn seconds(time: Timestamp) -> String {
    time.strftime("%FT%TZ").to_string()
}
