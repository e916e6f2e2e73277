//! `liqoctl sandbox`: arguments and wiring; the work is done by the crate `liqo-sandbox`.

mod act;
mod show;
mod up;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Result;
use clap::{Args, Subcommand};
use liqo_sandbox::{Options, Owner, Place, RelayHost, Sandbox, Sources};

use crate::duration::parse_delay;
use crate::output::Format;

/// Arguments of all sandbox commands.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES, disable_help_subcommand = true)]
pub(crate) struct Arguments {
    #[command(flatten)]
    common: Common,
    #[command(subcommand)]
    command: Command,
}

const EXAMPLES: &str = "Examples:
  liqoctl sandbox up                                        # consumer, broker, provider-a, provider-b
  liqoctl sandbox up --clusters a,b --nodes 2               # two clusters of two nodes
  liqoctl sandbox up --name scale --clusters big --nodes 0 --hollow-nodes 500
  export KUBECONFIG=$(liqoctl sandbox status -o json | jq -r .kubeconfig)
  liqoctl sandbox kubectl consumer -- get pods -A
  liqoctl sandbox cut consumer provider-a                   # and later: liqoctl sandbox heal
  liqoctl sandbox kill provider-a apiserver                 # and later: liqoctl sandbox start provider-a
  liqoctl sandbox down";

#[derive(Debug, Args)]
struct Common {
    /// Which sandbox; several with different names live side by side
    #[arg(long, global = true, default_value = "default", env = "LIQO_SANDBOX_NAME")]
    name: String,
    /// Directory below which sandboxes keep everything
    #[arg(long, global = true, default_value = Place::DEFAULT_BASE, env = "LIQO_SANDBOX_STATE_DIR", value_name = "DIR")]
    state_dir: PathBuf,
    /// Cache that `make tools` fills with Kubernetes programs [default: ~/.cache/liqo-rs]
    #[arg(long, global = true, env = "LIQO_TOOLS_DIR", value_name = "DIR")]
    tools_dir: Option<PathBuf>,
    /// Directory with ready-made Kubernetes programs; used where their version fits
    #[arg(long, global = true, env = "KUBEBUILDER_ASSETS", value_name = "DIR", hide = true)]
    kubebuilder_assets: Option<PathBuf>,
    /// Number of the process that the sandbox belongs to: once it is gone, `down --abandoned` removes the sandbox
    #[arg(long, global = true, env = "LIQO_SANDBOX_OWNER", value_name = "PID", hide = true)]
    owner: Option<u32>,
    #[arg(long, env = "XDG_CACHE_HOME", hide = true)]
    cache_home: Option<PathBuf>,
    #[arg(long, env = "HOME", hide = true)]
    home: Option<PathBuf>,
    #[arg(long, env = "PATH", hide = true)]
    search_path: Option<std::ffi::OsString>,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Start the clusters; does nothing when they run
    Up(up::Arguments),
    /// Remove every process, interface, namespace, cgroup and file of the sandbox
    Down {
        /// Every sandbox below the state directory
        #[arg(long)]
        all: bool,
        /// Every sandbox below the state directory that belonged to a process (LIQO_SANDBOX_OWNER) which is gone
        #[arg(long, conflicts_with = "all")]
        abandoned: bool,
    },
    /// Show clusters and components
    Status {
        /// Output format
        #[arg(short, long, value_enum)]
        output: Option<Format>,
    },
    /// Print a kubeconfig: of one cluster, or one with a context per cluster
    Kubeconfig {
        /// The cluster
        cluster: Option<String>,
    },
    /// Run kubectl against a cluster
    Kubectl {
        /// The cluster
        cluster: String,
        /// Arguments of kubectl
        #[arg(
            trailing_var_arg = true,
            allow_hyphen_values = true,
            required = true,
            value_name = "ARGUMENTS"
        )]
        arguments: Vec<std::ffi::OsString>,
    },
    /// Run a command in the network of a cluster's node
    Exec {
        /// The cluster
        cluster: String,
        /// Which of its nodes
        #[arg(long, default_value_t = 1)]
        node: u32,
        /// The command
        #[arg(trailing_var_arg = true, allow_hyphen_values = true, required = true, value_name = "COMMAND")]
        arguments: Vec<std::ffi::OsString>,
    },
    /// Print the log of a component
    Logs {
        /// The cluster
        cluster: String,
        /// The component, as `status -o wide` names it
        component: String,
        /// Only the last lines
        #[arg(long, value_name = "LINES")]
        tail: Option<usize>,
        /// Go on printing what is added
        #[arg(short, long)]
        follow: bool,
    },
    /// Give an image archive (OCI or Docker) to the nodes of clusters
    LoadImage {
        /// One or more clusters, then the archive
        #[arg(required = true, num_args = 2.., value_names = ["NAME", "FILE.tar"])]
        clusters_and_file: Vec<String>,
    },
    /// Drop all packets between two clusters (`host` is this machine)
    Cut {
        /// One end
        a: String,
        /// The other end
        b: String,
    },
    /// Delay all packets between two clusters, in each direction
    Delay {
        /// One end
        a: String,
        /// The other end
        b: String,
        /// How much later a packet arrives, e.g. 100ms; a round trip takes twice that
        #[arg(value_parser = parse_delay)]
        delay: Duration,
    },
    /// End all cuts and delays
    Heal,
    /// End a component politely; without a component, the whole cluster
    Stop(Target),
    /// Start what is not running
    Start(Target),
    /// End a component at once
    Kill(Target),
    /// Freeze a component where it is
    Pause(Target),
    /// Let a frozen component go on
    Resume(Target),
    /// Carry delayed frames (started by `delay`)
    #[command(hide = true)]
    Relay {
        /// What to delay
        plan: PathBuf,
    },
}

