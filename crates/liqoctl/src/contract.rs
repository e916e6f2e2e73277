//! `liqoctl contract`: what was agreed on, and whether it is what both signed.

mod keys;
mod log;
mod show;
mod verify;

use std::process::ExitCode;

use anyhow::{Context as _, Result, bail};
use clap::{Args, Subcommand};
use jiff::Timestamp;
use kube::api::ListParams;
use kube::{Api, ResourceExt};
use liqo_api::{Contract, ForeignCluster};

use crate::access::{Access, Connection};
use crate::output::{self, Format};
use crate::peering::paper::ContractView;
use crate::peering::{id_of, known, own};
use crate::{Door, OnCluster};

pub(crate) use verify::documents;

/// Contracts that a message names; more would hide the message.
const SHOWN: usize = 10;

/// Arguments of `contract`.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// List the contracts with other clusters, those in force first
    #[command(after_help = EXAMPLES)]
    List(OnCluster<List>),
    /// Show one contract: parties, amounts, price, times, and whether it is kept
    #[command(after_help = EXAMPLES)]
    Show(OnCluster<Show>),
    /// Check a contract with nothing but its file and the two public keys; needs no cluster
    #[command(after_help = verify::EXAMPLES)]
    Verify(Box<OnCluster<verify::Arguments>>),
}

pub(crate) const EXAMPLES: &str = "Examples:
  liqoctl contract list
  liqoctl contract list -o json | jq -r '.[0].name'
  liqoctl contract show c-0123456789abcdef0123
  liqoctl contract show c-0123456789abcdef0123 -o yaml > contract.yaml

  # Anybody who has the file and the public keys of both can check it
  liqoctl contract verify contract.yaml --provider-key provider.pem --consumer-key consumer.pem";

/// Arguments of `contract list`.
#[derive(Debug, Args)]
struct List {
    /// Output format
    #[arg(short, long, value_enum)]
    output: Option<Format>,
}

/// Arguments of `contract show`.
#[derive(Debug, Args)]
struct Show {
    /// The contract's name, as in the list
    name: String,
    /// Output format; json and yaml are the contract as it is kept, for contract verify
    #[arg(short, long, value_enum)]
    output: Option<Format>,
}

impl Arguments {
    pub(crate) async fn run(self, door: &Door) -> Result<ExitCode> {
        match self.command {
            Command::List(it) => it.command.run(&door.open(it.flags)?).await,
            Command::Show(it) => it.command.run(&door.open(it.flags)?).await,
            Command::Verify(it) => it.command.run(&door.open(it.flags)?).await,
        }
    }
}

impl List {
    async fn run(self, access: &Access) -> Result<ExitCode> {
        let connection = access.connect().await?;
        let me = own::require_identity(&connection).await?;
        let clusters = known::list(&connection).await?;
        let views = views(&clusters, &all(&connection).await?, me.id.as_str());
        output::print(self.output, &views, |wide| show::table(&views, wide, Timestamp::now()))?;
        Ok(ExitCode::SUCCESS)
    }
}

impl Show {
    async fn run(self, access: &Access) -> Result<ExitCode> {
        let connection = access.connect().await?;
        let me = own::require_identity(&connection).await?;
        let contract = get(&connection, &self.name).await?;
        let clusters = known::list(&connection).await?;
        let view = view(&clusters, &contract, me.id.as_str());
        output::print(self.output, &contract, |wide| show::text(&contract, &view, wide, access.stdout()))?;
        Ok(ExitCode::SUCCESS)
    }
}

/// All contracts of this cluster.
async fn all(connection: &Connection) -> Result<Vec<Contract>> {
    let api: Api<Contract> = Api::all(connection.client.clone());
    match api.list(&ListParams::default()).await {
        Ok(list) => Ok(list.items),
        Err(error) => Err(connection.target.explain(&error)).context("cannot list the contracts"),
    }
}

/// One contract, without what only the API server needs.
async fn get(connection: &Connection, name: &str) -> Result<Contract> {
    let all = all(connection).await?;
    let Some(found) = all.iter().find(|contract| contract.name_any() == name) else {
        let names: Vec<String> = all.iter().take(SHOWN).map(ResourceExt::name_any).collect();
        let known = if names.is_empty() {
            "There is none here".to_owned()
        } else {
            format!("There are: {}", names.join(", "))
        };
        bail!(
            "there is no contract {name:?}. {known}; what is over is removed after both sides know, its log stays"
        );
    };
    let mut contract = found.clone();
    contract.metadata.managed_fields = None;
    Ok(contract)
}

/// Those in force first, then the newest.
fn views(clusters: &[ForeignCluster], contracts: &[Contract], me: &str) -> Vec<ContractView> {
    let mut sorted: Vec<&Contract> = contracts.iter().collect();
    sorted.sort_by_key(|contract| {
        let in_force = contract.status.as_ref().is_some_and(|status| status.phase.is_in_force());
        let age = contract.creation_timestamp().map(|time| time.0);
        (std::cmp::Reverse((in_force, age)), contract.name_any())
    });
    sorted.into_iter().map(|contract| view(clusters, contract, me)).collect()
}

fn view(clusters: &[ForeignCluster], contract: &Contract, me: &str) -> ContractView {
    let spec = &contract.spec;
    let ours = spec.provider_id == me;
    let other = if ours { &spec.consumer_id } else { &spec.provider_id };
    let known = clusters.iter().find(|cluster| id_of(cluster) == Some(other));
    let peer = known.map_or_else(|| other.clone(), ResourceExt::name_any);
    ContractView::of(contract, &peer, ours)
}

#[cfg(test)]
pub(crate) mod tests;
