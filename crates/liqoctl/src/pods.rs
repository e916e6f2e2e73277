//! `liqoctl pods`: the pods of offloaded namespaces, where they run, and why they do not.
//!
//! All of it is read in this cluster: reflection tells here what providers say, down to the node that a pod is on there.

mod view;

use std::collections::{BTreeMap, BTreeSet};
use std::process::ExitCode;

use anyhow::{Context as _, Result, bail};
use clap::Args;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::api::ListParams;
use kube::{Api, ResourceExt};
use liqo_api::namespace_offloading::PodOffloadingStrategy;
use liqo_api::{ForeignCluster, NamespaceMap, NamespaceOffloading, labels};

use crate::access::{Access, Connection};
use crate::offloading::see;
use crate::output::{self, Format};
use crate::peering::{id_of, known};
use view::{Lender, PodView, Surroundings};

/// Pods that are asked for at once.
const PAGE: u32 = 500;

pub(crate) const EXAMPLES: &str = "Examples:
  liqoctl pods -n shop                 # where each pod of the namespace runs, and why one does not
  liqoctl pods -A                      # of all offloaded namespaces
  liqoctl pods -A --peer milan         # only those that belong to milan
  liqoctl pods -n shop -o wide         # with restarts, addresses and virtual nodes
  liqoctl pods -A -o json | jq -r '.[] | select(.why) | [.namespace, .name, .why] | @tsv'

Nothing is asked of the providers: the node that a pod is on there, and what is wrong, is told here by the pod's own status.
Ends with 0 when it could look, also when pods do not run, and with 1 if there is no such namespace or cluster.";

/// What `-n` means for this command.
pub(crate) const NAMESPACE_HELP: &str = "The namespace of the pods [default: that of the context]";

/// Arguments of `pods`.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// The pods of all offloaded namespaces
    #[arg(short = 'A', long, conflicts_with = "namespace")]
    all_namespaces: bool,
    /// Only those that belong to this cluster: its name here, its ID, or its own name
    #[arg(long, value_name = "CLUSTER")]
    peer: Option<String>,
    /// Output format
    #[arg(short, long, value_enum)]
    output: Option<Format>,
}

impl Arguments {
    pub(crate) async fn run(self, access: &Access) -> Result<ExitCode> {
        let connection = access.connect().await?;
        let clusters = known::list(&connection).await?;
        let peer = match &self.peer {
            Some(name) => {
                let cluster = known::find(&clusters, name)?;
                let id = id_of(cluster).with_context(|| format!("the ID of {name} is not known yet"))?;
                Some(id.to_owned())
            }
            None => None,
        };
        let namespace = (!self.all_namespaces)
            .then(|| access.chosen_namespace().unwrap_or(&connection.config.default_namespace).to_owned());
        let world = World::read(&connection, &clusters, namespace.as_deref()).await?;
        if let Some(name) = namespace.filter(|_| world.around.strategies.is_empty()) {
            eprintln!(
                "namespace {name} is not offloaded. liqoctl pods -A shows those of all offloaded namespaces"
            );
        }
        let views = world.views(peer.as_deref());
        let with_namespace = self.all_namespaces;
        output::print(self.output, &views, |wide| {
            view::text(&views, with_namespace, wide, Timestamp::now())
        })?;
        Ok(ExitCode::SUCCESS)
    }
}

/// What is read: pods, and what is needed to say where they are.
struct World {
    pods: Vec<Pod>,
    around: Surroundings,
}

impl World {
    /// Reads one namespace, or all.
    async fn read(
        connection: &Connection,
        clusters: &[ForeignCluster],
        namespace: Option<&str>,
    ) -> Result<Self> {
        let strategies = strategies(connection, namespace).await?;
        let lenders = lenders(connection, clusters).await?;
        let around = Surroundings { strategies, lenders, namespaces: mappings(connection).await? };
        let pods = match namespace {
            Some(name) => {
                list(connection, &Api::namespaced(connection.client.clone(), name), &around).await?
            }
            None => list(connection, &Api::all(connection.client.clone()), &around).await?,
        };
        Ok(Self { pods, around })
    }

