//! `liqo`: the one program of all roles inside a cluster. A role is a command.

use std::io::Write;
use std::process::ExitCode;

use anyhow::Context;
use clap::{Parser, Subcommand};

/// Kubernetes clusters that lend each other capacity: the part that runs inside a cluster.
#[derive(Debug, Parser)]
#[command(name = "liqo", version, disable_help_subcommand = true)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Print the custom resource definitions of this version
    #[command(after_help = "Example:\n  liqo crds | kubectl apply --server-side -f -")]
    Crds,
}

fn main() -> ExitCode {
    let done = match Arguments::parse().command {
        Command::Crds => print_crds(),
    };
    if let Err(error) = done {
        eprintln!("error: {error:#}");
        return ExitCode::FAILURE;
    }
    ExitCode::SUCCESS
}

fn print_crds() -> anyhow::Result<()> {
    let mut out = std::io::stdout().lock();
    for crd in liqo_api::crds() {
        let yaml = serde_saphyr::to_string(&crd).context("cannot write a definition as YAML")?;
        writeln!(out, "---\n{}", yaml.trim_end()).context("cannot print the definitions")?;
    }
    Ok(())
}
