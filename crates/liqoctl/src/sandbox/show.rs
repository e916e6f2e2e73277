//! Commands that show a sandbox.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use liqo_sandbox::{ClusterStatus, PartState, Sandbox, Status};

use crate::output::{self, Format};
use crate::table::Table;

/// How often a followed log is looked at.
const FOLLOW_INTERVAL: Duration = Duration::from_millis(200);

pub(crate) async fn status(sandbox: &Sandbox, format: Option<Format>) -> Result<ExitCode> {
    let status = sandbox.status().await;
    output::print(format, &status, |wide| table(&status, wide))?;
    Ok(ExitCode::SUCCESS)
}

/// What `up` and `status` show.
pub(crate) fn table(status: &Status, wide: bool) -> String {
    let mut table = Table::new([
        "CLUSTER",
        "READY",
        "VERSION",
        "FLAVOUR",
        "NODES",
        "PODS",
        "API SERVER",
        "POD CIDR",
        "SERVICE CIDR",
    ]);
    for cluster in &status.clusters {
        table.row([
            cluster.name.clone(),
            if cluster.ready { "yes".into() } else { "no".into() },
            cluster.version.clone().unwrap_or_else(|| "-".into()),
            cluster.flavour.to_string(),
            format!("{}/{}", cluster.nodes_ready, cluster.nodes),
            cluster.pods_running.to_string(),
            cluster.api_server.clone(),
            cluster.pod_cidr.clone(),
            cluster.service_cidr.clone(),
        ]);
    }
    let mut lines = vec![table.to_string()];
    lines.extend(status.clusters.iter().flat_map(|cluster| trouble(cluster, wide)));
    for (a, b) in &status.faults.cuts {
        lines.push(format!("fault: {a} and {b} cannot reach each other\n"));
    }
    for delay in &status.faults.delays {
        lines.push(format!(
            "fault: packets between {} and {} arrive {:?} later, each way\n",
            delay.a, delay.b, delay.each_way
        ));
    }
    if wide {
        lines.push(components(&status.clusters));
    }
    lines.concat()
}

fn trouble(cluster: &ClusterStatus, wide: bool) -> Vec<String> {
    let mut lines: Vec<String> =
        cluster.reason.iter().map(|reason| format!("{}: {reason}\n", cluster.name)).collect();
    if !wide {
        let troubled = cluster.troubled().into_iter();
        lines.extend(troubled.map(|one| format!("{}: {} is {}\n", cluster.name, one.name, state(one.state))));
    }
    lines
}

fn state(state: PartState) -> &'static str {
    match state {
        PartState::Running => "running",
        PartState::Paused => "paused",
        PartState::Stopped => "stopped",
    }
}

fn components(clusters: &[ClusterStatus]) -> String {
    let mut table = Table::new(["CLUSTER", "COMPONENT", "STATE", "LOG"]);
    for cluster in clusters {
        for component in &cluster.components {
            table.row([
                cluster.name.clone(),
                component.name.clone(),
                state(component.state).into(),
                component.log.as_deref().map_or_else(|| "-".into(), |log| log.display().to_string()),
            ]);
        }
    }
    format!("\n{table}")
}

pub(crate) fn kubeconfig(sandbox: &Sandbox, cluster: Option<&str>) -> Result<()> {
    let path = match cluster {
        Some(name) => sandbox.cluster(name)?.kubeconfig(),
        None => sandbox.place().kubeconfig(),
    };
    let text = std::fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
    output::write(text.as_bytes())
}

pub(crate) async fn logs(
    sandbox: &Sandbox,
    cluster: &str,
    component: &str,
    tail: Option<usize>,
    follow: bool,
) -> Result<()> {
    let cluster = sandbox.cluster(cluster)?;
    let mut files = cluster.logs(&cluster.parts(Some(component))?);
    let several = files.len() > 1;
    if follow && several {
        bail!("{component} runs on several nodes; say which to follow, e.g. node-1/{component}");
    }
    if files.is_empty() {
        bail!("{component} of {} has written no log yet", cluster.name());
    }
    for file in &files {
        if several {
            eprintln!("==> {}", file.display());
        }
        print_file(file, tail)?;
    }
    match files.pop() {
        Some(file) if follow => follow_file(&file).await,
        _ => Ok(()),
    }
}

fn print_file(path: &Path, tail: Option<usize>) -> Result<()> {
    let file = File::open(path).with_context(|| format!("cannot read {}", path.display()))?;
    let mut out = std::io::stdout().lock();
    let Some(tail) = tail else {
        std::io::copy(&mut BufReader::new(file), &mut out)?;
        return Ok(());
    };
    let mut last = VecDeque::new();
    for line in BufReader::new(file).split(b'\n') {
        last.push_back(line?);
        if last.len() > tail {
            last.pop_front();
        }
    }
    for line in last {
        out.write_all(&line)?;
        out.write_all(b"\n")?;
    }
    Ok(())
}

/// Prints what is added to a file, until interrupted or the file is gone with its sandbox.
async fn follow_file(path: &Path) -> Result<()> {
    use std::io::{Seek, SeekFrom};
    let mut file = File::open(path).with_context(|| format!("cannot read {}", path.display()))?;
    file.seek(SeekFrom::End(0))?;
    while path.exists() {
        std::io::copy(&mut file, &mut std::io::stdout().lock())?;
        std::io::stdout().flush()?;
        tokio::time::sleep(FOLLOW_INTERVAL).await;
    }
    Ok(())
}
