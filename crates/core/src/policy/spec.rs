//! A policy as a person writes it: the shape of `SharingPolicy.spec`.
//!
//! Everything is text or a plain number here; [`Policy::read`](super::Policy::read) turns it into a policy and says
//! of each field what is wrong with it. A field that is not known is refused rather than skipped: a restriction that
//! nobody reads would give away what its author wanted to keep.

use std::collections::BTreeMap;
use std::fmt;

use serde::de::{Deserializer, Error, Visitor};
use serde::{Deserialize, Serialize};

use crate::selector::{RequirementSpec, SelectorSpec};

/// What a SharingPolicy says.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct Spec {
    /// With whom; left out, with any cluster.
    pub peers: PeersSpec,
    /// `Allow` (the default) or `Deny`.
    pub action: Option<String>,
    /// `Automatic` (the default), or `Required`: somebody has to say yes to each cluster.
    pub approval: Option<String>,
    /// Names or patterns of the resources to share; left out, all.
    pub resources: Option<Vec<String>>,
    /// The nodes to share; left out, all.
    pub node_selector: SelectorSpec,
    /// Parts of these nodes that are lent apart from each other; left out, all nodes are one.
    pub pools: Vec<PoolSpec>,
    /// How much of every resource.
    pub share: ShareSpec,
    /// How much of particular resources; what is left out here is as in `share`.
    pub shares: BTreeMap<String, ResourceShareSpec>,
    /// Names or patterns of the storage classes that may be used; left out, all.
    pub storage_classes: Option<Vec<String>>,
    /// The storage class of volumes that name none.
    pub default_storage_class: Option<String>,
    /// Names or patterns of the exported services, as `namespace/name`; left out, none.
    pub services: Vec<String>,
    /// Names or patterns of the images that are told about; left out, none.
    pub images: Vec<String>,
    /// What it costs; left out, nothing.
    pub prices: Option<PricesSpec>,
    /// When: weekly windows of time; left out, always.
    pub windows: Vec<WindowSpec>,
    /// From when on.
    pub not_before: Option<String>,
    /// Until when.
    pub not_after: Option<String>,
    /// `Hard` (the default): more than was agreed is refused at admission. `Soft`: it is reported.
    pub enforcement: Option<String>,
    /// What contracts under this policy say.
    pub contract: ContractSpec,
    /// How the pods of these clusters run here.
    pub workloads: WorkloadsSpec,
}

/// Whom a policy is about. A cluster must be in the list, if there is one, and meet all requirements.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct PeersSpec {
    /// Cluster IDs.
    #[serde(rename = "clusterIDs")]
    pub cluster_ids: Vec<String>,
    /// Labels that must have exactly these values.
    pub match_labels: BTreeMap<String, String>,
    /// Further requirements on the labels.
    pub match_expressions: Vec<RequirementSpec>,
}

/// A part of the nodes. A node that two of them select belongs to the first; one that none selects is not shared.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct PoolSpec {
    /// What it is called; a DNS label.
    pub name: String,
    /// Its nodes; left out, all that belong to no other pool before it.
    pub node_selector: SelectorSpec,
    /// Labels for the nodes that stand for it at other clusters.
    pub labels: BTreeMap<String, String>,
}

/// How much of every resource.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct ShareSpec {
    /// Hundredths of what is free, 0 to 100; left out, the cluster's own percentage.
    pub percentage: Option<i64>,
    /// How many times the capacity is sold, such as `1.5`; at most three decimals, more than 0, at most 100.
    pub overcommit: Option<Amount>,
    /// `Down` (the default), `Up` or `Nearest`, where a share lies between two portions.
    pub rounding: Option<String>,
    /// Hundredths of all that the policy shares which one cluster gets at most, 0 to 100.
    pub per_peer_percentage: Option<i64>,
}

/// How much of one resource.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct ResourceShareSpec {
    /// As in [`ShareSpec`]; with a `cap` and no percentage, all up to the cap.
    pub percentage: Option<i64>,
    /// As in [`ShareSpec`].
    pub overcommit: Option<Amount>,
    /// As in [`ShareSpec`].
    pub rounding: Option<String>,
    /// As in [`ShareSpec`].
    pub per_peer_percentage: Option<i64>,
    /// Never more than this to all clusters together.
    pub cap: Option<Amount>,
    /// Never more than this to one cluster.
    pub per_peer_cap: Option<Amount>,
    /// Kept back for the cluster itself before anything is shared.
    pub reserve: Option<Amount>,
    /// What an autoscaler can add: counted as if it were there.
    pub autoscaled: Option<Amount>,
}

/// Prices.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct PricesSpec {
    /// Such as `EUR`.
    pub currency: String,
    /// `Hourly`, `Daily`, `Weekly`, `Monthly`, `Yearly` or a length of time such as `15m`.
    pub period: String,
    /// What a core, a GiB or one of each resource costs per period.
    pub per_unit: BTreeMap<String, Amount>,
}

/// A weekly window of time.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct WindowSpec {
    /// `Mon` … `Sun`; left out, every day.
    pub days: Vec<String>,
    /// When it opens, as `20:00`.
    pub from: String,
    /// When it closes, as `06:00` (of the next day, if that is not after `from`) or `24:00`.
    pub to: String,
    /// Such as `Europe/Rome`; left out, `UTC`.
    pub time_zone: Option<String>,
}

/// What contracts under a policy say.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct ContractSpec {
    /// How long an offer stands, such as `1h`.
    pub offer_validity: Option<String>,
    /// How long a contract lasts, such as `7d`; left out, a day.
    pub duration: Option<String>,
    /// `Auto` (the default) or `None`: what happens at the end.
    pub renewal: Option<String>,
    /// What else is promised, such as `availability: "99.9"`.
    pub service_level: BTreeMap<String, String>,
}

/// How pods of other clusters run here.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct WorkloadsSpec {
    /// `Privileged`, `Baseline` (the default) or `Restricted`.
    pub pod_security: Option<String>,
    /// The RuntimeClass that they run under.
    pub runtime_class: Option<String>,
    /// The highest priority that they may have; left out, 0.
    pub max_priority: Option<i64>,
    /// Names or patterns of further annotations that their pods keep.
    pub annotations: Vec<String>,
}

/// A quantity or a number as text, as it stands in the document.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Amount(pub String);

impl From<&str> for Amount {
    fn from(text: &str) -> Self {
        Self(text.to_owned())
    }
}

impl<'de> Deserialize<'de> for Amount {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct AmountVisitor;

        impl Visitor<'_> for AmountVisitor {
            type Value = Amount;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("a quantity such as \"500m\", \"1.5Gi\" or 2")
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<Amount, E> {
                Ok(Amount(text.to_owned()))
            }

            fn visit_i64<E: Error>(self, number: i64) -> Result<Amount, E> {
                Ok(Amount(number.to_string()))
            }

            fn visit_u64<E: Error>(self, number: u64) -> Result<Amount, E> {
                Ok(Amount(number.to_string()))
            }

            fn visit_f64<E: Error>(self, number: f64) -> Result<Amount, E> {
                // The shortest text that means this number: what was written, unless it had very many digits.
                Ok(Amount(number.to_string()))
            }
        }

        deserializer.deserialize_any(AmountVisitor)
    }
}
