//! The identity of a cluster as objects carry it.

use kube::KubeSchema;
use serde::{Deserialize, Serialize};

use crate::names::{Identity, InvalidName};

/// Which cluster is meant.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, KubeSchema)]
pub struct ClusterIdentity {
    /// What identifies the cluster for good, such as a UUID.
    #[serde(rename = "clusterID")]
    #[schemars(schema_with = "crate::schema::cluster_id")]
    pub cluster_id: String,

    /// What people call the cluster.
    #[serde(rename = "clusterName")]
    #[schemars(schema_with = "crate::schema::cluster_name")]
    pub cluster_name: String,
}

impl ClusterIdentity {
    /// The same identity, checked: names are formed only from this.
    pub fn parse(&self) -> Result<Identity, InvalidName> {
        Ok(Identity { id: self.cluster_id.parse()?, name: self.cluster_name.parse()? })
    }
}

impl From<Identity> for ClusterIdentity {
    fn from(identity: Identity) -> Self {
        Self { cluster_id: identity.id.into(), cluster_name: identity.name.into() }
    }
}
