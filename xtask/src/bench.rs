//! `cargo xtask bench`: measures what the project promises in numbers, each against a baseline of the same run.
//!
//! Machines differ and are noisy, so a number alone says little: beside each one stands what the same work costs
//! without us (or in its smaller form), measured minutes apart on the same machine, and the ratio of the two.

mod bare;
mod chart;
mod install;
mod kit;
mod machine;
mod measure;
mod offloading;
mod peering;
mod sandbox;
mod table;
mod two;

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};
use serde_json::json;

use machine::Machine;
use measure::Measurement;

const MANY_PODS: u32 = 10_000;
/// Requests a second at which controllers are no brake.
const HIGH_RATE: u32 = 1000;

/// What to measure, and with which programs.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// The `liqoctl` to measure
    #[arg(long, default_value = "target/release/liqoctl", value_name = "FILE")]
    liqoctl: PathBuf,
    /// The `liqo` to measure where managers run as plain processes
    #[arg(long, default_value = "target/release/liqo", value_name = "FILE")]
    liqo: PathBuf,
    /// The kit's own bench, built with optimisation
    #[arg(long, default_value = "target/release/examples/kit_bench", value_name = "FILE")]
    kit_bench: PathBuf,
    /// Directory with etcd and kube-apiserver, for the baseline without a sandbox
    #[arg(long, value_name = "DIR")]
    programs: PathBuf,
    /// Where results.json and chart.svg go
    #[arg(long, default_value = "target/bench", value_name = "DIR")]
    out: PathBuf,
    /// Only this part
    #[arg(long)]
    only: Option<Part>,
    /// How often API-server-only clusters are started
    #[arg(long, default_value_t = 5, value_name = "N")]
    quick_rounds: usize,
    /// How many clusters peer with a hub
    #[arg(long, default_value_t = 24, value_name = "N")]
    peers: usize,
    /// How many pods are offloaded, one size after the other
    #[arg(long, value_delimiter = ',', default_values_t = [100, 1000, MANY_PODS], value_name = "N")]
    pods: Vec<u32>,
    /// The same at the rate that Kubernetes' controllers have by default; 10000 take half an hour there
    #[arg(long, value_delimiter = ',', default_values_t = [100, 1000], value_name = "N")]
    usual_pods: Vec<u32>,
    /// How many endpoints a reflected Service has, one size after the other
    #[arg(long, value_delimiter = ',', default_values_t = [1000, MANY_PODS], value_name = "N")]
    endpoints: Vec<u32>,
    /// How often clusters with real nodes are started
    #[arg(long, default_value_t = 3, value_name = "N")]
    real_rounds: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Part {
    /// API-server-only clusters: up, down
    Api,
    /// Clusters with real nodes: up, down
    Real,
    /// The kit: memory and CPU
    Kit,
    /// Installing, and the installed manager when idle
    Install,
    /// Peering: two clusters, the local network, and a hub
    Peering,
    /// The hub alone: many peers at once, an idle peer, a restart
    Hub,
    /// Pods that run elsewhere, against the same pods directly there
    Offloading,
}

/// Measures, prints a table, and writes `results.json` and `chart.svg`. A missed target is a result; something that
/// could not be measured is an error.
pub(crate) fn run(root: &Path, arguments: &Arguments) -> Result<()> {
    ensure!(arguments.quick_rounds > 0 && arguments.real_rounds > 0, "at least one round each is needed");
    let out = root.join(&arguments.out);
    fs::create_dir_all(&out).with_context(|| format!("cannot create {}", out.display()))?;
    let machine = Machine::look(root);
    eprintln!("bench: {machine}");
    let liqoctl = sandbox::Liqoctl::new(&root.join(&arguments.liqoctl))?;
    let wanted = |part| arguments.only.is_none_or(|only| only == part);
    let mut book = Book::default();
    if wanted(Part::Api) {
        let bare = || bare::round(&arguments.programs, &out.join("bare"));
        book.add("API-server-only clusters", || liqoctl.api_only(arguments.quick_rounds, bare));
    }
    if wanted(Part::Real) {
        book.add("clusters with real nodes", || liqoctl.real(arguments.real_rounds));
    }
    let mut details = json!(null);
    if wanted(Part::Kit) {
        book.add("the kit", || {
            details = kit::run(&root.join(&arguments.kit_bench))?;
            kit::measurements(&details)
        });
    }
    if wanted(Part::Install) {
        book.add("installing", || {
            install::Installer::start(&root.join(&arguments.liqoctl), &out)?.measure(arguments.real_rounds)
        });
    }
    let programs = peering::Programs {
        liqo: root.join(&arguments.liqo),
        liqoctl: root.join(&arguments.liqoctl),
        kubernetes: arguments.programs.clone(),
        out: out.clone(),
    };
    if wanted(Part::Peering) {
        book.add("peering", || peering::two(&programs, arguments.quick_rounds));
    }
    if wanted(Part::Peering) || wanted(Part::Hub) {
        book.add("a hub", || peering::hub(&programs, arguments.peers));
    }
    if wanted(Part::Offloading) {
        let (usual, sizes) = (&arguments.usual_pods, &arguments.pods);
        if !usual.is_empty() {
            book.add("offloading at usual rates", || offloading::measure(&programs, None, usual));
        }
        book.add("offloading at high rates", || offloading::measure(&programs, Some(HIGH_RATE), sizes));
        let endpoints = &arguments.endpoints;
        book.add("reflection and failover", || offloading::soon(&programs, HIGH_RATE, endpoints));
    }
    let load_at_end = machine::load();
    println!("{}", table::draw(&book.measurements));
    println!("{machine}; load at the end {load_at_end}");
    let results = json!({
        "machine": machine, "load_at_end": load_at_end, "measurements": book.measurements,
        "kit": details, "failures": book.failures,
    });
    write(&out.join("results.json"), &format!("{results:#}\n"))?;
    write(&out.join("chart.svg"), &chart::draw(&book.measurements, &machine.to_string()))?;
    book.verdict()
}

/// What was measured so far, and what could not be.
#[derive(Default)]
struct Book {
    measurements: Vec<Measurement>,
    failures: Vec<String>,
}

impl Book {
    /// Runs one part; its failure does not keep the others from being measured.
    fn add(&mut self, what: &str, measure: impl FnOnce() -> Result<Vec<Measurement>>) {
        eprintln!("bench: {what}");
        match measure() {
            Ok(measurements) => self.measurements.extend(measurements),
            Err(error) => {
                eprintln!("bench: {what} could not be measured: {error:#}");
                self.failures.push(format!("{what}: {error:#}"));
            }
        }
    }

    fn verdict(&self) -> Result<()> {
        let missed: Vec<&str> =
            self.measurements.iter().filter(|m| m.met() == Some(false)).map(|m| m.what.as_str()).collect();
        if !missed.is_empty() {
            println!("missed targets: {}", missed.join("; "));
        }
        if !self.failures.is_empty() {
            bail!("not everything could be measured: {}", self.failures.join("; "));
        }
        Ok(())
    }
}

fn write(path: &Path, text: &str) -> Result<()> {
    fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))?;
    println!("written: {}", path.display());
    Ok(())
}
