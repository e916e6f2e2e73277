//! The values that the chart is rendered with, and where each came from.
//!
//! ```text
//!  chart's defaults < what was found < what was given before < files < flags < --set
//! ```
//! Only what people gave is kept for the next time; what was found is found again.

mod idle;

use std::collections::BTreeMap;
use std::net::IpAddr;

use ipnet::IpNet;
use liqo_chart::values as chart_values;
use serde_json::{Value, json};

use crate::detect::{Detected, Distribution, Found};
use crate::error::InstallError;

/// How much is offered to peers when liqoctl installs; the chart's own default is more careful.
pub const SHARING_PERCENTAGE: u8 = 90;

const NAME: &str = "discovery.config.clusterName";
const ID: &str = "discovery.config.clusterIDOverride";
const LABELS: &str = "discovery.config.clusterLabels";
const API_SERVER: &str = "apiServer.address";
const PODS: &str = "networkManager.config.podCIDR";
const SERVICES: &str = "networkManager.config.serviceCIDR";
const RESERVED: &str = "networkManager.config.reservedSubnets";
const SHARING: &str = "controllerManager.config.resourceSharingPercentage";
const PORT: &str = "gateway.config.listeningPort";
const AUTH_TYPE: &str = "auth.service.type";
const AUTH_NODE_PORT: &str = "auth.service.nodePort";
const DISCOVERY: &str = "discovery.config.enableDiscovery";
const ADVERTISEMENT: &str = "discovery.config.enableAdvertisement";
const LAN_PORTS: [&str; 2] = ["discovery.metricsPort", "discovery.probesPort"];

/// What the user gave with flags that stand for values.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Given {
    /// `--cluster-name`.
    pub cluster_name: Option<String>,
    /// `--generate-name`.
    pub generate_name: bool,
    /// `--cluster-id`.
    pub cluster_id: Option<String>,
    /// `--cluster-labels`.
    pub cluster_labels: BTreeMap<String, String>,
    /// `--api-server-url`.
    pub api_server_url: Option<String>,
    /// `--pod-cidr`.
    pub pod_cidr: Option<String>,
    /// `--service-cidr`.
    pub service_cidr: Option<String>,
    /// `--reserved-subnets`.
    pub reserved_subnets: Option<Vec<String>>,
    /// `--resource-sharing-percentage`.
    pub sharing_percentage: Option<u8>,
    /// `--enable-ha`.
    pub enable_ha: Option<bool>,
    /// `--enable-lan-discovery`.
    pub lan_discovery: Option<bool>,
    /// `--broker`.
    pub broker: Option<bool>,
    /// `--mtu`.
    pub mtu: Option<u32>,
    /// `--vpn-listening-port`.
    pub listening_port: Option<u16>,
    /// What the cluster is called by its provider, from `--eks-cluster-name` and the like; only a fact.
    pub provider_name: Option<Found<String>>,
    /// Where it is, from `--region` and the like; only a fact.
    pub region: Option<Found<String>>,
}

/// One `--set` or `--set-string`, in the order of the command line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Set {
    /// `--set a.b=1`: numbers and truth values are what they look like.
    Typed(String),
    /// `--set-string a.b=1`: everything is text.
    Text(String),
}

/// Everything that values are made of.
#[derive(Debug)]
pub(crate) struct Sources<'a> {
    pub(crate) detected: &'a Detected,
    pub(crate) distribution: Option<Distribution>,
    /// The name of an identity that exists.
    pub(crate) identity_name: Option<&'a str>,
    pub(crate) stored: Option<&'a Value>,
    /// Values files: where they came from, and what they say.
    pub(crate) files: &'a [(String, Value)],
    pub(crate) given: &'a Given,
    pub(crate) sets: &'a [Set],
}

