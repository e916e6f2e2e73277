//! The program `liqo`: argument structs and wiring. It is a library so that the reference of its flags and the roles of
//! its account can be generated from it.

use std::io::Write;
use std::process::ExitCode;

use anyhow::Context;
use clap::{ArgMatches, CommandFactory, FromArgMatches, Parser, Subcommand};

pub mod discovery;
mod identify;
pub mod limits;
pub mod manager;
mod process;
mod report;
mod values;

/// The version of this program.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The name under which clusters that are found are written about, from whichever process; also of the Deployment and the
/// account of `liqo discovery`.
pub const DISCOVERY: &str = "liqo-discovery";

/// Exit code for arguments that cannot be understood; clap's.
const USAGE: u8 = 2;

const EXIT_CODES: &str = "Exit codes:
  0  ended as it was asked to
  1  failed; the log says why
  2  wrong arguments";

/// Kubernetes clusters that lend each other capacity: the part that runs inside a cluster.
#[derive(Debug, Parser)]
#[command(name = "liqo", version, disable_help_subcommand = true, after_help = EXIT_CODES)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run the controller manager of a cluster
    #[command(after_help = EXIT_CODES)]
    Manager(Box<manager::Arguments>),
    /// Find other clusters on the local network, and be found there
    #[command(after_help = EXIT_CODES)]
    Discovery(Box<discovery::Arguments>),
    /// Print the custom resource definitions of this version
    #[command(after_help = "Example:\n  liqo crds | kubectl apply --server-side -f -")]
    Crds,
    /// Print the version
    Version,
}

/// The command with all its arguments, for those who describe it.
pub fn command() -> clap::Command {
    Arguments::command()
        .mut_subcommand("manager", |command| command.mut_args(manager::describe))
        .mut_subcommand("discovery", |command| command.mut_args(|argument| argument.hide_env_values(true)))
}

/// Runs what the process's arguments say.
pub fn main() -> ExitCode {
    let matches = command().get_matches();
    let arguments = match Arguments::from_arg_matches(&matches) {
        Ok(arguments) => arguments,
        Err(error) => error.format(&mut command()).exit(),
    };
    match run(&arguments, &matches) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: &Arguments, matches: &ArgMatches) -> anyhow::Result<ExitCode> {
    let refused = |problem: String| {
        eprintln!("error: {problem}\n\nFor more information, try '--help'.");
        Ok(ExitCode::from(USAGE))
    };
    match (&arguments.command, matches.subcommand()) {
        (Command::Manager(arguments), Some((_, matches))) => {
            match arguments.check().and_then(|()| arguments.start_logging()) {
                Ok(()) => Ok(manager::run(arguments, matches)),
                Err(problem) => refused(problem),
            }
        }
        (Command::Discovery(arguments), Some((_, matches))) => {
            match arguments.check().and_then(|()| arguments.start_logging()) {
                Ok(()) => Ok(discovery::run(arguments, matches)),
                Err(problem) => refused(problem),
            }
        }
        (Command::Crds, _) => print_crds().map(|()| ExitCode::SUCCESS),
        _ => print(&format!("liqo {VERSION}\n")).map(|()| ExitCode::SUCCESS),
    }
}

fn print_crds() -> anyhow::Result<()> {
    let mut text = String::new();
    for crd in liqo_api::crds() {
        let yaml = serde_saphyr::to_string(&crd).context("cannot write a definition as YAML")?;
        text.push_str(&format!("---\n{}\n", yaml.trim_end()));
    }
    print(&text)
}

fn print(text: &str) -> anyhow::Result<()> {
    std::io::stdout().lock().write_all(text.as_bytes()).context("cannot print")
}
