//! `liqoctl`: what a person types.
//!
//! Data goes to standard output, everything else to standard error. Exit codes: see [`EXIT_CODES`].
//!
//! * [`command`]: all commands and flags, for the generated reference
//! * [`main`]: the program; which name it was called by decides between `liqoctl` and `kubectl liqo`
//! * `access`: which cluster is meant, and how to talk to it; `style` and `progress`: how things look
//! * a module per command: arguments and wiring; the work is done by the crates `liqo-*`

mod access;
mod add;
mod bundle;
mod check;
mod contract;
mod drain;
mod duration;
mod generate_add_command;
mod install;
mod logs;
mod offer;
mod offloading;
mod output;
mod part;
mod peer;
mod peering;
mod plugin;
mod pods;
mod policy;
mod progress;
mod sandbox;
mod status;
mod style;
mod table;
mod token;
mod uninstall;
mod version;

use std::process::ExitCode;

use clap::{Args, CommandFactory, FromArgMatches, Parser, Subcommand};
use clap_complete::Shell;

use access::Access;
use plugin::Program;

/// How every command ends, as the help tells it.
pub const EXIT_CODES: &str = "Exit codes:
  0    done, and where something was looked at: it is well
  1    failed, not installed, or not well; the reason is on standard error
  2    wrong usage
  130  interrupted
`sandbox kubectl` and `sandbox exec` end with the code of what they ran.";

/// Exit code of a command that was interrupted, as shells count.
pub(crate) const INTERRUPTED: u8 = 130;

/// Kubernetes clusters that lend each other capacity.
#[derive(Debug, Parser)]
#[command(name = "liqoctl", version, disable_help_subcommand = true, after_help = EXAMPLES)]
#[command(after_long_help = format!("{EXAMPLES}\n\n{EXIT_CODES}"))]
struct Arguments {
    #[command(subcommand)]
    command: Command,
    #[command(flatten)]
    environment: access::Environment,
    #[command(flatten)]
    flags: access::Flags,
}

const EXAMPLES: &str = "Examples:
  # Can liqo be installed here? Install it, and see that it is well
  liqoctl check --pre
  liqoctl install
  liqoctl check

  # Let this cluster borrow from another one: run what this prints there
  liqoctl generate-add-command --context provider
  liqoctl peer --remote-context provider      # or both sides at once
  liqoctl status peer provider

  # Let the pods of a namespace run there, too
  liqoctl offload namespace shop
  liqoctl status namespace shop
  liqoctl pods -n shop

  # Four real Kubernetes clusters on this machine
  sudo liqoctl sandbox up

  # Complete commands with the tab key in this shell
  source <(liqoctl completion bash)";

const COMPLETION_EXAMPLES: &str = "Examples:
  source <(liqoctl completion bash)                                   # in this shell
  liqoctl completion bash > /etc/bash_completion.d/liqoctl            # in every new one
  liqoctl completion zsh > \"${fpath[1]}/_liqoctl\"
  liqoctl completion fish > ~/.config/fish/completions/liqoctl.fish";