    fn views(&self, peer: Option<&str>) -> Vec<PodView> {
        let all = self.pods.iter().map(|pod| view::of(pod, &self.around));
        let mut views: Vec<_> = all.filter(|view| peer.is_none() || view.is_at(peer)).collect();
        views.sort_by(|a, b| (&a.namespace, &a.name).cmp(&(&b.namespace, &b.name)));
        views
    }
}

/// How the namespaces are offloaded: this one or all; those that are not are not in it.
async fn strategies(
    connection: &Connection,
    namespace: Option<&str>,
) -> Result<BTreeMap<String, PodOffloadingStrategy>> {
    let of = |it: &NamespaceOffloading| it.spec.pod_offloading_strategy;
    if let Some(name) = namespace {
        let Some((_, offloading)) = see(connection, name).await? else {
            bail!("there is no namespace {name} in {}", connection.target);
        };
        return Ok(offloading.iter().map(|it| (name.to_owned(), of(it))).collect());
    }
    let api: Api<NamespaceOffloading> = Api::all(connection.client.clone());
    let found = api.list(&ListParams::default()).await;
    let found = found
        .map_err(|error| connection.target.explain(&error))
        .context("cannot list the NamespaceOffloadings; is liqo installed?")?;
    Ok(found.items.iter().map(|it| (it.namespace().unwrap_or_default(), of(it))).collect())
}

/// The virtual nodes by name, with the cluster that each stands for.
async fn lenders(connection: &Connection, clusters: &[ForeignCluster]) -> Result<BTreeMap<String, Lender>> {
    let api: Api<Node> = Api::all(connection.client.clone());
    let virtual_nodes = format!("{}={}", labels::NODE_TYPE, labels::NODE_TYPE_VIRTUAL);
    let nodes = api.list(&ListParams::default().labels(&virtual_nodes)).await;
    let nodes =
        nodes.map_err(|error| connection.target.explain(&error)).context("cannot list the virtual nodes")?;
    let name_of = |id: &str| {
        let known = clusters.iter().find(|cluster| id_of(cluster) == Some(id));
        known.map_or_else(|| id.to_owned(), ResourceExt::name_any)
    };
    let lender = |node: &Node| {
        let id = node.labels().get(labels::REMOTE_CLUSTER_ID)?;
        Some((node.name_any(), Lender::read(node, id, name_of(id))))
    };
    Ok(nodes.items.iter().filter_map(lender).collect())
}

/// What namespaces are called at which cluster, by its ID and the name here.
async fn mappings(connection: &Connection) -> Result<BTreeMap<(String, String), String>> {
    let api: Api<NamespaceMap> = Api::all(connection.client.clone());
    let originals = format!("{}={}", labels::REPLICATION, labels::TRUE);
    let maps = api.list(&ListParams::default().labels(&originals)).await;
    let maps =
        maps.map_err(|error| connection.target.explain(&error)).context("cannot list the NamespaceMaps")?;
    let mut all = BTreeMap::new();
    for map in maps.items {
        let Some(id) = map.labels().get(labels::REMOTE_CLUSTER_ID).cloned() else { continue };
        let there = map.spec.desired_mapping.into_iter();
        all.extend(there.map(|(here, there)| ((id.clone(), here), there)));
    }
    Ok(all)
}

/// The pods of offloaded namespaces, and those on virtual nodes whatever their namespace is.
async fn list(connection: &Connection, api: &Api<Pod>, around: &Surroundings) -> Result<Vec<Pod>> {
    let offloaded: BTreeSet<&String> = around.strategies.keys().collect();
    let is_meant = |pod: &Pod| {
        let node = pod.spec.as_ref().and_then(|spec| spec.node_name.as_ref());
        let inside = pod.namespace().is_some_and(|namespace| offloaded.contains(&namespace));
        inside || node.is_some_and(|node| around.lenders.contains_key(node))
    };
    let (mut params, mut pods) = (ListParams::default().limit(PAGE), Vec::new());
    loop {
        let page = api.list(&params).await;
        let page = page.map_err(|error| connection.target.explain(&error)).context("cannot list the pods")?;
        pods.extend(page.items.into_iter().filter(is_meant));
        params.continue_token = page.metadata.continue_.filter(|token| !token.is_empty());
        if params.continue_token.is_none() {
            return Ok(pods);
        }
    }
}
