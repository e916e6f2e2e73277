//! `liqoctl offer`: what is offered, and a person's decision about it.

use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use clap::{Args, Subcommand};
use jiff::Timestamp;
use kube::api::{ListParams, Patch, PatchParams};
use kube::{Api, ResourceExt};
use liqo_api::foreign_cluster::PeeringEnabled;
use liqo_api::resource_offer::OfferPhase;
use liqo_api::{ForeignCluster, ResourceOffer, annotations};
use liqo_inspect::age;
use liqo_install::names::FIELD_MANAGER;
use serde_json::json;
use tokio::time::{Instant, sleep};

use crate::access::{Access, Connection};
use crate::add::{Waiting, Wish};
use crate::duration::parse_span;
use crate::output::{self, Format};
use crate::peering::paper::{OfferView, pool_names};
use crate::peering::{Papers, amounts, id_of, known, own, tenant_namespace, write};
use crate::progress::Progress;
use crate::table::Table;
use crate::{Door, OnCluster};

/// How often it is looked whether a decision was noticed.
const INTERVAL: Duration = Duration::from_millis(200);

/// Arguments of `offer`.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// List what is offered to this cluster, and what it offers
    #[command(after_help = EXAMPLES)]
    List(OnCluster<List>),
    /// Show what is offered to a cluster and by it: amounts, pools, prices, the largest pod that fits
    #[command(after_help = EXAMPLES)]
    Show(OnCluster<Show>),
    /// Accept what a cluster offers, also beyond this cluster's own limits
    #[command(after_help = EXAMPLES)]
    Accept(OnCluster<Accept>),
    /// Refuse what a cluster offers; another offer is looked at again
    #[command(after_help = EXAMPLES)]
    Refuse(OnCluster<Refuse>),
}

pub(crate) const EXAMPLES: &str = "Examples:
  liqoctl offer list
  liqoctl offer list -o wide           # the largest pod that fits, prices and the policy too
  liqoctl offer show milan             # with each pool of nodes that is offered apart
  liqoctl offer accept milan           # what milan offers now; waits until it is under contract
  liqoctl offer refuse milan

A decision is about the offer as it is now: one that changes is decided about anew.";

/// Arguments of `offer list`.
#[derive(Debug, Args)]
struct List {
    /// Output format
    #[arg(short, long, value_enum)]
    output: Option<Format>,
}

/// Arguments of `offer show`.
#[derive(Debug, Args)]
struct Show {
    /// The cluster: its name here, its ID, or its own name
    #[arg(value_name = "CLUSTER")]
    name: String,
    /// Output format
    #[arg(short, long, value_enum)]
    output: Option<Format>,
}

/// Arguments of `offer accept`.
#[derive(Debug, Args)]
struct Accept {
    /// The cluster that offers: its name here, its ID, or its own name
    #[arg(value_name = "CLUSTER")]
    name: String,
    #[command(flatten)]
    waiting: Waiting,
}

/// Arguments of `offer refuse`.
#[derive(Debug, Args)]
struct Refuse {
    /// The cluster that offers: its name here, its ID, or its own name
    #[arg(value_name = "CLUSTER")]
    name: String,
    /// How long to wait until it is noticed
    #[arg(long, value_name = "DURATION", default_value = "30s", value_parser = parse_span)]
    timeout: Duration,
}

impl Arguments {
    pub(crate) async fn run(self, door: &Door) -> Result<ExitCode> {
        match self.command {
            Command::List(it) => it.command.run(&door.open(it.flags)?).await,
            Command::Show(it) => it.command.run(&door.open(it.flags)?).await,
            Command::Accept(it) => it.command.run(&door.open(it.flags)?).await,
            Command::Refuse(it) => it.command.run(&door.open(it.flags)?).await,
        }
    }
}

