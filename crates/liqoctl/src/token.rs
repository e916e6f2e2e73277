//! `liqoctl token`: tokens by which other clusters come in the first time.

use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Result, bail};
use clap::{Args, Subcommand};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Namespace;
use kube::Api;
use kube::ResourceExt;
use kube::api::ListParams;
use liqo_api::names::ClusterId;
use liqo_api::{annotations, labels};
use liqo_authentication::tokens::{self, NewToken, Record};
use liqo_inspect::age;
use serde::Serialize;

use crate::access::{Access, Connection};
use crate::duration::parse_span;
use crate::output::{self, DataFormat, Format};
use crate::table::Table;
use crate::{Door, OnCluster};

/// How the cluster's own token is called in lists.
const OWN: &str = "own";

/// Arguments of `token`.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Make a token for one cluster; it is shown now and never again
    #[command(after_help = EXAMPLES)]
    Create(OnCluster<Create>),
    /// List the tokens, and who came by them; never the tokens themselves
    #[command(after_help = EXAMPLES)]
    List(OnCluster<List>),
    /// Revoke tokens: nobody comes by them, and whoever did is out within seconds
    #[command(after_help = EXAMPLES)]
    Revoke(OnCluster<Revoke>),
    /// Replace the token of generate-add-command; who came by the old one stays
    #[command(after_help = EXAMPLES)]
    RotateOwn(OnCluster<RotateOwn>),
}

pub(crate) const EXAMPLES: &str = "Examples:
  liqoctl token create                                  # for the first cluster that comes with it, within a day
  liqoctl token create --for-cluster 5d0f4c1e-… --expires 1h --note 'the cluster in Milan'
  liqoctl token list
  liqoctl token revoke 0a1b2c3d                         # whoever came by it is out within seconds
  liqoctl token rotate-own                              # another token for generate-add-command";

/// Arguments of `token create`.
#[derive(Debug, Args)]
struct Create {
    /// The ID of the only cluster that can use it [default: the first that comes]
    #[arg(long, value_name = "ID")]
    for_cluster: Option<ClusterId>,
    /// For how long a cluster can come in by it, like 1h or 7d, or never
    #[arg(long, value_name = "DURATION", default_value = "24h", value_parser = parse_lifetime)]
    expires: Lifetime,
    /// What it is for, shown in the list
    #[arg(long, value_name = "TEXT", default_value = "")]
    note: String,
    /// Output format
    #[arg(short, long, value_enum)]
    output: Option<DataFormat>,
}

/// How long; `None` is for ever.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Lifetime(Option<Duration>);

fn parse_lifetime(text: &str) -> Result<Lifetime, String> {
    if text == "never" {
        return Ok(Lifetime(None));
    }
    parse_span(text).map(|span| Lifetime(Some(span)))
}

/// Arguments of `token list`.
#[derive(Debug, Args)]
struct List {
    /// Output format
    #[arg(short, long, value_enum)]
    output: Option<Format>,
}

/// Arguments of `token revoke`.
#[derive(Debug, Args)]
struct Revoke {
    /// The tokens' IDs, as in the list
    #[arg(required = true, value_name = "ID")]
    ids: Vec<String>,
}

/// Arguments of `token rotate-own`.
#[derive(Debug, Args)]
struct RotateOwn {}

/// A token that was made.
#[derive(Debug, Serialize)]
struct Made<'a> {
    id: &'a str,
    token: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    expires: Option<Timestamp>,
}

/// A token in the list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
struct TokenView {
    id: String,
    state: String,
    /// The only cluster that may use it.
    #[serde(rename = "for", skip_serializing_if = "Option::is_none")]
    peer: Option<String>,
    /// Who came by it.
    used_by: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    used_at: Option<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    created: Option<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    expires: Option<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    revoked: Option<Timestamp>,
    #[serde(skip_serializing_if = "String::is_empty")]
    note: String,
}

impl Arguments {
    pub(crate) async fn run(self, door: &Door) -> Result<ExitCode> {
        match self.command {
            Command::Create(it) => it.command.run(&door.open(it.flags)?).await,
            Command::List(it) => it.command.run(&door.open(it.flags)?).await,
            Command::Revoke(it) => it.command.run(&door.open(it.flags)?).await,
            Command::RotateOwn(it) => it.command.run(&door.open(it.flags)?).await,
        }
    }
}

impl Create {
    async fn run(self, access: &Access) -> Result<ExitCode> {
        let connection = access.connect().await?;
        let wanted = NewToken { lifetime: self.expires.0, note: self.note, peer: self.for_cluster };
        let (record, token) = tokens::create(&connection.client, &connection.namespace, &wanted).await?;
        let made = Made { id: &record.id, token: token.reveal(), expires: record.expires };
        output::print(self.output.map(Into::into), &made, |_| format!("{}\n", token.reveal()))?;
        if self.output.is_none() {
            let until = record.expires.map_or_else(|| "for ever".to_owned(), |time| format!("until {time}"));
            let id = &record.id;
            eprintln!(
                "It can be used once, {until}, and is not shown again; liqoctl token revoke {id} makes it useless"
            );
        }
        Ok(ExitCode::SUCCESS)
    }
}

