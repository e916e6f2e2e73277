//! The hash-chained log of contracts.

use std::path::Path;

use anyhow::{Context as _, Result, bail};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::ListParams;
use kube::{Api, ResourceExt};
use liqo_core::canonical::Digest;
use liqo_core::names::ClusterId;
use liqo_kit::{Index as _, Key};
use liqo_peering::log::{Log, PAGE_LABEL};
use liqo_peering::paper::Check;
use serde::Serialize;

use super::verify::documents;
use crate::access::Connection;

/// The key under which a page says whose log it is.
const CLUSTER_ID: &str = "cluster-id";

/// What the log says of itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct LogView {
    #[serde(rename = "clusterID")]
    pub(super) cluster_id: String,
    /// How many entries there are.
    pub(super) length: u64,
    /// The hash of the last entry: who keeps it notices later whether anything before it was changed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) head: Option<String>,
}

/// A log and whose it is.
pub(super) struct Read {
    log: Log,
    cluster: ClusterId,
}

impl Read {
    /// The log of a cluster.
    pub(super) async fn from_cluster(connection: &Connection) -> Result<Self> {
        let api: Api<ConfigMap> = Api::namespaced(connection.client.clone(), &connection.namespace);
        let pages = ListParams::default().labels(&format!("{PAGE_LABEL}=true"));
        let found = api.list(&pages).await.map_err(|error| connection.target.explain(&error));
        let found = found.context("cannot read the contract log")?;
        let me = crate::peering::own::require_identity(connection).await?;
        Self::of(found.items, Some(me.id.as_str()))
    }

    /// A log in a file: its ConfigMaps as `kubectl get -o yaml` prints them.
    pub(super) fn from_file(path: &Path) -> Result<Self> {
        let objects = documents(path)?;
        let read = |object| serde_json::from_value::<ConfigMap>(object);
        let pages: Result<Vec<ConfigMap>, _> = objects.into_iter().map(read).collect();
        Self::of(
            pages.with_context(|| format!("{} has no ConfigMaps of a contract log", path.display()))?,
            None,
        )
    }

    fn of(pages: Vec<ConfigMap>, cluster: Option<&str>) -> Result<Self> {
        let told = pages.iter().find_map(|page| page.data.as_ref()?.get(CLUSTER_ID).cloned());
        let Some(cluster) = cluster.map(str::to_owned).or(told) else {
            bail!("there is no page of a contract log, or it does not say whose log it is");
        };
        let mut log = Log::default();
        for page in pages {
            let key = Key::namespaced(&page.namespace().unwrap_or_default(), &page.name_any());
            log.apply(&key, page);
        }
        Ok(Self { log, cluster: cluster.parse()? })
    }

    /// Checks the whole, and that it notes terms with this digest.
    pub(super) fn check(&self, digest: Option<&Digest>) -> (LogView, Vec<Check>) {
        let mut checks = Vec::new();
        let mut note =
            |what: &str, problem: Option<String>| checks.push(Check { what: what.to_owned(), problem });
        let checked = self.log.check(&self.cluster);
        note("the contract log is complete and unchanged", checked.as_ref().err().map(ToString::to_string));
        if let Some(digest) = digest {
            let missing = (!self.log.has(digest)).then(|| format!("it has no entry about {digest}"));
            note("the contract log notes that these terms were agreed on", missing);
        }
        let head = checked.ok();
        let view = LogView {
            cluster_id: self.cluster.to_string(),
            length: head.map_or(0, |head| head.length),
            head: head.map(|head| head.hash.to_string()),
        };
        (view, checks)
    }
}
