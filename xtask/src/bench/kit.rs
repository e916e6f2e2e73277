//! Runs the kit's bench and reads its numbers.

use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use super::measure::{Baseline, Measurement, Samples, Unit};

#[cfg(test)]
mod tests;

const INDEX_MEGABYTES: f64 = 30.0;
const CORES: f64 = 0.3;

/// Runs the bench; returns the document it prints.
pub(super) fn run(program: &Path) -> Result<Value> {
    ensure!(
        program.is_file(),
        "there is no {}; build it with: cargo build --release -p liqo-kit --example kit_bench",
        program.display()
    );
    let output = Command::new(program)
        .stdin(Stdio::null())
        .stderr(Stdio::inherit())
        .output()
        .with_context(|| format!("cannot start {}", program.display()))?;
    ensure!(
        output.status.success(),
        "{} failed ({}); what it said is above",
        program.display(),
        output.status
    );
    let text = String::from_utf8_lossy(&output.stdout);
    serde_json::from_str(&text).with_context(|| format!("the kit's bench printed no JSON: {text}"))
}

/// The promised numbers in that document, each against kube-rs alone.
pub(super) fn measurements(details: &Value) -> Result<Vec<Measurement>> {
    let pods = number(&details["pods"], "pods")?;
    let index = |variant: &str, field: &str| {
        let answer = &of(details, "index", variant)?["answer"]["now"];
        Ok::<_, anyhow::Error>(number(&answer[field], field)? / 1e6)
    };
    let memory = |what: &str, field: &str, target| {
        let what = format!("index of {pods:.0} pods: {what}");
        against_kube(&what, Unit::Megabytes, target, index("trimmed", field)?, index("reflector", field)?)
    };
    let core = |variant: &str| {
        number(&of(details, "events", variant)?["core_at_1000_events_per_second"], "core at 1,000 events/s")
    };
    Ok(vec![
        memory("process", "resident_bytes", Some(INDEX_MEGABYTES))?,
        memory("process at its peak", "peak_bytes", None)?,
        against_kube("1000 events a second", Unit::Cores, Some(CORES), core("trimmed")?, core("reflector")?)?,
    ])
}

fn against_kube(what: &str, unit: Unit, target: Option<f64>, ours: f64, theirs: f64) -> Result<Measurement> {
    let one = |value| Samples::new([value]).context("nothing was measured");
    let baseline = Baseline { what: "kube-rs reflector".into(), samples: one(theirs)? };
    Ok(Measurement { what: what.to_owned(), unit, samples: one(ours)?, target, baseline })
}

/// The entry of a list that speaks of `variant`.
fn of<'a>(details: &'a Value, list: &str, variant: &str) -> Result<&'a Value> {
    let entries = details[list].as_array().into_iter().flatten();
    entries
        .into_iter()
        .find(|entry| entry["variant"] == variant)
        .with_context(|| format!("the kit's bench said nothing about {variant} in {list}"))
}

fn number(value: &Value, what: &str) -> Result<f64> {
    value.as_f64().with_context(|| format!("the kit's bench has no number for {what}"))
}