#[derive(Debug, Subcommand)]
enum Command {
    /// Show how liqo is in a cluster: identity, versions, pods, peers, and what is wrong
    #[command(after_help = status::EXAMPLES)]
    Status(OnCluster<status::Arguments>),
    /// Check that everything is as it should be, with a hint for what is not
    #[command(after_help = check::EXAMPLES)]
    Check(OnCluster<check::Arguments>),
    /// Print the logs of liqo's pods
    #[command(after_help = logs::EXAMPLES)]
    Logs(OnCluster<logs::Arguments>),
    /// Collect what a bug report needs into an archive, secrets removed
    #[command(after_help = bundle::EXAMPLES)]
    Bundle(OnCluster<bundle::Arguments>),
    /// Show the version of this program and of what the cluster runs
    #[command(after_help = version::EXAMPLES)]
    Version(OnCluster<version::Arguments>),
    /// Install liqo to a cluster, or upgrade it
    #[command(after_help = install::EXAMPLES)]
    Install(Box<OnCluster<install::Arguments>>),
    /// Remove liqo from a cluster
    #[command(after_help = uninstall::EXAMPLES)]
    Uninstall(OnCluster<uninstall::Arguments>),
    /// Print the command by which another cluster adds this one
    #[command(name = "generate-add-command", after_help = generate_add_command::EXAMPLES)]
    GenerateAdd(OnCluster<generate_add_command::Arguments>),
    /// Make another cluster known and borrow from it
    #[command(after_help = add::EXAMPLES)]
    Add(Box<OnCluster<add::Arguments>>),
    /// Borrow from another cluster
    #[command(after_help = peer::EXAMPLES)]
    Peer(Box<OnCluster<peer::Arguments>>),
    /// Neither borrow from another cluster nor lend to it any more; it stays known
    #[command(after_help = part::UNPEER_EXAMPLES)]
    Unpeer(OnCluster<part::Unpeer>),
    /// Part from another cluster and forget it
    #[command(after_help = part::EXAMPLES)]
    Remove(OnCluster<part::Arguments>),
    /// Tokens by which other clusters come in the first time
    #[command(after_help = token::EXAMPLES)]
    Token(OnCluster<token::Arguments>),
    /// Extend a namespace to other clusters
    #[command(after_help = offloading::offload::EXAMPLES)]
    Offload(OnCluster<offloading::offload::Arguments>),
    /// Bring a namespace home from other clusters
    #[command(after_help = offloading::unoffload::EXAMPLES)]
    Unoffload(OnCluster<offloading::unoffload::Arguments>),
    /// Show the pods of offloaded namespaces: where they run, on which node there, and why one does not
    #[command(after_help = pods::EXAMPLES, mut_arg("namespace", |it| it.help(pods::NAMESPACE_HELP)))]
    Pods(OnCluster<pods::Arguments>),
    /// Move pods away from another cluster, before it is worked on
    #[command(after_help = drain::EXAMPLES)]
    Drain(OnCluster<drain::Arguments>),
    /// What is offered to this cluster and by it; accept or refuse it
    #[command(after_help = offer::EXAMPLES)]
    Offer(OnCluster<offer::Arguments>),
    /// What was agreed on with other clusters, and whether it is what both signed
    #[command(after_help = contract::EXAMPLES)]
    Contract(OnCluster<contract::Arguments>),
    /// What this cluster shares with whom, how an offer comes about, and what a change would change
    #[command(after_help = policy::EXAMPLES)]
    Policy(OnCluster<policy::Arguments>),
    /// Several real Kubernetes clusters on this machine, gone without a trace when no longer needed
    Sandbox(Box<sandbox::Arguments>),
    /// Print the script that completes liqoctl's commands in a shell
    #[command(after_help = COMPLETION_EXAMPLES)]
    Completion {
        /// The shell
        #[arg(value_enum)]
        shell: Shell,
    },
}

/// A command that talks to a cluster: the flags that say which one may stand before or after its name.
///
/// They are not global in clap's sense, as `sandbox kubectl CLUSTER -n …` must go on to mean kubectl's.
#[derive(Debug, Args)]
struct OnCluster<T: Args> {
    #[command(flatten)]
    command: T,
    #[command(flatten)]
    flags: access::Flags,
}

/// What was said before a command's name; commands with commands of their own open it with what is said after those.
#[derive(Debug)]
pub(crate) struct Door {
    environment: access::Environment,
    flags: access::Flags,
}

impl Door {
    /// Which cluster is meant.
    pub(crate) fn open(&self, later: access::Flags) -> anyhow::Result<Access> {
        Access::new(self.environment.clone(), self.flags.then(later))
    }
}

/// All commands and flags.
pub fn command() -> clap::Command {
    Arguments::command()
}

