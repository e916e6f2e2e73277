//! All that is known of one namespace, for people and for programs.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use anyhow::{Context as _, Result};
use k8s_openapi::api::core::v1::{Namespace, Node, Pod};
use kube::api::{ListParams, PartialObjectMeta};
use kube::{Api, ResourceExt};
use liqo_api::namespace_offloading::{
    ConditionStatus, NotReflected, PodOffloadingStrategy, ReflectedKind, RemoteNamespaceConditionType,
};
use liqo_api::{NamespaceMap, NamespaceOffloading, NamespaceOffloadingStatus, annotations, labels};
use serde::Serialize;

use super::follow::aspect;
use crate::access::Connection;
use crate::table::Table;

#[cfg(test)]
mod tests;

/// Pods that are asked for at once.
const PAGE: u32 = 500;
/// Pods that have not ended.
const NOT_OVER: &str = "status.phase!=Succeeded,status.phase!=Failed";

/// A namespace.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct NamespaceView {
    pub(crate) name: String,
    /// Whether it has a NamespaceOffloading.
    pub(crate) offloaded: bool,
    /// Whether a label on the namespace did that.
    pub(crate) by_label: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) pod_offloading_strategy: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) namespace_mapping_strategy: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) remote_namespace_name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) phase: Option<String>,
    pub(crate) clusters: Vec<ClusterView>,
    /// Custom resources that are copied there, or should be.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) reflected: Vec<ReflectedKind>,
    /// Pods that nobody told that they may run elsewhere: most were made before the namespace was offloaded.
    pub(crate) pods_before: usize,
    /// What there is to do before all is well.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) troubles: Vec<String>,
}

/// A cluster that the namespace extends to, or could.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ClusterView {
    pub(crate) name: String,
    pub(crate) selected: bool,
    /// Why it is, or is not.
    pub(crate) why: String,
    /// True, False or Unknown.
    pub(crate) ready: String,
    pub(crate) reason: String,
    pub(crate) message: String,
    /// Pods of the namespace that run there.
    pub(crate) pods: usize,
}

impl ClusterView {
    /// Whether something of the namespace is still there though it should not be.
    pub(crate) fn is_left(&self) -> bool {
        !self.selected && self.reason != "NotRequired"
    }

    fn is_failed(&self) -> bool {
        self.selected && self.ready == "False"
    }
}

/// Reads all of it.
pub(crate) async fn of(
    connection: &Connection,
    namespace: &Namespace,
    offloading: Option<&NamespaceOffloading>,
) -> Result<NamespaceView> {
    let name = namespace.name_any();
    let away = pods_away(connection, &name).await?;
    let strategy = offloading.map(|it| it.spec.pod_offloading_strategy).unwrap_or_default();
    let before = match (offloading, strategy) {
        (None, _) | (_, PodOffloadingStrategy::Local) => 0,
        (Some(_), _) => pods_before(connection, &name).await?,
    };
    Ok(view(&name, offloading, &away, before))
}

/// How many pods of a namespace run that were never told that they may run elsewhere.
async fn pods_before(connection: &Connection, namespace: &str) -> Result<usize> {
    let pods: Api<Pod> = Api::namespaced(connection.client.clone(), namespace);
    let unmarked = format!("{}!={}", labels::SHADOW_POD, labels::TRUE);
    let mut params = ListParams::default().labels(&unmarked).fields(NOT_OVER).limit(PAGE);
    let mut count = 0;
    loop {
        let page = pods.list_metadata(&params).await;
        let page = page.map_err(|error| connection.target.explain(&error)).context("cannot list the pods")?;
        let stays = |pod: &&PartialObjectMeta<Pod>| pod.metadata.deletion_timestamp.is_none();
        count += page.items.iter().filter(stays).count();
        params.continue_token = page.metadata.continue_.filter(|token| !token.is_empty());
        if params.continue_token.is_none() {
            return Ok(count);
        }
    }
}

