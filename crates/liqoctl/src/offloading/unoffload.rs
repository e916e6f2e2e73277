//! `liqoctl unoffload`: brings a namespace home.

use std::io::{BufRead, IsTerminal, Write};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use clap::{Args, Subcommand};
use kube::Api;
use kube::api::{DeleteParams, Patch, PatchParams};
use liqo_api::names::NAMESPACE_OFFLOADING;
use liqo_api::{NamespaceOffloading, labels};
use liqo_inspect::age;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use super::{see, view};
use crate::access::{Access, Connection};
use crate::duration::parse_span;
use crate::peering::follow::Patience;
use crate::progress::Progress;
use crate::{Door, OnCluster};

/// How often it is looked whether it is over.
const INTERVAL: Duration = Duration::from_millis(200);

/// Arguments of `unoffload`.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Bring a namespace home: its pods leave the other clusters, then the namespaces there go
    #[command(visible_alias = "ns", after_help = EXAMPLES)]
    Namespace(OnCluster<Namespace>),
}

pub(crate) const EXAMPLES: &str = "Examples:
  liqoctl unoffload namespace shop
  liqoctl unoffload namespace shop --yes    # without asking, also when pods run elsewhere

Pods are asked to leave, as their disruption budgets allow, and after a minute they are deleted; their controllers start them
here. Ends with 0 when nothing of the namespace is elsewhere, also when nothing was.";

/// Arguments of `unoffload namespace`.
#[derive(Debug, Args)]
struct Namespace {
    /// The namespace
    #[arg(value_name = "NAMESPACE")]
    name: String,
    /// Do not ask, also when pods run in other clusters
    #[arg(short, long, visible_alias = "skip-confirm")]
    yes: bool,
    /// Do not wait until it is done
    #[arg(long)]
    no_wait: bool,
    /// How long to wait
    #[arg(long, value_name = "DURATION", default_value = "3m", value_parser = parse_span)]
    timeout: Duration,
}

impl Arguments {
    pub(crate) async fn run(self, door: &Door) -> Result<ExitCode> {
        match self.command {
            Command::Namespace(it) => it.command.run(&door.open(it.flags)?).await,
        }
    }
}

impl Namespace {
    async fn run(self, access: &Access) -> Result<ExitCode> {
        let connection = access.connect().await?;
        let mut progress = Progress::new(access.stderr());
        let name = &self.name;
        let seen = see(&connection, name).await?;
        let Some((namespace, Some(offloading))) = seen else {
            if let Some((namespace, None)) = &seen {
                unlabel(&connection, namespace).await?;
            }
            progress.done(&format!("namespace {name} is not offloaded"));
            return Ok(ExitCode::SUCCESS);
        };
        let away = view::pods_away(&connection, name).await?.values().sum::<usize>();
        if away > 0 && !self.yes && offloading.metadata.deletion_timestamp.is_none() {
            progress
                .warn(&format!("{away} pods of namespace {name} run in other clusters and have to leave"));
            if !agreed()? {
                eprintln!("nothing was changed");
                return Ok(ExitCode::FAILURE);
            }
        }
        unlabel(&connection, &namespace).await?;
        let api: Api<NamespaceOffloading> = Api::namespaced(connection.client.clone(), name);
        match api.delete(NAMESPACE_OFFLOADING, &DeleteParams::default()).await {
            Ok(_) => {}
            Err(kube::Error::Api(status)) if status.code == 404 => {}
            Err(error) => {
                return Err(connection.target.explain(&error))
                    .context(format!("cannot bring namespace {name} home"));
            }
        }
        if !self.no_wait {
            self.wait(&connection, &mut progress).await?;
            progress.done(&format!("namespace {name} is at home, and nowhere else"));
        }
        Ok(ExitCode::SUCCESS)
    }

    async fn wait(&self, connection: &Connection, progress: &mut Progress) -> Result<()> {
        let (name, began, mut patience) = (&self.name, Instant::now(), Patience::default());
        loop {
            let Some(seen) = patience.forgive(see(connection, name).await)? else {
                sleep(INTERVAL).await;
                continue;
            };
            let Some((_, Some(offloading))) = seen else { return Ok(()) };
            let status = offloading.status.unwrap_or_default();
            let left =
                view::clusters(&status).into_iter().filter(view::ClusterView::is_left).map(|it| it.name);
            let left: Vec<_> = left.collect();
            let waiting = if left.is_empty() {
                "waiting for the manager".to_owned()
            } else {
                format!("pods and namespace leave {}", left.join(", "))
            };
            if began.elapsed() >= self.timeout {
                bail!(
                    "not done within {}: {waiting}. It goes on by itself; liqoctl status namespace {name} shows how far it is",
                    age::text(self.timeout.try_into().unwrap_or(jiff::SignedDuration::MAX))
                );
            }
            progress.busy(&waiting);
            sleep(INTERVAL).await;
        }
    }
}

/// Takes the label away that would offload it again.
async fn unlabel(connection: &Connection, namespace: &k8s_openapi::api::core::v1::Namespace) -> Result<()> {
    let labelled =
        namespace.metadata.labels.as_ref().is_some_and(|all| all.contains_key(labels::OFFLOADING_ENABLED));
    if !labelled {
        return Ok(());
    }
    let name = namespace.metadata.name.as_deref().unwrap_or_default();
    let api: Api<k8s_openapi::api::core::v1::Namespace> = Api::all(connection.client.clone());
    let patch = json!({ "metadata": { "labels": { labels::OFFLOADING_ENABLED: Value::Null } } });
    let changed = api.patch(name, &PatchParams::default(), &Patch::Merge(&patch)).await;
    changed.map_err(|error| connection.target.explain(&error)).with_context(|| {
        format!("cannot take the label {} from namespace {name}", labels::OFFLOADING_ENABLED)
    })?;
    Ok(())
}

/// Whether somebody says yes.
fn agreed() -> Result<bool> {
    if !(std::io::stdin().is_terminal() && std::io::stderr().is_terminal()) {
        bail!("nothing was changed, as there is nobody to ask whether they may. Say --yes if they may");
    }
    eprint!("Go on? [y/N] ");
    std::io::stderr().flush()?;
    let mut line = String::new();
    std::io::stdin().lock().read_line(&mut line)?;
    Ok(matches!(line.trim().to_lowercase().as_str(), "y" | "yes"))
}