/// The program.
pub fn main() -> ExitCode {
    // Two TLS implementations may be linked in by different crates; the choice is made here, once.
    if rustls::crypto::aws_lc_rs::default_provider().install_default().is_err() {
        eprintln!("error: another TLS implementation was chosen before this program started");
        return ExitCode::FAILURE;
    }
    let mut words = std::env::args_os();
    let program = Program::called(words.next().as_deref());
    if program == Program::KubectlComplete {
        return plugin::complete(&words.collect::<Vec<_>>(), known_clusters);
    }
    let mut command = program.rename(command());
    let matches = command.get_matches_mut();
    let arguments = match Arguments::from_arg_matches(&matches) {
        Ok(arguments) => arguments,
        Err(error) => error.format(&mut command).exit(),
    };
    match arguments.run() {
        Ok(code) => code,
        Err(error) if output::is_closed_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// The clusters that are known where the words lead; none if that takes long, as somebody waits at the keyboard.
fn known_clusters(words: &[String]) -> Vec<(String, String)> {
    let environment = access::Environment::of_process();
    let names = async {
        let connection = Access::new(environment, access::Flags::of_words(words))?.connect().await?;
        let clusters = peering::known::list(&connection).await?;
        anyhow::Ok(clusters.iter().map(peering::known::suggestion).collect())
    };
    run_briefly(names).unwrap_or_default()
}

/// Runs something that nobody misses if it takes long.
fn run_briefly<T>(work: impl Future<Output = anyhow::Result<T>>) -> Option<T> {
    const PATIENCE: std::time::Duration = std::time::Duration::from_secs(2);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().ok()?;
    let done = runtime.block_on(async { tokio::time::timeout(PATIENCE, work).await });
    runtime.shutdown_background();
    done.ok()?.ok()
}

impl Arguments {
    fn run(self) -> anyhow::Result<ExitCode> {
        let access = |flags: access::Flags| Access::new(self.environment.clone(), self.flags.then(flags));
        let door = |flags: access::Flags| Door {
            environment: self.environment.clone(),
            flags: self.flags.then(flags),
        };
        match self.command {
            Command::Status(it) => look(it.command.run(&door(it.flags))),
            Command::Check(it) => look(it.command.run(&access(it.flags)?)),
            Command::Logs(it) => look(it.command.run(&access(it.flags)?)),
            Command::Bundle(it) => look(it.command.run(&access(it.flags)?)),
            Command::Version(it) => look(it.command.run(&access(it.flags)?)),
            Command::Install(it) => run(it.command.run(&access(it.flags)?)),
            Command::Uninstall(it) => run(it.command.run(&access(it.flags)?)),
            Command::GenerateAdd(it) => look(it.command.run(&access(it.flags)?)),
            Command::Add(it) => look(it.command.run(&access(it.flags)?)),
            Command::Peer(it) => look(it.command.run(&access(it.flags)?)),
            Command::Unpeer(it) => look(it.command.run(&access(it.flags)?)),
            Command::Remove(it) => look(it.command.run(&door(it.flags))),
            Command::Token(it) => look(it.command.run(&door(it.flags))),
            Command::Offload(it) => look(it.command.run(&door(it.flags))),
            Command::Unoffload(it) => look(it.command.run(&door(it.flags))),
            Command::Pods(it) => look(it.command.run(&access(it.flags)?)),
            Command::Drain(it) => look(it.command.run(&door(it.flags))),
            Command::Offer(it) => look(it.command.run(&door(it.flags))),
            Command::Contract(it) => look(it.command.run(&door(it.flags))),
            Command::Policy(it) => look(it.command.run(&door(it.flags))),
            Command::Sandbox(arguments) => run(arguments.run()),
            Command::Completion { shell } => {
                let mut script = Vec::new();
                clap_complete::generate(shell, &mut command(), "liqoctl", &mut script);
                output::write(&script)?;
                Ok(ExitCode::SUCCESS)
            }
        }
    }
}

/// Runs a command that knows by itself what to do when it is interrupted.
fn run(work: impl Future<Output = anyhow::Result<ExitCode>>) -> anyhow::Result<ExitCode> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let done = runtime.block_on(work);
    // A name that is still being looked up in the background must not keep the user from the answer.
    runtime.shutdown_background();
    done
}

/// Runs a command that only looks: an interruption ends it at once.
fn look(work: impl Future<Output = anyhow::Result<ExitCode>>) -> anyhow::Result<ExitCode> {
    run(async {
        tokio::select! {
            // Listening begins before the work does: who is interrupted in between ends with the same code.
            biased;
            interrupted = tokio::signal::ctrl_c() => {
                interrupted?;
                Ok(ExitCode::from(INTERRUPTED))
            }
            done = work => done,
        }
    })
}

#[cfg(test)]
mod tests;
