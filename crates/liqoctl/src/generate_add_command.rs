//! `liqoctl generate-add-command`: what to run at another cluster so that it borrows from this one.

use std::process::ExitCode;
use std::time::Duration;

use anyhow::Result;
use clap::Args;
use liqo_api::names::ClusterId;
use liqo_authentication::tokens::{self, NewToken};
use serde::Serialize;

use crate::access::Access;
use crate::duration::parse_span;
use crate::output::{self, DataFormat};
use crate::peering::own::{self, Own};
use crate::progress::Progress;

/// Arguments of `generate-add-command`.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Print the command and nothing else
    #[arg(long, conflicts_with = "output")]
    only_command: bool,
    /// With a token for one cluster that can be used for this long, instead of this cluster's own
    #[arg(long, value_name = "DURATION", value_parser = parse_span)]
    expires: Option<Duration>,
    /// With a token that only the cluster with this ID can use
    #[arg(long, value_name = "ID")]
    for_cluster: Option<ClusterId>,
    /// How long to wait until other clusters can call this one
    #[arg(long, value_name = "DURATION", default_value = "30s", value_parser = parse_span)]
    timeout: Duration,
    /// Output format
    #[arg(short, long, value_enum)]
    output: Option<DataFormat>,
}

pub(crate) const EXAMPLES: &str = "Examples:
  liqoctl generate-add-command                       # run what it prints where the other cluster's kubeconfig is
  liqoctl generate-add-command --only-command --context provider
  liqoctl generate-add-command --expires 24h         # with a token that one cluster can use, within a day
  liqoctl generate-add-command -o json | jq -r .fingerprint

The command holds a token: whoever has it can ask this cluster for resources. liqoctl token revoke and liqoctl token
rotate-own make it useless.";

/// What is printed.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Printed<'a> {
    command: &'a str,
    cluster_name: &'a str,
    #[serde(rename = "clusterID")]
    cluster_id: &'a str,
    #[serde(rename = "authURL")]
    auth_url: &'a str,
    fingerprint: String,
    token: &'a str,
}

impl Arguments {
    pub(crate) async fn run(self, access: &Access) -> Result<ExitCode> {
        let connection = access.connect().await?;
        let mut progress = Progress::new(access.stderr());
        let (own, note) = own::wait(&connection, self.timeout, &mut progress).await?;
        if let Some(note) = note {
            progress.warn(&note);
        }
        drop(progress);
        let (client, namespace) = (&connection.client, connection.namespace.as_str());
        let token = if self.expires.is_some() || self.for_cluster.is_some() {
            let wanted = NewToken {
                lifetime: self.expires,
                note: "liqoctl generate-add-command".to_owned(),
                peer: self.for_cluster.clone(),
            };
            tokens::create(client, namespace, &wanted).await?.1
        } else {
            tokens::own(client, namespace).await?
        };
        let command = command(&own, token.reveal());
        let printed = Printed {
            command: &command,
            cluster_name: own.identity.name.as_str(),
            cluster_id: own.identity.id.as_str(),
            auth_url: &own.auth_url,
            fingerprint: own.fingerprint.to_string(),
            token: token.reveal(),
        };
        if self.output.is_none() && !self.only_command {
            eprintln!(
                "Run this where the kubeconfig of the cluster is that borrows from {}:\n",
                own.identity.name
            );
        }
        output::print(self.output.map(Into::into), &printed, |_| format!("{command}\n"))?;
        Ok(ExitCode::SUCCESS)
    }
}

/// Nothing in it needs quotes, in any shell.
fn command(own: &Own, token: &str) -> String {
    format!(
        "liqoctl add --auth-url {} --id {} --token {token} --fingerprint {}",
        own.auth_url, own.identity.id, own.fingerprint
    )
}

#[cfg(test)]
mod tests;
