//! `liqoctl offload`: extends a namespace to other clusters.

use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use clap::{Args, Subcommand, ValueEnum};
use kube::api::{Patch, PatchParams, PostParams};
use kube::{Api, ResourceExt};
use liqo_api::names::NAMESPACE_OFFLOADING;
use liqo_api::namespace_offloading::{NamespaceMappingStrategy, PodOffloadingStrategy};
use liqo_api::{NamespaceOffloading, NamespaceOffloadingSpec, annotations};
use liqo_install::names::FIELD_MANAGER;
use liqo_offloading::FailBack;
use serde_json::json;

use super::reflect::{Wanted, kinds, parse_kind};
use super::selector::{Pairs, Term, combine, parse_pairs, parse_term};
use super::{follow, see};
use crate::access::{Access, Connection};
use crate::duration::parse_span;
use crate::progress::Progress;
use crate::{Door, OnCluster};

/// Arguments of `offload`.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Extend a namespace to other clusters, or change where it extends to
    #[command(visible_alias = "ns", after_help = EXAMPLES)]
    Namespace(Box<OnCluster<Namespace>>),
}

pub(crate) const EXAMPLES: &str = "Examples:
  liqoctl offload namespace shop                                  # to all providers; pods may run here, too
  liqoctl offload namespace shop --pod-offloading-strategy Remote # pods run in other clusters only
  liqoctl offload namespace shop --selector tier=gold,!spot       # to those whose virtual nodes have these labels
  liqoctl offload namespace shop --selector tier=gold --selector 'zone in (a,b)'   # to these or those
  liqoctl offload namespace shop --selector ''                    # to all again
  liqoctl offload namespace shop --accepted-cluster-labels tier=gold --denied-cluster-labels spot=true
  liqoctl offload namespace shop --reflect example.com/Widget     # custom resources go along, where both sides permit it
  liqoctl offload namespace shop --fail-back                      # pods go back to a provider that was away, after 60 s
  liqoctl offload namespace shop --fail-back=false                # they stay where they are
  liqoctl status namespace shop                                   # where it is, and why not elsewhere

What is not said stays as it is, or has its default where the namespace was not offloaded. A narrower selector withdraws: pods
leave first, as their disruption budgets allow, within a minute. Ends with 0 when the namespace is everywhere where it should
be; with 1 when a cluster refuses it, or when the time is over. Running it again goes on.";

/// Arguments of `offload namespace`.
#[derive(Debug, Args)]
struct Namespace {
    /// The namespace
    #[arg(value_name = "NAMESPACE")]
    name: String,
    /// Where its pods may run [default: LocalAndRemote]
    #[arg(long, value_enum, ignore_case = true, value_name = "STRATEGY")]
    pod_offloading_strategy: Option<Pods>,
    /// What it is called in other clusters; cannot be changed [default: DefaultName]
    #[arg(long, value_enum, ignore_case = true, value_name = "STRATEGY")]
    namespace_mapping_strategy: Option<Mapping>,
    /// The clusters, by the labels of their virtual nodes, as tier=gold,!spot; given again: or those; empty: all
    #[arg(short = 'l', long, value_parser = parse_term, value_name = "SELECTOR")]
    selector: Vec<Term>,
    /// Labels that clusters must have, as key=value,key=value
    #[arg(long, value_parser = parse_pairs, value_name = "LABELS")]
    accepted_cluster_labels: Vec<Pairs>,
    /// Labels that clusters must not have, as key=value,key=value
    #[arg(long, value_parser = parse_pairs, value_name = "LABELS")]
    denied_cluster_labels: Vec<Pairs>,
    /// Custom resources to copy to the other clusters, as example.com/Widget; all that are wanted; empty: none
    #[arg(long, value_parser = parse_kind, value_delimiter = ',', value_name = "GROUP/KIND")]
    reflect: Vec<Wanted>,
    /// Pods that ran elsewhere while a provider was away go back when it has answered for so many seconds; false: they stay
    #[arg(long, value_name = "SECONDS", num_args = 0..=1, require_equals = true, default_missing_value = "true",
          value_parser = parse_fail_back)]
    fail_back: Option<String>,
    /// Do not wait until it is done
    #[arg(long)]
    no_wait: bool,
    /// How long to wait
    #[arg(long, value_name = "DURATION", default_value = "2m", value_parser = parse_span)]
    timeout: Duration,
}

/// Where pods may run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "PascalCase")]
enum Pods {
    /// Only in this cluster
    Local,
    /// Only in other clusters
    Remote,
    /// In any of them
    LocalAndRemote,
}

impl From<Pods> for PodOffloadingStrategy {
    fn from(pods: Pods) -> Self {
        match pods {
            Pods::Local => Self::Local,
            Pods::Remote => Self::Remote,
            Pods::LocalAndRemote => Self::LocalAndRemote,
        }
    }
}

/// What namespaces are called elsewhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "PascalCase")]
enum Mapping {
    /// With this cluster's name behind
    DefaultName,
    /// Like here
    EnforceSameName,
}

