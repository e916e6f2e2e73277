//! One client per cluster, over few connections.
//!
//! [`Clusters`] is the only place where clients of remote clusters are made. A cluster has one client, whoever
//! asks; new credentials replace it in place, so watches and queues that hold the [`Cluster`] use the new one
//! from their next request on; removing the cluster stops everything that runs under its token.

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::RwLock;
use tokio_util::sync::CancellationToken;

mod client;
mod credentials;
#[cfg(test)]
mod tests;
mod transport;

pub use client::{ClientConfig, client};
pub use credentials::Credentials;

/// Something that knows the client to use now. Ask again for each request or connection, do not keep it.
pub trait ClientSource: Send + Sync + 'static {
    /// The current client.
    fn client(&self) -> kube::Client;
}

impl ClientSource for kube::Client {
    fn client(&self) -> kube::Client {
        self.clone()
    }
}

/// Why no client could be made.
#[derive(Debug, thiserror::Error)]
pub enum ClusterError {
    /// The kubeconfig or a PEM is not what it should be.
    #[error("the credentials for cluster {cluster} are not usable: {reason}")]
    Credentials {
        /// Which cluster.
        cluster: String,
        /// What is wrong and what is expected.
        reason: String,
    },
    /// The client's TLS could not be set up from them.
    #[error("cannot set up a client for cluster {cluster}: {source}")]
    Client {
        /// Which cluster.
        cluster: String,
        /// Why.
        source: Box<kube::Error>,
    },
}

/// What [`Clusters::set`] did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// The cluster is new.
    Added,
    /// The credentials differ from the earlier ones; the client was replaced.
    Replaced,
    /// The same credentials as before; the client and its connections stay.
    Unchanged,
}

/// One remote cluster, shared by everything that talks to it.
#[derive(Clone)]
pub struct Cluster(Arc<Inner>);

struct Inner {
    id: String,
    current: RwLock<Current>,
    removed: CancellationToken,
}

struct Current {
    client: kube::Client,
    credentials: Credentials,
}

impl Cluster {
    /// The id it was registered under.
    pub fn id(&self) -> &str {
        &self.0.id
    }

    /// Cancelled when the cluster is removed; run everything that talks to it under a child of this.
    pub fn removed(&self) -> &CancellationToken {
        &self.0.removed
    }
}

impl ClientSource for Cluster {
    fn client(&self) -> kube::Client {
        self.0.current.read().client.clone()
    }
}

/// Makes a client from a configuration.
type Connect = Box<dyn Fn(&kube::Config) -> Result<kube::Client, kube::Error> + Send + Sync>;

/// The remote clusters, by id.
pub struct Clusters {
    connect: Connect,
    clusters: RwLock<BTreeMap<String, Cluster>>,
}

impl Clusters {
    /// No cluster yet; each will get a client with these limits.
    pub fn new(config: ClientConfig) -> Self {
        Self::connecting(move |credentials| client(credentials, &config))
    }

    /// No cluster yet; each will get a client made like this, for whoever wants to see or stop its requests.
    pub fn connecting(
        connect: impl Fn(&kube::Config) -> Result<kube::Client, kube::Error> + Send + Sync + 'static,
    ) -> Self {
        Self { connect: Box::new(connect), clusters: RwLock::default() }
    }

    /// Registers a cluster, or gives a registered one new credentials.
    pub fn set(&self, id: &str, credentials: Credentials) -> Result<(Cluster, Change), ClusterError> {
        if let Some(cluster) = self.get(id)
            && cluster.0.current.read().credentials == credentials
        {
            return Ok((cluster, Change::Unchanged));
        }
        let client = self.connect(id, &credentials)?;
        let current = Current { client, credentials };
        let mut clusters = self.clusters.write();
        if let Some(cluster) = clusters.get(id) {
            *cluster.0.current.write() = current;
            return Ok((cluster.clone(), Change::Replaced));
        }
        let cluster = Cluster(Arc::new(Inner {
            id: id.to_owned(),
            current: RwLock::new(current),
            removed: CancellationToken::new(),
        }));
        clusters.insert(id.to_owned(), cluster.clone());
        Ok((cluster, Change::Added))
    }

    /// The cluster with this id.
    pub fn get(&self, id: &str) -> Option<Cluster> {
        self.clusters.read().get(id).cloned()
    }

    /// The ids of all clusters, in order.
    pub fn ids(&self) -> Vec<String> {
        self.clusters.read().keys().cloned().collect()
    }

    /// Forgets a cluster and cancels its token. Returns whether there was one.
    pub fn remove(&self, id: &str) -> bool {
        let removed = self.clusters.write().remove(id);
        if let Some(cluster) = &removed {
            cluster.0.removed.cancel();
        }
        removed.is_some()
    }

    fn connect(&self, id: &str, credentials: &Credentials) -> Result<kube::Client, ClusterError> {
        let config = credentials
            .config()
            .map_err(|reason| ClusterError::Credentials { cluster: id.to_owned(), reason })?;
        (self.connect)(&config)
            .map_err(|source| ClusterError::Client { cluster: id.to_owned(), source: Box::new(source) })
    }
}