impl List {
    async fn run(self, access: &Access) -> Result<ExitCode> {
        let connection = access.connect().await?;
        let me = own::require_identity(&connection).await?;
        let clusters = known::list(&connection).await?;
        let api: Api<ResourceOffer> = Api::all(connection.client.clone());
        let offers = api.list(&ListParams::default()).await;
        let offers =
            offers.map_err(|error| connection.target.explain(&error)).context("cannot list the offers")?;
        let views = views(&clusters, &offers.items, me.id.as_str());
        output::print(self.output, &views, |wide| table(&views, wide, Timestamp::now()))?;
        Ok(ExitCode::SUCCESS)
    }
}

impl Show {
    async fn run(self, access: &Access) -> Result<ExitCode> {
        let connection = access.connect().await?;
        let me = own::require_identity(&connection).await?;
        let all = known::list(&connection).await?;
        let cluster = known::find(&all, &self.name)?.clone();
        let papers = Papers::read(&connection.client, &cluster).await?;
        let views = views(std::slice::from_ref(&cluster), &papers.offers, me.id.as_str());
        if views.is_empty() {
            let name = cluster.name_any();
            bail!(
                "nothing is offered by {name} or to it now; liqoctl status peer {name} shows what is waited for"
            );
        }
        output::print(self.output, &views, |_| {
            views.iter().map(|view| text(view, Timestamp::now())).collect::<Vec<_>>().join("\n")
        })?;
        Ok(ExitCode::SUCCESS)
    }
}

/// One offer.
fn text(view: &OfferView, now: Timestamp) -> String {
    let title = if view.direction == "lend" { "Offered to" } else { "Offered by" };
    let mut lines = vec![
        (title, view.peer.clone()),
        ("Phase", view.phase.clone()),
        ("Resources", amounts(&view.resources)),
        ("Price", view.price()),
    ];
    if let Some(until) = view.valid_until {
        lines.push(("Valid", format!("until {until} ({})", left(until, now))));
    }
    if !view.largest_pod.is_empty() {
        lines.push(("Largest pod", amounts(&view.largest_pod)));
    }
    lines.extend(view.pools.iter().map(|pool| ("Pool", format!("{}: {}", pool.name, pool.sentence()))));
    lines.extend(view.policy.iter().map(|policy| ("Policy", policy.clone())));
    if !view.message.is_empty() {
        lines.push(("Message", view.message.clone()));
    }
    lines.into_iter().map(|(name, value)| format!("{:<14} {value}\n", format!("{name}:"))).collect()
}

/// All offers; those to this cluster first, as they may need somebody.
fn views(clusters: &[ForeignCluster], offers: &[ResourceOffer], me: &str) -> Vec<OfferView> {
    let peer = |offer: &ResourceOffer| {
        let namespace = offer.namespace().unwrap_or_default();
        let of = clusters.iter().find(|cluster| tenant_namespace(cluster) == Some(namespace.as_str()));
        of.map_or(namespace, ResourceExt::name_any)
    };
    let mut views: Vec<OfferView> =
        offers.iter().map(|offer| OfferView::of(offer, &peer(offer), offer.spec.cluster_id == me)).collect();
    views.sort_by_key(|view| (view.direction, view.peer.clone()));
    views
}

fn table(views: &[OfferView], wide: bool, now: Timestamp) -> String {
    let headings = [
        "PEER",
        "DIRECTION",
        "PHASE",
        "CPU",
        "MEMORY",
        "PODS",
        "PRICE",
        "VALID",
        "POOLS",
        "OTHERWISE",
        "LARGEST POD",
        "POLICY",
        "MESSAGE",
    ];
    let columns = if wide { headings.len() } else { 9 };
    let mut table = Table::of(&headings[..columns]);
    let none = || "-".to_owned();
    for view in views {
        let amount = |name: &str| view.resources.get(name).map_or_else(none, |it| it.0.clone());
        let mut rest = view.resources.clone();
        rest.retain(|name, _| !["cpu", "memory", "pods"].contains(&name.as_str()));
        let some = |list: &_| if std::collections::BTreeMap::is_empty(list) { none() } else { amounts(list) };
        let mut cells = vec![
            view.peer.clone(),
            view.direction.to_owned(),
            view.phase.clone(),
            amount("cpu"),
            amount("memory"),
            amount("pods"),
            view.price(),
            view.valid_until.map_or_else(none, |until| left(until, now)),
            pool_names(&view.pools),
            some(&rest),
            some(&view.largest_pod),
            view.policy.clone().unwrap_or_else(none),
            view.message.clone(),
        ];
        cells.truncate(columns);
        table.push(cells);
    }
    table.to_string()
}