/// The values of one installation.
#[derive(Debug, Clone, PartialEq)]
pub struct Values {
    /// Everything that differs from the chart's defaults.
    pub overrides: Value,
    /// What people gave, now and before: kept for the next time.
    pub user: Value,
    /// What was found or given, for the user to read: label, value, where from.
    pub report: Vec<(&'static str, Found<String>)>,
    /// Things to know that stop nothing.
    pub notes: Vec<String>,
}

/// Lays the sources on top of each other.
pub(crate) fn assemble(sources: &Sources<'_>) -> Result<Values, InstallError> {
    let mut notes = Vec::new();
    let mut user = sources.stored.cloned().unwrap_or_else(|| json!({}));
    let stored = user.clone();
    for (file, values) in sources.files {
        if !values.is_object() {
            return Err(InstallError::Values(format!(
                "{file} is not a values file: expected a map of values at its top"
            )));
        }
        chart_values::merge(&mut user, values);
    }
    flags(&mut user, sources.given);
    for set in sources.sets {
        let done = match set {
            Set::Typed(text) => chart_values::set(&mut user, text).map_err(|error| (text, error)),
            Set::Text(text) => chart_values::set_string(&mut user, text).map_err(|error| (text, error)),
        };
        done.map_err(|(text, error)| InstallError::Values(format!("--set {text}: {error}")))?;
    }
    let name = cluster_name(sources, &user, &mut notes);
    if let Some(found) = name.as_ref().filter(|found| found.source == GENERATED) {
        put(&mut user, NAME, json!(found.value));
    }
    let mut overrides = found(sources, name.as_ref());
    chart_values::merge(&mut overrides, &user);
    notes.extend(idle::notes(&user));
    let report = report(sources, &stored, &user, name);
    Ok(Values { overrides, user, report, notes })
}

const GENERATED: &str = "liqoctl, which made it up";

/// What the cluster is called if nobody says so: as it is called already.
fn cluster_name(sources: &Sources<'_>, user: &Value, notes: &mut Vec<String>) -> Option<Found<String>> {
    if text(user, NAME).is_some() {
        return None;
    }
    let found = sources
        .identity_name
        .map(|name| Found::new(name, "the identity that the cluster has"))
        .or_else(|| sources.given.generate_name.then(generated))
        .or_else(|| sources.given.provider_name.clone())
        .or_else(|| sources.detected.cluster_name.clone())
        .unwrap_or_else(generated);
    if found.source == GENERATED && !sources.given.generate_name {
        notes.push(format!(
            "the cluster is called {} to its peers, as nothing tells its name; choose another with --cluster-name",
            found.value
        ));
    }
    Some(found)
}

fn generated() -> Found<String> {
    Found::new(crate::detect::generated_name(), GENERATED)
}

/// What liqoctl finds out, below everything that people say.
fn found(sources: &Sources<'_>, name: Option<&Found<String>>) -> Value {
    let mut values = json!({});
    put(&mut values, SHARING, json!(SHARING_PERCENTAGE));
    let facts = [
        (API_SERVER, sources.detected.api_server.as_ref()),
        (PODS, sources.detected.pod_cidr.as_ref()),
        (SERVICES, sources.detected.service_cidr.as_ref()),
        (NAME, name),
    ];
    for (path, fact) in facts {
        if let Some(fact) = fact {
            put(&mut values, path, json!(fact.value));
        }
    }
    let mut labels = serde_json::Map::new();
    if let Some(distribution) = sources.distribution {
        labels.insert(liqo_api::labels::PROVIDER.to_owned(), json!(distribution.name()));
    }
    if let Some(region) = sources.given.region.as_ref().or(sources.detected.region.as_ref()) {
        labels.insert(liqo_api::labels::REGION.to_owned(), json!(region.value));
    }
    put(&mut values, LABELS, Value::Object(labels));
    if sources.distribution.is_some_and(has_no_balancer) {
        put(&mut values, AUTH_TYPE, json!("NodePort"));
    }
    if sources.distribution == Some(Distribution::Openshift) {
        put(&mut values, "openshiftConfig.enable", json!(true));
    }
    values
}

/// Where a LoadBalancer Service would wait for ever, or as in k3s for the port that its ingress has.
fn has_no_balancer(distribution: Distribution) -> bool {
    matches!(distribution, Distribution::Kind | Distribution::K3s | Distribution::Sandbox)
}

/// What the flags say.
fn flags(values: &mut Value, given: &Given) {
    let texts = [
        (NAME, &given.cluster_name),
        (ID, &given.cluster_id),
        (API_SERVER, &given.api_server_url),
        (PODS, &given.pod_cidr),
        (SERVICES, &given.service_cidr),
    ];
    let texts = texts.into_iter().filter_map(|(path, text)| Some((path, json!(text.as_ref()?))));
    let others = [
        (RESERVED, given.reserved_subnets.as_ref().map(|list| json!(list))),
        (SHARING, given.sharing_percentage.map(|number| json!(number))),
        ("enableHA", given.enable_ha.map(|yes| json!(yes))),
        (DISCOVERY, given.lan_discovery.map(|yes| json!(yes))),
        (ADVERTISEMENT, given.lan_discovery.map(|yes| json!(yes))),
        ("controllerManager.config.brokerMode", given.broker.map(|yes| json!(yes))),
        ("networkConfig.mtu", given.mtu.map(|number| json!(number))),
        (PORT, given.listening_port.map(|number| json!(number))),
    ];
    let others = others.into_iter().filter_map(|(path, value)| Some((path, value?)));
    for (path, value) in texts.chain(others).collect::<Vec<_>>() {
        put(values, path, value);
    }
    for (key, value) in &given.cluster_labels {
        put_at(values, LABELS.split('.').chain([key.as_str()]), json!(value));
    }
}

fn report(
    sources: &Sources<'_>,
    stored: &Value,
    user: &Value,
    name: Option<Found<String>>,
) -> Vec<(&'static str, Found<String>)> {
    let detected = sources.detected;
    let facts = [
        ("cluster name", NAME, name),
        ("API server for peers", API_SERVER, detected.api_server.clone()),
        ("pod CIDR", PODS, detected.pod_cidr.clone()),
        ("service CIDR", SERVICES, detected.service_cidr.clone()),
    ];
    let one = |(label, path, found): (&'static str, &str, Option<Found<String>>)| {
        let given = text(user, path).map(|value| {
            let before = text(stored, path).as_ref() == Some(&value);
            Found::new(value, if before { "what was given before" } else { "what was given" })
        });
        let generated = found.as_ref().filter(|found| found.source == GENERATED).cloned();
        Some((label, generated.or(given).or(found)?))
    };
    let mut report: Vec<_> = facts.into_iter().filter_map(one).collect();
    let mut before = Vec::new();
    paths(stored, "", &mut before);
    if !before.is_empty() {
        let source = "the last installation; --reset-values forgets them";
        report.push(("values from before", Found::new(before.join(", "), source)));
    }
    report
}

/// The places of all values, without the values: they may be secrets.
fn paths(values: &Value, path: &str, found: &mut Vec<String>) {
    match values {
        Value::Object(map) if !map.is_empty() => {
            for (key, value) in map {
                paths(value, &if path.is_empty() { key.clone() } else { format!("{path}.{key}") }, found);
            }
        }
        _ if path.is_empty() => {}
        _ => found.push(path.to_owned()),
    }
}

/// A text at a path of dots; `None` if there is none or it is empty.
pub(crate) fn text(values: &Value, path: &str) -> Option<String> {
    let value = path.split('.').try_fold(values, |value, key| value.get(key))?;
    value.as_str().filter(|text| !text.is_empty()).map(str::to_owned)
}

fn put(values: &mut Value, path: &str, value: Value) {
    put_at(values, path.split('.'), value);
}

fn put_at<'a>(values: &mut Value, path: impl Iterator<Item = &'a str>, value: Value) {
    let mut place = values;
    for key in path {
        if !place.is_object() {
            *place = json!({});
        }
        let Value::Object(map) = place else { return };
        place = map.entry(key).or_insert(Value::Null);
    }
    *place = value;
}

