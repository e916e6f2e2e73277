//! Puts the chart of `deploy/helm/liqo` into the library, so that `liqoctl` carries it wherever it runs.
#![expect(clippy::disallowed_methods, reason = "cargo speaks to build scripts through the environment")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Where the chart is, seen from this crate.
const CHART: &str = "../../deploy/helm/liqo";

fn main() -> ExitCode {
    match embed() {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            println!("cargo::error={why}");
            ExitCode::FAILURE
        }
    }
}

/// Writes a list of all files, each with its content included by the compiler.
fn embed() -> Result<(), String> {
    let chart = PathBuf::from(variable("CARGO_MANIFEST_DIR")?).join(CHART);
    let chart = chart.canonicalize().map_err(|error| format!("cannot find the chart {CHART}: {error}"))?;
    let mut files = Vec::new();
    collect(&chart, &mut files)?;
    files.sort();
    let mut list = String::from("&[\n");
    for file in &files {
        let path = file.strip_prefix(&chart).map_err(|error| error.to_string())?;
        list.push_str(&format!("    ({path:?}, include_bytes!({file:?})),\n"));
    }
    list.push_str("]\n");
    let target = PathBuf::from(variable("OUT_DIR")?).join("chart.rs");
    fs::write(&target, list).map_err(|error| format!("cannot write {}: {error}", target.display()))
}

/// Finds all files below a directory. Each directory is named to cargo too, for files that will be added to it.
fn collect(directory: &Path, files: &mut Vec<PathBuf>) -> Result<(), String> {
    let failed = |error: std::io::Error| format!("cannot read {}: {error}", directory.display());
    println!("cargo::rerun-if-changed={}", directory.display());
    for entry in fs::read_dir(directory).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        if path.is_dir() {
            collect(&path, files)?;
        } else {
            println!("cargo::rerun-if-changed={}", path.display());
            files.push(path);
        }
    }
    Ok(())
}

fn variable(name: &str) -> Result<String, String> {
    std::env::var(name).map_err(|error| format!("{name}: {error}"))
}