/// Pods of a namespace by the unique name of the cluster that they run in.
pub(crate) async fn pods_away(connection: &Connection, namespace: &str) -> Result<BTreeMap<String, usize>> {
    let explain = |error: kube::Error| connection.target.explain(&error);
    let nodes: Api<Node> = Api::all(connection.client.clone());
    let virtual_nodes = format!("{}={}", labels::NODE_TYPE, labels::NODE_TYPE_VIRTUAL);
    let nodes = nodes.list_metadata(&ListParams::default().labels(&virtual_nodes)).await;
    let nodes = nodes.map_err(explain).context("cannot list the virtual nodes")?;
    let maps: Api<NamespaceMap> = Api::all(connection.client.clone());
    let originals = format!("{}={}", labels::REPLICATION, labels::TRUE);
    let maps = maps.list_metadata(&ListParams::default().labels(&originals)).await;
    let maps = maps.map_err(explain).context("cannot list the NamespaceMaps")?;
    let of = |cluster: &String| {
        let map = maps.items.iter().find(|map| map.labels().get(labels::REMOTE_CLUSTER_ID) == Some(cluster));
        map.map_or_else(|| cluster.clone(), ResourceExt::name_any)
    };
    let clusters: BTreeMap<_, _> = nodes
        .items
        .iter()
        .filter_map(|node| Some((node.name_any(), of(node.labels().get(labels::REMOTE_CLUSTER_ID)?))))
        .collect();
    let pods: Api<Pod> = Api::namespaced(connection.client.clone(), namespace);
    // Only those may be elsewhere.
    let marked = format!("{}={}", labels::SHADOW_POD, labels::TRUE);
    let mut params = ListParams::default().labels(&marked).limit(PAGE);
    let mut counts = BTreeMap::new();
    loop {
        let page = pods.list(&params).await.map_err(explain).context("cannot list the pods")?;
        for pod in &page.items {
            let node = pod.spec.as_ref().and_then(|spec| spec.node_name.as_ref());
            if let Some(cluster) = node.and_then(|node| clusters.get(node)) {
                *counts.entry(cluster.clone()).or_default() += 1;
            }
        }
        params.continue_token = page.metadata.continue_.filter(|token| !token.is_empty());
        if params.continue_token.is_none() {
            return Ok(counts);
        }
    }
}

/// The clusters that the status speaks of.
pub(crate) fn clusters(status: &NamespaceOffloadingStatus) -> Vec<ClusterView> {
    let mut all = Vec::new();
    for (name, conditions) in &status.remote_namespaces_conditions {
        let required = aspect(conditions, RemoteNamespaceConditionType::OffloadingRequired);
        let ready = aspect(conditions, RemoteNamespaceConditionType::Ready);
        all.push(ClusterView {
            name: name.clone(),
            selected: required.is_some_and(|it| it.status == ConditionStatus::True),
            why: required.map(|it| it.message.clone()).unwrap_or_default(),
            ready: ready.map_or_else(|| "Unknown".to_owned(), |it| format!("{:?}", it.status)),
            reason: ready.map(|it| it.reason.clone()).unwrap_or_default(),
            message: ready.map(|it| it.message.clone()).unwrap_or_default(),
            pods: 0,
        });
    }
    all.sort_by_key(|cluster| !cluster.selected);
    all
}

fn view(
    name: &str,
    offloading: Option<&NamespaceOffloading>,
    away: &BTreeMap<String, usize>,
    pods_before: usize,
) -> NamespaceView {
    let status = offloading.and_then(|it| it.status.clone()).unwrap_or_default();
    let mut clusters = clusters(&status);
    for cluster in &mut clusters {
        cluster.pods = away.get(&cluster.name).copied().unwrap_or_default();
    }
    let invalid = status.conditions.iter().filter(|it| it.type_ == "Valid" && it.status == "False");
    let mut troubles: Vec<_> = invalid.map(|it| it.message.clone()).collect();
    let failed = clusters.iter().filter(|cluster| cluster.is_failed());
    troubles.extend(failed.map(|cluster| format!("{}: {}", cluster.name, cluster.message)));
    let not_copied = status.reflected.iter().filter(|it| it.status == ConditionStatus::False);
    troubles.extend(not_copied.flat_map(not_reflected));
    let phase = status.offloading_phase;
    if offloading.is_some() && phase.is_none() {
        troubles.push("the manager has not looked at it yet; liqoctl check tells whether it runs".to_owned());
    }
    NamespaceView {
        name: name.to_owned(),
        offloaded: offloading.is_some(),
        by_label: offloading.is_some_and(|it| it.annotations().contains_key(annotations::CONTROLLED_BY)),
        pod_offloading_strategy: offloading.map(|it| format!("{:?}", it.spec.pod_offloading_strategy)),
        namespace_mapping_strategy: offloading.map(|it| format!("{:?}", it.spec.namespace_mapping_strategy)),
        remote_namespace_name: status.remote_namespace_name,
        phase: phase.map(|phase| format!("{phase:?}")),
        clusters,
        reflected: status.reflected,
        pods_before,
        troubles,
    }
}

