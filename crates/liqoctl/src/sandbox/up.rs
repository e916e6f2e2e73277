//! `liqoctl sandbox up`.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use clap::Args;
use liqo_sandbox::{ClusterSpec, DEFAULT_CLUSTERS, EXAMPLE, Place, Sandbox, Spec, Up};
use tokio::signal::unix::{SignalKind, signal};
use tokio::time::Instant;

use super::{Common, show};
use crate::{INTERRUPTED, output};

/// What to start.
#[derive(Debug, Args)]
#[command(after_help = format!("A file for --file looks like this:\n{EXAMPLE}"))]
pub(crate) struct Arguments {
    /// Names of the clusters [default: consumer,broker,provider-a,provider-b]
    #[arg(long, value_delimiter = ',', value_name = "NAMES")]
    clusters: Option<Vec<String>>,
    /// Real nodes of each cluster; with 0 here and no hollow nodes, only an API server [default: 1]
    #[arg(long, value_name = "N")]
    nodes: Option<u32>,
    /// Hollow nodes of each cluster: objects that kwok keeps alive [default: 0]
    #[arg(long, value_name = "N")]
    hollow_nodes: Option<u32>,
    /// Write every request to the API servers into CLUSTER/audit.log in the sandbox's directory
    #[arg(long)]
    audit: bool,
    /// A description of the sandbox; `-` reads it from standard input
    #[arg(long, short, value_name = "FILE", conflicts_with_all = ["clusters", "nodes", "hollow_nodes", "audit"])]
    file: Option<PathBuf>,
}

impl Arguments {
    fn spec(&self) -> Result<Spec> {
        if let Some(file) = &self.file {
            return read_spec(file);
        }
        let names = self.clusters.clone().unwrap_or_else(|| DEFAULT_CLUSTERS.map(String::from).to_vec());
        let nodes = self.nodes.unwrap_or(1);
        let hollow_nodes = self.hollow_nodes.unwrap_or(0);
        let spec = Spec::new(names.into_iter().map(|name| ClusterSpec {
            hollow_nodes,
            audit: self.audit,
            ..ClusterSpec::real(name, nodes)
        }));
        spec.validate()?;
        Ok(spec)
    }

    /// Whether the user said what the sandbox should look like.
    fn is_explicit(&self) -> bool {
        self.clusters.is_some()
            || self.nodes.is_some()
            || self.hollow_nodes.is_some()
            || self.audit
            || self.file.is_some()
    }
}

fn read_spec(file: &Path) -> Result<Spec> {
    if file != Path::new("-") {
        return Ok(Spec::from_file(file)?);
    }
    let mut text = String::new();
    std::io::stdin().read_to_string(&mut text).context("cannot read the description from standard input")?;
    Ok(Spec::from_yaml(&text, "standard input")?)
}

pub(crate) async fn up(common: &Common, arguments: &Arguments) -> Result<ExitCode> {
    let spec = arguments.spec()?;
    let (place, options) = (common.place()?, common.options());
    let started = Instant::now();
    let progress = |cluster: &str, what: &str| {
        eprintln!("{:6.1}s  {cluster:<12} {what}", started.elapsed().as_secs_f64());
    };
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    let mut hang_up = signal(SignalKind::hangup())?;
    let up = tokio::select! {
        up = Sandbox::up(&place, &spec, &options, &progress) => up?,
        _ = interrupt.recv() => return clean_up(&place),
        _ = terminate.recv() => return clean_up(&place),
        _ = hang_up.recv() => return clean_up(&place),
    };
    let sandbox = match up {
        Up::Started(sandbox) => {
            eprintln!("sandbox {} is up after {:.1} s", place.name(), started.elapsed().as_secs_f64());
            sandbox
        }
        Up::Running(sandbox) => {
            refuse_other_clusters(common, &sandbox, &spec, arguments)?;
            eprintln!("sandbox {} is running already; nothing to do", place.name());
            sandbox
        }
    };
    let table = show::table(&sandbox.status().await, false);
    output::write(format!("{table}\nexport KUBECONFIG={}\n", place.kubeconfig().display()).as_bytes())?;
    Ok(ExitCode::SUCCESS)
}

fn clean_up(place: &Place) -> Result<ExitCode> {
    eprintln!("interrupted; removing what was started");
    liqo_sandbox::down(place).context("cannot remove what was started; try again: liqoctl sandbox down")?;
    Ok(ExitCode::from(INTERRUPTED))
}

fn refuse_other_clusters(
    common: &Common,
    sandbox: &Sandbox,
    wanted: &Spec,
    arguments: &Arguments,
) -> Result<()> {
    let running = Spec::new(sandbox.clusters().map(|cluster| cluster.plan().spec.clone()));
    if !arguments.is_explicit() || running == *wanted {
        return Ok(());
    }
    let names: Vec<&str> = running.clusters.iter().map(|cluster| cluster.name.as_str()).collect();
    bail!(
        "sandbox {} is running with other clusters ({}). Take it down first ({}), or start a second one with --name",
        sandbox.place().name(),
        names.join(", "),
        common.hint("down")
    )
}