/// How long something is still valid.
pub(crate) fn left(until: Timestamp, now: Timestamp) -> String {
    if until <= now { "over".to_owned() } else { age::text(until.duration_since(now)) }
}

/// The offer of a cluster, and the digest by which it is decided about.
async fn offer_of(connection: &Connection, name: &str) -> Result<(ForeignCluster, ResourceOffer, String)> {
    let all = known::list(connection).await?;
    let cluster = known::find(&all, name)?.clone();
    let papers = Papers::read(&connection.client, &cluster).await?;
    let offer = id_of(&cluster).and_then(|id| papers.offered_by(id));
    let name = cluster.name_any();
    let Some(offer) = offer.filter(|offer| offer.spec.withdrawal_timestamp.is_none()) else {
        bail!(
            "{name} offers nothing now. Ask it with liqoctl peer {name}; liqoctl status peer {name} shows what is waited for"
        );
    };
    let digest = liqo_peering::offer::digest(&offer.spec)
        .with_context(|| format!("the offer of {name} makes no sense, so that nobody can decide about it"))?;
    Ok((cluster, offer.clone(), digest.to_string()))
}

/// Writes a decision down; nothing is written if it is there.
async fn decide(connection: &Connection, offer: &ResourceOffer, decision: &str) -> Result<()> {
    if offer.annotations().get(annotations::DECISION).map(String::as_str) == Some(decision) {
        return Ok(());
    }
    let api: Api<ResourceOffer> =
        Api::namespaced(connection.client.clone(), &offer.namespace().unwrap_or_default());
    let how = PatchParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PatchParams::default() };
    // Another offer that took the name is not meant.
    let patch = json!({"metadata": {"uid": offer.uid(), "annotations": {annotations::DECISION: decision}}});
    let done = api.patch(&offer.name_any(), &how, &Patch::Merge(patch)).await;
    done.map_err(|error| connection.target.explain(&error)).context("cannot write the decision down")?;
    Ok(())
}

impl Accept {
    async fn run(self, access: &Access) -> Result<ExitCode> {
        let connection = access.connect().await?;
        let (cluster, offer, digest) = offer_of(&connection, &self.name).await?;
        let name = cluster.name_any();
        let mut progress = Progress::new(access.stderr());
        decide(&connection, &offer, &format!("accept {digest}")).await?;
        if cluster.spec.outgoing_peering_enabled != PeeringEnabled::Yes {
            write::outgoing(&connection, &name, PeeringEnabled::Yes).await?;
        }
        progress.done(&format!("accepted: {} of {name}", amounts(&offer.spec.resource_quota.hard)));
        let waiting = Waiting { decided: true, ..self.waiting };
        waiting.finish(&connection, &name, Wish::default(), progress).await
    }
}

impl Refuse {
    async fn run(self, access: &Access) -> Result<ExitCode> {
        let connection = access.connect().await?;
        let (cluster, offer, digest) = offer_of(&connection, &self.name).await?;
        let name = cluster.name_any();
        let mut progress = Progress::new(access.stderr());
        decide(&connection, &offer, &format!("refuse {digest}")).await?;
        let deadline = Instant::now() + self.timeout;
        loop {
            let Ok((_, now, _)) = offer_of(&connection, &name).await else { break };
            if now.status.as_ref().is_some_and(|status| status.phase == OfferPhase::Refused) {
                break;
            }
            if Instant::now() >= deadline {
                bail!(
                    "the decision is written down, but was not noticed yet. liqoctl status shows whether the manager runs"
                );
            }
            progress.busy("waiting until the decision is noticed");
            sleep(INTERVAL).await;
        }
        progress.done(&format!("refused: what {name} offers"));
        Ok(ExitCode::SUCCESS)
    }
}

#[cfg(test)]
mod tests;