/// A cluster or a part of it.
#[derive(Debug, Args)]
struct Target {
    /// The cluster
    cluster: String,
    /// etcd, apiserver, controller-manager, scheduler, kwok, node, kubelet, containerd or kube-proxy; on one node
    /// only: node-2, node-2/kubelet
    component: Option<String>,
}

impl Common {
    fn place(&self) -> Result<Place> {
        Ok(Place::new(&self.state_dir, &self.name)?)
    }

    fn open(&self) -> Result<Sandbox> {
        Ok(Sandbox::open(&self.place()?)?)
    }

    /// A command for the user to type, with the name that this sandbox needs.
    fn hint(&self, command: &str) -> String {
        let name = if self.name == "default" { String::new() } else { format!(" --name {}", self.name) };
        format!("liqoctl sandbox {command}{name}")
    }

    fn options(&self) -> Options {
        let home = self.home.clone().unwrap_or_else(|| PathBuf::from("/root"));
        let cache = self.cache_home.clone().unwrap_or_else(|| home.join(".cache"));
        let cache = self.tools_dir.clone().unwrap_or_else(|| cache.join("liqo-rs"));
        let path = self.search_path.iter().flat_map(std::env::split_paths).collect();
        Options {
            sources: Sources { cache, assets: self.kubebuilder_assets.clone(), path },
            owner: self.owner.map(Owner::of),
        }
    }
}

/// The relay of `delay` is this program once more: it must go on after the command has ended.
fn relay_host() -> Result<RelayHost> {
    Ok(RelayHost::Program(std::env::current_exe()?, vec!["sandbox".into(), "relay".into()]))
}

impl Arguments {
    pub(crate) async fn run(self) -> Result<ExitCode> {
        let common = &self.common;
        match self.command {
            Command::Up(arguments) => return up::up(common, &arguments).await,
            Command::Down { all, abandoned } => act::down(common, all, abandoned)?,
            Command::Status { output } => return show::status(&common.open()?, output).await,
            Command::Kubeconfig { cluster } => show::kubeconfig(&common.open()?, cluster.as_deref())?,
            Command::Kubectl { cluster, arguments } => {
                return act::become_command(
                    common.open()?.cluster(&cluster)?.kubectl_command().args(arguments),
                );
            }
            Command::Exec { cluster, node, arguments } => {
                return act::become_command(
                    &mut common.open()?.cluster(&cluster)?.exec_command(node, arguments)?,
                );
            }
            Command::Logs { cluster, component, tail, follow } => {
                show::logs(&common.open()?, &cluster, &component, tail, follow).await?;
            }
            Command::LoadImage { clusters_and_file } => act::load_image(&common.open()?, &clusters_and_file)?,
            Command::Cut { a, b } => {
                common.open()?.cut(&a, &b, &relay_host()?).await?;
                eprintln!("{a} and {b} cannot reach each other. End it: {}", common.hint("heal"));
            }
            Command::Delay { a, b, delay } => {
                common.open()?.delay(&a, &b, delay, &relay_host()?).await?;
                eprintln!(
                    "packets between {a} and {b} arrive {delay:?} later, each way. End it: {}",
                    common.hint("heal")
                );
            }
            Command::Heal => {
                common.open()?.heal(&relay_host()?).await?;
                eprintln!("all cuts and delays are gone");
            }
            Command::Stop(target) => act::on(&common.open()?, &target, act::Act::Stop).await?,
            Command::Start(target) => act::on(&common.open()?, &target, act::Act::Start).await?,
            Command::Kill(target) => act::on(&common.open()?, &target, act::Act::Kill).await?,
            Command::Pause(target) => act::on(&common.open()?, &target, act::Act::Pause).await?,
            Command::Resume(target) => act::on(&common.open()?, &target, act::Act::Resume).await?,
            Command::Relay { plan } => liqo_sandbox::RelayPlan::read(&plan)?.run(|| println!("ready"))?,
        }
        Ok(ExitCode::SUCCESS)
    }
}