/// The view for people.
pub(crate) fn text(view: &NamespaceView, wide: bool) -> String {
    let mut out = String::new();
    let name = &view.name;
    if !view.offloaded {
        // Writing to a text cannot fail.
        let _ = writeln!(
            out,
            "Namespace {name} is not offloaded. liqoctl offload namespace {name} extends it to other clusters"
        );
        return out;
    }
    let mut line = |what: &str, said: &str| {
        let _ = writeln!(out, "{what:<13}{said}");
    };
    line("Namespace", name);
    line("Phase", view.phase.as_deref().unwrap_or("not looked at yet"));
    line("Pods run", strategy(view.pod_offloading_strategy.as_deref()));
    line("Elsewhere", view.remote_namespace_name.as_deref().unwrap_or("-"));
    if view.pods_before > 0 {
        let pods = view.pods_before;
        line(
            "Stay here",
            &format!(
                "{pods} pods that were made before the namespace was offloaded, or want to be here. Pods are never moved by \
                 themselves: kubectl -n {name} rollout restart deployment makes those of Deployments anew"
            ),
        );
    }
    if view.by_label {
        line("Because of", &format!("the label {}", labels::OFFLOADING_ENABLED));
    }
    if view.clusters.is_empty() {
        line("Clusters", "none lends to this one");
        return out;
    }
    out.push('\n');
    let headings = ["CLUSTER", "SELECTED", "READY", "PODS", "REASON", "MESSAGE", "WHY"];
    let columns = if wide { headings.len() } else { headings.len() - 1 };
    let mut table = Table::of(&headings[..columns]);
    for cluster in &view.clusters {
        // Why a cluster was not chosen is what somebody wants to know of it.
        let message = if cluster.selected || cluster.is_left() { &cluster.message } else { &cluster.why };
        let selected = if cluster.selected { "yes" } else { "no" };
        let mut cells = vec![
            cluster.name.clone(),
            selected.to_owned(),
            cluster.ready.clone(),
            cluster.pods.to_string(),
            cluster.reason.clone(),
            message.clone(),
        ];
        if wide {
            cells.push(cluster.why.clone());
        }
        table.push(cells);
    }
    let _ = write!(out, "{table}");
    let _ = write!(out, "{}", reflected(&view.reflected));
    for trouble in &view.troubles {
        let _ = write!(out, "\n! {trouble}\n");
    }
    out
}

fn strategy(strategy: Option<&str>) -> &str {
    match strategy {
        Some("Local") => "only in this cluster",
        Some("Remote") => "only in other clusters",
        _ => "here and in other clusters",
    }
}

/// Why a kind is not copied, cluster by cluster where it is about some; nothing if its copies are being removed.
fn not_reflected(it: &ReflectedKind) -> Vec<String> {
    let name = it.name();
    if it.reason == "Withdrawing" {
        return Vec::new();
    }
    if it.failing.is_empty() {
        return vec![format!("{name} is not reflected: {}", it.message)];
    }
    let one = |(cluster, why): (&String, &NotReflected)| {
        format!("{name} is not reflected to {cluster}: {}", why.message)
    };
    it.failing.iter().map(one).collect()
}

/// The custom resources for people; empty where there are none.
fn reflected(kinds: &[ReflectedKind]) -> String {
    if kinds.is_empty() {
        return String::new();
    }
    let mut table = Table::new(["CUSTOM RESOURCES", "REFLECTED", "REASON", "MESSAGE"]);
    for it in kinds {
        table.row([it.name().to_string(), format!("{:?}", it.status), it.reason.clone(), it.message.clone()]);
    }
    format!("\n{table}")
}

/// Whether something is wrong.
pub(crate) fn is_well(view: &NamespaceView) -> bool {
    view.troubles.is_empty()
}
