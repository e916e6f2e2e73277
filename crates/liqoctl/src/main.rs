//! `liqoctl`: what a person types.
//!
//! Data goes to standard output, everything else to standard error. Exit codes: 0 done, 1 failed, 2 wrong usage,
//! 130 interrupted; `sandbox kubectl` and `sandbox exec` end with the code of what they ran.

mod duration;
mod output;
mod sandbox;
mod table;

use std::process::ExitCode;

use clap::{CommandFactory, Parser, Subcommand};
use clap_complete::Shell;

/// Kubernetes clusters that lend each other capacity.
#[derive(Debug, Parser)]
#[command(name = "liqoctl", version, disable_help_subcommand = true, after_help = EXAMPLES)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

const EXAMPLES: &str = "Examples:
  # Four real Kubernetes clusters on this machine
  sudo liqoctl sandbox up

  # Complete commands with the tab key in this shell
  source <(liqoctl completion bash)";

#[derive(Debug, Subcommand)]
enum Command {
    /// Several real Kubernetes clusters on this machine, gone without a trace when no longer needed
    Sandbox(Box<sandbox::Arguments>),
    /// Print the script that completes liqoctl's commands in a shell
    Completion {
        /// The shell
        #[arg(value_enum)]
        shell: Shell,
    },
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    // Two TLS implementations may be linked in by different crates; the choice is made here, once.
    if rustls::crypto::aws_lc_rs::default_provider().install_default().is_err() {
        eprintln!("error: another TLS implementation was chosen before this program started");
        return ExitCode::FAILURE;
    }
    let done = match arguments.command {
        Command::Sandbox(arguments) => run(arguments.run()),
        Command::Completion { shell } => {
            clap_complete::generate(shell, &mut Arguments::command(), "liqoctl", &mut std::io::stdout());
            Ok(ExitCode::SUCCESS)
        }
    };
    done.unwrap_or_else(|error| {
        eprintln!("error: {error:#}");
        ExitCode::FAILURE
    })
}

fn run(work: impl Future<Output = anyhow::Result<ExitCode>>) -> anyhow::Result<ExitCode> {
    tokio::runtime::Builder::new_multi_thread().enable_all().build()?.block_on(work)
}
