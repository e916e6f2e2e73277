//! Logs of liqo's pods, merged: by time, or as they come.

mod follow;
mod merge;
mod select;
mod stream;

use std::time::Duration;

use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::Pod;
use kube::Api;

use crate::installation::{self, Installation, MANAGER, OURS, Unread};

pub use select::Source;

/// Which logs are wanted.
#[derive(Debug, Clone, Default)]
pub struct LogRequest {
    /// A component such as `controller-manager`, or a pod; all components if there is none.
    pub component: Option<String>,
    /// Of several replicas, also those that only stand by.
    pub all: bool,
    /// Of the containers before the last restart.
    pub previous: bool,
    /// Only this many lines of each, from the end.
    pub tail: Option<u32>,
    /// Only what is younger.
    pub since: Option<Duration>,
}

/// One line of a log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    /// Who wrote it.
    pub source: Source,
    /// The time that the node noted, as Kubernetes writes it.
    pub time: String,
    /// What was written.
    pub text: String,
}

/// Something to know about the logs that are shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Remark {
    /// Replicas that only stand by are left out.
    StandbyLeftOut {
        /// How many there are in all.
        replicas: usize,
    },
    /// A log could not be read.
    Unreadable {
        /// Whose.
        source: Source,
        /// Why.
        why: String,
    },
}

/// What is told while logs are read.
#[derive(Debug)]
pub enum Told {
    /// Whose logs will be told, before the first line of each.
    Sources(Vec<Source>),
    /// A line.
    Line(Line),
    /// Something about them.
    Remark(Remark),
}

/// Why there are no logs.
#[derive(Debug, thiserror::Error)]
pub enum LogError {
    /// The pods could not be read.
    #[error(transparent)]
    Unread(#[from] Unread),
    /// There is no pod at all.
    #[error("no pod of liqo is in namespace {namespace}. Is it installed? See liqoctl status")]
    NoPods {
        /// Where it was looked for.
        namespace: String,
    },
    /// There is none of this component.
    #[error("nothing of liqo is called {wanted:?}. There is: {}", known.join(", "))]
    Unknown {
        /// What was asked for.
        wanted: String,
        /// Components and pods.
        known: Vec<String>,
    },
    /// None of the logs could be read.
    #[error("none of the logs could be read")]
    Unreadable,
    /// Nobody wants to hear more.
    #[error("cannot write what was read: {0}")]
    Closed(#[from] std::io::Error),
}

/// Where lines go.
pub trait Sink: FnMut(&Told) -> std::io::Result<()> {}

impl<F: FnMut(&Told) -> std::io::Result<()>> Sink for F {}

impl Installation {
    /// Tells the lines that are there, of all pods in the order of their times.
    pub async fn logs(&self, request: &LogRequest, mut tell: impl Sink) -> Result<(), LogError> {
        let (sources, left_out) = self.log_sources(request).await?;
        if let Some(remark) = left_out {
            tell(&Told::Remark(remark))?;
        }
        tell(&Told::Sources(sources.clone()))?;
        merge::tell(&self.pods_api(), request, sources, &mut tell).await
    }

    /// Tells the lines that are there, and those that come; of restarted containers and new pods, too. Does not end by
    /// itself.
    pub async fn follow_logs(&self, request: &LogRequest, mut tell: impl Sink) -> Result<(), LogError> {
        let (_, left_out) = self.log_sources(request).await?;
        if let Some(remark) = left_out {
            tell(&Told::Remark(remark))?;
        }
        follow::tell(self, request, &mut tell).await
    }

    pub(crate) fn pods_api(&self) -> Api<Pod> {
        Api::namespaced(self.client.clone(), &self.namespace)
    }

    async fn log_sources(&self, request: &LogRequest) -> Result<(Vec<Source>, Option<Remark>), LogError> {
        let (pods, lease) = tokio::join!(self.list::<Pod>(OURS), self.get::<Lease>(MANAGER));
        // Without a leader, or without the right to know it, all replicas are shown.
        let holder = lease.ok().and_then(|lease| lease.spec?.holder_identity);
        let leader = holder.as_deref().map(installation::pod_of);
        select::select(&pods?, leader, request, &self.namespace)
    }
}

#[cfg(test)]
mod tests;