/// What the checks look at, out of all values with their defaults.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Settings {
    pub(crate) cluster_name: Option<String>,
    pub(crate) cluster_id: Option<String>,
    pub(crate) api_server: Option<String>,
    pub(crate) pod_cidr: Option<String>,
    pub(crate) service_cidr: Option<String>,
    pub(crate) reserved_subnets: Vec<String>,
    pub(crate) listening_port: Option<u16>,
    /// The authentication service's port on the nodes, if somebody chose it.
    pub(crate) auth_node_port: Option<u16>,
    /// Ports of nodes that what finds clusters in the local network has, if it runs.
    pub(crate) lan_ports: Vec<u16>,
}

impl Settings {
    pub(crate) fn of(values: &Value) -> Self {
        let at = |path: &str| path.split('.').try_fold(values, |value, key| value.get(key));
        let port = |path: &str| at(path).and_then(Value::as_u64).and_then(|port| u16::try_from(port).ok());
        let lan = [DISCOVERY, ADVERTISEMENT].into_iter().any(|path| at(path) == Some(&json!(true)));
        Self {
            cluster_name: text(values, NAME),
            cluster_id: text(values, ID),
            api_server: text(values, API_SERVER),
            pod_cidr: text(values, PODS),
            service_cidr: text(values, SERVICES),
            reserved_subnets: at(RESERVED)
                .and_then(Value::as_array)
                .into_iter()
                .flatten()
                .filter_map(|one| one.as_str().map(str::to_owned))
                .collect(),
            listening_port: port(PORT),
            auth_node_port: port(AUTH_NODE_PORT).filter(|port| *port > 0),
            lan_ports: LAN_PORTS.into_iter().filter(|_| lan).filter_map(port).collect(),
        }
    }
}

/// A network as it should be written: with the host bits zero.
pub(crate) fn network(text: &str) -> Result<IpNet, String> {
    let net: IpNet = text.trim().parse().map_err(|_| {
        let address = text.trim().parse::<IpAddr>().is_ok();
        let more =
            if address { "the length of its prefix is missing" } else { "write it like 10.244.0.0/16" };
        format!("{text:?} is no network: {more}")
    })?;
    if net.trunc() == net {
        return Ok(net);
    }
    Err(format!("{text:?} is an address in a network; the network itself is {}", net.trunc()))
}

#[cfg(test)]
mod tests;
