//! `liqoctl status`: arguments and wiring.

mod show;

use std::process::ExitCode;

use anyhow::Result;
use clap::Args;
use liqo_inspect::Installation;

pub(crate) use show::finding;

use crate::access::Access;
use crate::output::{self, Format};

/// Arguments of `status`.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Output format
    #[arg(short, long, value_enum)]
    output: Option<Format>,
}

pub(crate) const EXAMPLES: &str = "Examples:
  liqoctl status                       # identity, versions, pods, peers, and what is wrong
  liqoctl status --context provider-a -o wide
  liqoctl status -o json | jq -r .cluster.id

Ends with 0 if all is well, and with 1 if liqo is not installed or something has failed.";

impl Arguments {
    pub(crate) async fn run(self, access: &Access) -> Result<ExitCode> {
        let connection = access.connect().await?;
        let server = connection.server();
        let status = Installation::new(connection.client, connection.namespace).status(&server).await;
        output::print(self.output, &status, |wide| show::text(&status, wide, access.stdout()))?;
        Ok(if status.healthy { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    }
}