impl From<Mapping> for NamespaceMappingStrategy {
    fn from(mapping: Mapping) -> Self {
        match mapping {
            Mapping::DefaultName => Self::DefaultName,
            Mapping::EnforceSameName => Self::EnforceSameName,
        }
    }
}

impl Arguments {
    pub(crate) async fn run(self, door: &Door) -> Result<ExitCode> {
        match self.command {
            Command::Namespace(it) => it.command.run(&door.open(it.flags)?).await,
        }
    }
}

impl Namespace {
    async fn run(self, access: &Access) -> Result<ExitCode> {
        let connection = access.connect().await?;
        let mut progress = Progress::new(access.stderr());
        let name = &self.name;
        let Some((namespace, offloading)) = see(&connection, name).await? else {
            bail!(
                "there is no namespace {name} in {}: kubectl create namespace {name} makes one",
                connection.target
            );
        };
        if namespace.metadata.deletion_timestamp.is_some() {
            bail!("namespace {name} is being deleted");
        }
        match &offloading {
            Some(offloading) if offloading.metadata.deletion_timestamp.is_some() => bail!(
                "namespace {name} is coming home at this moment. Wait until it has: liqoctl unoffload namespace {name}"
            ),
            Some(offloading) => self.change(&connection, offloading, &mut progress).await?,
            None => {
                self.create(&connection).await?;
                progress.done(&format!("namespace {name} is offloaded"));
            }
        }
        if !self.no_wait {
            follow::settled(&connection, name, self.timeout, &mut progress).await?;
        }
        Ok(ExitCode::SUCCESS)
    }

    /// What the NamespaceOffloading is to say, given what it says.
    fn wanted(&self, now: &NamespaceOffloadingSpec) -> NamespaceOffloadingSpec {
        let mut spec = now.clone();
        if let Some(pods) = self.pod_offloading_strategy {
            spec.pod_offloading_strategy = pods.into();
        }
        if let Some(mapping) = self.namespace_mapping_strategy {
            spec.namespace_mapping_strategy = mapping.into();
        }
        let (accepted, denied) = (&self.accepted_cluster_labels, &self.denied_cluster_labels);
        if !(self.selector.is_empty() && accepted.is_empty() && denied.is_empty()) {
            spec.cluster_selector = combine(&self.selector, accepted, denied);
        }
        if let Some(kinds) = kinds(&self.reflect) {
            spec.reflect = kinds;
        }
        spec
    }

    async fn create(&self, connection: &Connection) -> Result<()> {
        let api: Api<NamespaceOffloading> = Api::namespaced(connection.client.clone(), &self.name);
        let mut object =
            NamespaceOffloading::new(NAMESPACE_OFFLOADING, self.wanted(&NamespaceOffloadingSpec::default()));
        object.metadata.annotations =
            self.fail_back.clone().map(|value| [(annotations::FAIL_BACK.to_owned(), value)].into());
        let params = PostParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PostParams::default() };
        let created = api.create(&params, &object).await;
        created
            .map_err(|error| connection.target.explain(&error))
            .with_context(|| format!("cannot offload namespace {}", self.name))?;
        Ok(())
    }

    async fn change(
        &self,
        connection: &Connection,
        offloading: &NamespaceOffloading,
        progress: &mut Progress,
    ) -> Result<()> {
        let (name, now, wanted) = (&self.name, &offloading.spec, self.wanted(&offloading.spec));
        if wanted.namespace_mapping_strategy != now.namespace_mapping_strategy {
            bail!(
                "namespace {name} is offloaded as {:?}, which cannot change while it is: what runs elsewhere could not move. \
                 Run liqoctl unoffload namespace {name} first",
                now.namespace_mapping_strategy
            );
        }
        let noted = offloading.annotations().get(annotations::FAIL_BACK);
        let notes = self.fail_back.as_ref().filter(|value| noted != Some(*value));
        if wanted == *now && notes.is_none() {
            progress.done(&format!("namespace {name} is offloaded like this already"));
            return Ok(());
        }
        let api: Api<NamespaceOffloading> = Api::namespaced(connection.client.clone(), name);
        let mut patch = json!({ "spec": {
            "podOffloadingStrategy": wanted.pod_offloading_strategy,
            "clusterSelector": wanted.cluster_selector,
            "reflect": wanted.reflect,
        } });
        if let Some(value) = notes {
            patch["metadata"] = json!({ "annotations": { annotations::FAIL_BACK: value } });
        }
        let params = PatchParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PatchParams::default() };
        let changed = api.patch(NAMESPACE_OFFLOADING, &params, &Patch::Merge(&patch)).await;
        changed
            .map_err(|error| connection.target.explain(&error))
            .with_context(|| format!("cannot change where namespace {name} extends to"))?;
        progress.done(&format!("namespace {name} is offloaded as you say now"));
        Ok(())
    }
}

/// A value of the annotation, as the manager reads it.
fn parse_fail_back(text: &str) -> Result<String, String> {
    FailBack::parse(text)
        .map(|_| text.to_owned())
        .map_err(|_| "expected nothing, a number of seconds from 10 to 86400, or false".to_owned())
}
