//! What peering costs: until two clusters have a contract, until a hub has two dozen of them, and while nothing happens.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use super::measure::{Baseline, Measurement, Samples, Unit};

mod hub;
mod manager;
mod objects;
mod pair;

use super::two::SANDBOX;

/// The programs under measurement, and where what they need besides is put.
pub(super) struct Programs {
    pub(super) liqo: PathBuf,
    pub(super) liqoctl: PathBuf,
    /// The directory with those of Kubernetes.
    pub(super) kubernetes: PathBuf,
    pub(super) out: PathBuf,
}

/// The numbers of two clusters that peer, and find each other.
pub(super) fn two(programs: &Programs, rounds: usize) -> Result<Vec<Measurement>> {
    runtime()?.block_on(pair::measure(programs, rounds))
}

/// The numbers of a hub and its peers.
pub(super) fn hub(programs: &Programs, peers: usize) -> Result<Vec<Measurement>> {
    anyhow::ensure!(peers > 0, "a hub needs peers");
    runtime()?.block_on(hub::measure(programs, peers))
}

fn runtime() -> Result<tokio::runtime::Runtime> {
    Ok(tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?)
}

fn samples(runs: Vec<f64>) -> Result<Samples> {
    Samples::new(runs).context("nothing was measured")
}

/// A number with what the same run says about something like it.
fn measured(
    what: &str,
    unit: Unit,
    runs: Vec<f64>,
    target: Option<f64>,
    baseline: (&str, Vec<f64>),
) -> Result<Measurement> {
    let (name, of) = baseline;
    let baseline = Baseline { what: name.to_owned(), samples: samples(of)? };
    Ok(Measurement { what: what.to_owned(), unit, samples: samples(runs)?, target, baseline })
}

pub(super) fn is_there(program: &Path) -> Result<()> {
    anyhow::ensure!(program.is_file(), "{} is not there: run tools/build bench", program.display());
    Ok(())
}
