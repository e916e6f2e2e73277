//! How long `liqoctl sandbox up` and `down` take: the whole command, as a person waits for it.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail, ensure};
use tokio::time::Instant;

use super::measure::{Baseline, Measurement, Samples, Unit};

/// Beside whatever other sandboxes the machine has.
const NAME: &str = "bench";

const FOUR_UP: f64 = 60.0;
const API_ONLY_UP: f64 = 5.0;
const DOWN: f64 = 10.0;

/// The program under measurement.
pub(super) struct Liqoctl(PathBuf);

/// The seconds of several rounds.
#[derive(Default)]
struct Rounds {
    up: Vec<f64>,
    down: Vec<f64>,
    baseline: Vec<f64>,
}

impl Liqoctl {
    pub(super) fn new(path: &Path) -> Result<Self> {
        ensure!(path.is_file(), "there is no {}; build it with: make build", path.display());
        Ok(Self(path.to_owned()))
    }

    /// One cluster of etcd and API server, against the same programs started without us.
    pub(super) fn api_only(&self, rounds: usize, bare: impl Fn() -> Result<f64>) -> Result<Vec<Measurement>> {
        let what = "API-server-only cluster";
        let times = self.rounds(what, &["--clusters", "api", "--nodes", "0"], rounds, bare)?;
        measurements(what, API_ONLY_UP, "etcd + kube-apiserver alone", times)
    }

    /// The default sandbox of four clusters, against one cluster of the same make.
    pub(super) fn real(&self, rounds: usize) -> Result<Vec<Measurement>> {
        let one = || {
            let up = self.time(&["up", "--clusters", "one"])?;
            self.time(&["down"]).map(|_| up)
        };
        let what = "four real clusters";
        measurements(what, FOUR_UP, "one real cluster", self.rounds(what, &[], rounds, one)?)
    }

    /// Baseline, up and down take turns, so that a busy minute of the machine meets them alike.
    fn rounds(
        &self,
        what: &str,
        arguments: &[&str],
        rounds: usize,
        baseline: impl Fn() -> Result<f64>,
    ) -> Result<Rounds> {
        // Debris of an interrupted bench would turn `up` into a no-op.
        self.time(&["down"])?;
        let up: Vec<&str> = std::iter::once("up").chain(arguments.iter().copied()).collect();
        let mut times = Rounds::default();
        for round in 1..=rounds {
            eprintln!("  {what}, {round} of {rounds}: first the baseline");
            times.baseline.push(baseline()?);
            eprintln!("  {what}, {round} of {rounds}: starting");
            times.up.push(self.time(&up)?);
            times.down.push(self.time(&["down"])?);
            let [baseline, up, down] = [&times.baseline, &times.up, &times.down].map(|runs| runs[round - 1]);
            eprintln!(
                "  {what}, {round} of {rounds}: baseline {baseline:.2} s, up {up:.2} s, down {down:.2} s"
            );
        }
        Ok(times)
    }

    /// Seconds that one command takes. What it says on stderr is shown: it is progress.
    fn time(&self, arguments: &[&str]) -> Result<f64> {
        let started = Instant::now();
        let status = Command::new(&self.0)
            .args(["sandbox", "--name", NAME])
            .args(arguments)
            .stdout(Stdio::null())
            .status()
            .with_context(|| format!("cannot start {}", self.0.display()))?;
        let took = started.elapsed().as_secs_f64();
        if !status.success() {
            bail!(
                "`liqoctl sandbox --name {NAME} {}` failed ({status}); what it said is above",
                arguments.join(" ")
            );
        }
        Ok(took)
    }
}

fn measurements(what: &str, target: f64, baseline: &str, times: Rounds) -> Result<Vec<Measurement>> {
    let samples = |runs| Samples::new(runs).context("nothing was measured");
    let (up, down, alone) = (samples(times.up)?, samples(times.down)?, samples(times.baseline)?);
    let seconds = |what: String, samples, target, baseline| Measurement {
        what,
        unit: Unit::Seconds,
        samples,
        target: Some(target),
        baseline,
    };
    Ok(vec![
        seconds(
            format!("{what}: up"),
            up.clone(),
            target,
            Baseline { what: baseline.to_owned(), samples: alone },
        ),
        seconds(format!("{what}: down"), down, DOWN, Baseline { what: "its own up".to_owned(), samples: up }),
    ])
}
