//! Which cluster a command is about, and a client for it.
//!
//! The choice follows kubectl: `--kubeconfig`, else the files of `$KUBECONFIG` merged, else `~/.kube/config`, else the
//! pod that this runs in. What kubectl does not do: a context that none of them has, but a running sandbox does, is
//! taken from the sandbox.

mod failure;
mod kubeconfig;
mod proxy;
mod sandbox;

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context as _;
use clap::{ArgAction, Args, Parser};
use k8s_openapi::apimachinery::pkg::version::Info;
use kube::{Client, Config};
use liqo_api::names::{InvalidName, NamespaceName};
use liqo_inspect::Server;
use liqo_kit::telemetry::{self, LogFormat};
use liqo_sandbox::{Place, Sandbox};

pub(crate) use failure::{AccessError, Target, Trouble};

use crate::style::{Colour, Style};

/// The namespace that liqo is installed to.
pub(crate) const DEFAULT_NAMESPACE: &str = "liqo";
/// An API server that does not take a connection for this long is not reachable for a person who waits.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// Until the first answer, exec plugins not counted: what is not there must be said within ten seconds.
const FIRST_ANSWER: Duration = Duration::from_secs(9);
/// Longer than an API server works on any request of ours.
const READ_TIMEOUT: Duration = Duration::from_secs(30);

/// Flags of every command that talks to a cluster.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Global options")]
pub(crate) struct Flags {
    /// The kubeconfig file [default: the files of $KUBECONFIG, else ~/.kube/config, else the pod's service account]
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// The context in it, or the name of a cluster of a running sandbox [default: the current context]
    #[arg(long, value_name = "NAME")]
    context: Option<String>,
    /// The namespace that liqo is installed in [default: liqo]
    #[arg(short, long, value_name = "NAME", value_parser = parse_namespace)]
    namespace: Option<String>,
    /// Say more on standard error: -v what is done, -vv requests too, -vvv everything
    #[arg(short, long, action = ArgAction::Count)]
    verbose: u8,
    /// When to use colours; $NO_COLOR is respected [default: auto]
    #[arg(long, visible_alias = "color", value_name = "WHEN", value_enum)]
    colour: Option<Colour>,
}

impl Flags {
    /// Those among the words of a command that is still being typed; the later one counts.
    pub(crate) fn of_words(words: &[String]) -> Self {
        let value = |names: &[&str]| {
            let mut found = None;
            let mut words = words.iter();
            while let Some(word) = words.next() {
                let (name, value) =
                    word.split_once('=').map_or((word.as_str(), None), |(name, value)| (name, Some(value)));
                if names.contains(&name) {
                    found = value.map(str::to_owned).or_else(|| words.next().cloned());
                }
            }
            found
        };
        Self {
            kubeconfig: value(&["--kubeconfig"]).map(PathBuf::from),
            context: value(&["--context"]),
            namespace: value(&["--namespace", "-n"]),
            ..Self::default()
        }
    }

    /// Those before the command's name, then those after it: the later one counts.
    pub(crate) fn then(&self, later: Self) -> Self {
        let earlier = self.clone();
        Self {
            kubeconfig: later.kubeconfig.or(earlier.kubeconfig),
            context: later.context.or(earlier.context),
            namespace: later.namespace.or(earlier.namespace),
            verbose: later.verbose.saturating_add(earlier.verbose),
            colour: later.colour.or(earlier.colour),
        }
    }
}

/// What the environment says; arguments only because configuration has one door.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct Environment {
    #[arg(id = "env-kubeconfig", long = "env-kubeconfig", env = "KUBECONFIG", hide = true)]
    kubeconfig: Option<OsString>,
    #[arg(id = "env-home", long = "env-home", env = "HOME", hide = true)]
    home: Option<PathBuf>,
    #[arg(id = "env-no-color", long = "env-no-color", env = "NO_COLOR", hide = true)]
    no_color: Option<OsString>,
    #[arg(id = "env-term", long = "env-term", env = "TERM", hide = true)]
    term: Option<OsString>,
    #[arg(id = "env-in-cluster", long = "env-in-cluster", env = "KUBERNETES_SERVICE_HOST", hide = true)]
    in_cluster: Option<OsString>,
    #[command(flatten)]
    proxy: proxy::Variables,
    #[arg(
        id = "env-sandbox-name",
        long = "env-sandbox-name",
        env = "LIQO_SANDBOX_NAME",
        default_value = "default",
        hide = true
    )]
    sandbox_name: String,
    #[arg(id = "env-sandbox-dir", long = "env-sandbox-dir", env = "LIQO_SANDBOX_STATE_DIR", default_value = Place::DEFAULT_BASE, hide = true)]
    sandbox_dir: PathBuf,
}

impl Environment {
    /// What the environment of this process says.
    pub(crate) fn of_process() -> Self {
        #[derive(Parser)]
        struct Nothing {
            #[command(flatten)]
            environment: Environment,
        }
        Nothing::try_parse_from(["liqoctl"]).map(|it| it.environment).unwrap_or_default()
    }
}

/// What the user asked for, before anything is read or called.
#[derive(Debug, Clone)]
pub(crate) struct Access {
    environment: Environment,
    flags: Flags,
}

