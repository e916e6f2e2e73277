//! `liqoctl version`: arguments and wiring.

use std::process::ExitCode;

use anyhow::Result;
use clap::Args;
use liqo_inspect::{Build, ClusterVersions, Installation, Versions};

use crate::access::Access;
use crate::output::{self, DataFormat};

/// Arguments of `version`.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Only this program's version; no cluster is asked
    #[arg(long)]
    client: bool,
    /// Output format
    #[arg(short, long, value_enum)]
    output: Option<DataFormat>,
}

pub(crate) const EXAMPLES: &str = "Examples:
  liqoctl version                    # this program, and what the cluster runs
  liqoctl version --client           # without asking a cluster
  liqoctl version -o json | jq -r .cluster.liqo";

impl Arguments {
    pub(crate) async fn run(self, access: &Access) -> Result<ExitCode> {
        let mut versions = Versions { client: Build::this(), cluster: None };
        let mut trouble = None;
        if !self.client {
            match access.connect().await {
                Ok(connection) => {
                    let installation = Installation::new(connection.client, connection.namespace);
                    versions.cluster = Some(installation.versions(&connection.kubernetes.git_version).await);
                }
                Err(error) => trouble = Some(error),
            }
        }
        output::print(self.output.map(Into::into), &versions, |_| text(&versions))?;
        let Some(trouble) = trouble else { return Ok(ExitCode::SUCCESS) };
        eprintln!("note: the cluster's versions are not known: {trouble}");
        Ok(ExitCode::FAILURE)
    }
}

fn text(versions: &Versions) -> String {
    let Build { version, commit, build, platform } = &versions.client;
    let commit = match *commit {
        "unknown" => String::new(),
        commit => format!("commit {commit}, "),
    };
    let mut text = format!("Client:     {version} ({commit}{build}, {platform})\n");
    if let Some(ClusterVersions { kubernetes, liqo, image, problem }) = &versions.cluster {
        let liqo = match (liqo, image, problem) {
            (Some(version), Some(image), _) => format!("{version} (image {image})"),
            (Some(version), None, _) => version.clone(),
            (None, _, Some(problem)) => format!("unknown: {problem}"),
            (None, Some(image), None) => format!("unknown (image {image})"),
            (None, None, None) => "not installed".to_owned(),
        };
        text += &format!("Cluster:    {liqo}\nKubernetes: {kubernetes}\n");
    }
    text
}