impl List {
    async fn run(self, access: &Access) -> Result<ExitCode> {
        let connection = access.connect().await?;
        let now = Timestamp::now();
        let records = tokens::list(&connection.client, &connection.namespace).await?;
        let own = match tokens::own(&connection.client, &connection.namespace).await {
            Ok(_) => Some(own_token(came_by_own(&connection).await?)),
            Err(tokens::TokenError::NoOwnToken { .. }) => None,
            Err(error) => return Err(error.into()),
        };
        let views: Vec<TokenView> = own.into_iter().chain(records.iter().map(|it| view(it, now))).collect();
        output::print(self.output, &views, |wide| table(&views, wide, now))?;
        Ok(ExitCode::SUCCESS)
    }
}

/// The IDs of those who came by the cluster's own token.
async fn came_by_own(connection: &Connection) -> Result<Vec<String>> {
    let api: Api<Namespace> = Api::all(connection.client.clone());
    let tenants = ListParams::default().labels(&format!("{}={}", labels::TENANT_NAMESPACE, labels::TRUE));
    let found = api.list_metadata(&tenants).await.map_err(|error| connection.target.explain(&error))?;
    let own = found
        .items
        .iter()
        .filter(|it| it.annotations().get(annotations::ADMITTED_BY).is_some_and(|by| by == OWN));
    let mut ids: Vec<String> = own.filter_map(|it| it.labels().get(labels::CLUSTER_ID).cloned()).collect();
    ids.sort();
    Ok(ids)
}

fn own_token(used_by: Vec<String>) -> TokenView {
    TokenView {
        id: OWN.to_owned(),
        state: if used_by.is_empty() { "Unused" } else { "Used" }.to_owned(),
        peer: None,
        used_by,
        used_at: None,
        created: None,
        expires: None,
        revoked: None,
        note: "of liqoctl generate-add-command, for any cluster".to_owned(),
    }
}

fn view(record: &Record, now: Timestamp) -> TokenView {
    TokenView {
        id: record.id.clone(),
        state: record.state(now).as_str().to_owned(),
        peer: record.peer.as_ref().map(ToString::to_string),
        used_by: record.used_by.iter().map(ToString::to_string).collect(),
        used_at: record.used_at,
        created: Some(record.created),
        expires: record.expires,
        revoked: record.revoked,
        note: record.note.clone(),
    }
}

fn table(views: &[TokenView], wide: bool, now: Timestamp) -> String {
    let headings = ["ID", "STATE", "FOR", "USED BY", "EXPIRES", "NOTE", "AGE", "USED", "REVOKED"];
    let columns = if wide { headings.len() } else { 6 };
    let mut table = Table::of(&headings[..columns]);
    let none = || "-".to_owned();
    let ago = |time: Option<Timestamp>| time.map_or_else(none, |time| age::text(now.duration_since(time)));
    for token in views {
        let mut cells = vec![
            token.id.clone(),
            token.state.clone(),
            token.peer.clone().unwrap_or_else(|| "any".to_owned()),
            if token.used_by.is_empty() { none() } else { token.used_by.join(",") },
            token.expires.map_or_else(|| "never".to_owned(), |time| expiry(time, now)),
            token.note.clone(),
            ago(token.created),
            ago(token.used_at),
            ago(token.revoked),
        ];
        cells.truncate(columns);
        table.push(cells);
    }
    table.to_string()
}

fn expiry(time: Timestamp, now: Timestamp) -> String {
    if time <= now {
        format!("{} ago", age::text(now.duration_since(time)))
    } else {
        format!("in {}", age::text(time.duration_since(now)))
    }
}

impl Revoke {
    async fn run(self, access: &Access) -> Result<ExitCode> {
        if self.ids.iter().any(|id| id == OWN) {
            bail!(
                "the cluster's own token is not revoked but replaced: liqoctl token rotate-own. Clusters that came by it \
                 stay; liqoctl remove cluster NAME puts one out"
            );
        }
        let connection = access.connect().await?;
        for id in &self.ids {
            let record = tokens::revoke(&connection.client, &connection.namespace, id).await?;
            let out =
                record.used_by.map(|peer| format!("; {peer} is out within seconds")).unwrap_or_default();
            eprintln!("{id} is revoked{out}");
        }
        Ok(ExitCode::SUCCESS)
    }
}

impl RotateOwn {
    async fn run(self, access: &Access) -> Result<ExitCode> {
        let connection = access.connect().await?;
        // Where liqo is not installed, a token would help nobody.
        crate::peering::own::require_identity(&connection).await?;
        tokens::rotate_own(&connection.client, &connection.namespace).await?;
        eprintln!("the old token lets nobody in any more; liqoctl generate-add-command prints the new one");
        Ok(ExitCode::SUCCESS)
    }
}

#[cfg(test)]
mod tests;