/// A cluster that has answered.
#[derive(Clone)]
pub(crate) struct Connection {
    /// Requests that take longer than half a minute fail.
    pub(crate) client: Client,
    /// For what goes on for as long as the user likes: logs that are followed.
    pub(crate) streams: Client,
    /// How the client was made.
    pub(crate) config: Config,
    /// What was reached, for messages.
    pub(crate) target: Target,
    /// What the API server said of itself.
    pub(crate) kubernetes: Info,
    /// Where liqo is, or will be.
    pub(crate) namespace: String,
}

impl Connection {
    /// What answered, for those who look at it.
    pub(crate) fn server(&self) -> Server {
        Server { address: self.target.to_string(), version: self.kubernetes.git_version.clone() }
    }
}

impl Access {
    /// Takes the flags and starts logging as they say.
    pub(crate) fn new(environment: Environment, flags: Flags) -> anyhow::Result<Self> {
        telemetry::init(LogFormat::Plain, filter(flags.verbose)).context("cannot start logging")?;
        Ok(Self { environment, flags })
    }

    /// The same user with another cluster in mind; a kubeconfig that is not given is the same one.
    pub(crate) fn other(
        &self,
        kubeconfig: Option<PathBuf>,
        context: Option<String>,
        namespace: Option<String>,
    ) -> Self {
        let flags = Flags {
            // The context of one file means nothing in another.
            context,
            kubeconfig: kubeconfig.or_else(|| self.flags.kubeconfig.clone()),
            namespace: namespace.or_else(|| self.flags.namespace.clone()),
            ..self.flags.clone()
        };
        Self { environment: self.environment.clone(), flags }
    }

    /// The namespace of liqo.
    pub(crate) fn namespace(&self) -> &str {
        self.flags.namespace.as_deref().unwrap_or(DEFAULT_NAMESPACE)
    }

    /// The namespace that was said with `-n`, for commands that mean another one than Liqo's by it.
    pub(crate) fn chosen_namespace(&self) -> Option<&str> {
        self.flags.namespace.as_deref()
    }

    /// The sandboxes that run on this machine, for those who may look at them.
    pub(crate) fn sandboxes(&self) -> Vec<Sandbox> {
        sandbox::running(&self.environment)
    }

    /// How standard output looks.
    pub(crate) fn stdout(&self) -> Style {
        Style::of(&std::io::stdout(), self.colour())
    }

    /// How standard error looks.
    pub(crate) fn stderr(&self) -> Style {
        Style::of(&std::io::stderr(), self.colour())
    }

    fn colour(&self) -> Colour {
        let unwanted = self.environment.no_color.as_ref().is_some_and(|value| !value.is_empty())
            || self.environment.term.as_ref().is_some_and(|term| term == "dumb");
        match self.flags.colour {
            None | Some(Colour::Auto) if unwanted => Colour::Never,
            None => Colour::Auto,
            Some(colour) => colour,
        }
    }

    /// A client for the cluster that was asked for, which has answered once.
    pub(crate) async fn connect(&self) -> Result<Connection, AccessError> {
        let (mut config, target) = self.config().await?;
        config.connect_timeout = Some(CONNECT_TIMEOUT);
        let failed = |error: kube::Error| target.explain(&error);
        let streams = Client::try_from(config.clone()).map_err(failed)?;
        config.read_timeout = Some(READ_TIMEOUT);
        config.reset_reader_on_write = true;
        let client = Client::try_from(config.clone()).map_err(failed)?;
        let answer = tokio::time::timeout(FIRST_ANSWER, client.apiserver_version()).await;
        let kubernetes = answer.map_err(|_| target.silent(FIRST_ANSWER))?.map_err(failed)?;
        let namespace = self.namespace().to_owned();
        tracing::info!(%target, version = kubernetes.git_version, "connected");
        Ok(Connection { client, streams, config, target, kubernetes, namespace })
    }

    async fn config(&self) -> Result<(Config, Target), AccessError> {
        let chosen = kubeconfig::choose(&self.environment, &self.flags)?;
        if let Some(note) = &chosen.note {
            eprintln!("note: {note}");
        }
        chosen.load(&self.environment.proxy).await
    }
}

/// A name that is none would end up in the middle of a URL.
pub(crate) fn parse_namespace(text: &str) -> Result<String, InvalidName> {
    text.parse::<NamespaceName>().map(String::from)
}

/// Ours and the Kubernetes client's; what lies below speaks last.
fn filter(verbose: u8) -> &'static str {
    match verbose {
        0 => "off,liqoctl=warn,liqo_inspect=warn,liqo_install=warn,liqo_chart=warn",
        1 => "warn,liqoctl=info,liqo_inspect=info,liqo_install=info,liqo_chart=info,kube=info",
        2 => {
            "info,liqoctl=debug,liqo_inspect=debug,liqo_install=debug,liqo_chart=debug,kube=debug,kube_client=debug"
        }
        _ => {
            "debug,liqoctl=trace,liqo_inspect=trace,liqo_install=trace,liqo_chart=trace,kube=trace,kube_client=trace"
        }
    }
}

#[cfg(test)]
mod tests;
