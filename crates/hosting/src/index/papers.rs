//! Tenants, contracts, offers, policies and maps, read once where they come in.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use k8s_openapi::api::core::v1::{NodeSelectorRequirement, NodeSelectorTerm};
use kube::ResourceExt;
use liqo_api::namespace_map::{NamespaceMapStatus, RemoteNamespace};
use liqo_api::{Contract, NamespaceMap, ResourceOffer, SharingPolicy, annotations, labels};
use liqo_core::Resources;
use liqo_core::contract::{Enforcement, Terms};
use liqo_core::names::{ClusterId, PoolName};
use liqo_core::policy::{Policy, Spec};
use liqo_core::selector::{Requirement, RequirementSpec};

use super::SpaceOnWire;
use crate::pods::HouseRules;

/// The place of a peer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Tenant {
    pub(crate) name: String,
    pub(crate) peer: ClusterId,
    pub(crate) deleting: bool,
    /// Whether the peer is put out: it has no contract here and no rights.
    pub(crate) put_out: bool,
}

impl Tenant {
    /// Reads a namespace; `None` if it is no peer's place.
    pub(crate) fn read(namespace: &SpaceOnWire) -> Option<Self> {
        let meta = &namespace.metadata;
        let put_out = meta.annotations.get(annotations::PUT_OUT).is_some();
        let is_tenant = meta.labels.get(labels::TENANT_NAMESPACE) == Some(labels::TRUE);
        let peer = meta.labels.get(labels::CLUSTER_ID).filter(|_| is_tenant)?.parse().ok()?;
        let deleting = meta.deletion_timestamp.is_some();
        Some(Self { name: meta.name.to_string(), peer, deleting, put_out })
    }
}

/// What a peer may use.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Grant {
    pub(crate) resources: Resources,
    /// The same by pool of our nodes; nothing where they are lent as one.
    pub(crate) pools: BTreeMap<PoolName, Resources>,
    pub(crate) enforcement: Enforcement,
}

/// A contract, as far as it is in force.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Deal(Option<InForce>);

#[derive(Clone, Debug, PartialEq)]
struct InForce {
    provider: ClusterId,
    consumer: ClusterId,
    grant: Grant,
}

impl Deal {
    /// Its status is written by the provider alone: what it says is what this cluster signed.
    pub(crate) fn read(contract: &Contract) -> Self {
        let status = contract.status.as_ref().filter(|status| status.phase.is_in_force());
        let agreed = status.and_then(|status| status.agreed.as_ref());
        let terms = agreed.and_then(|agreed| Terms::parse(agreed.terms.as_bytes()).ok());
        let is_of = |terms: &Terms| {
            terms.provider.id.as_str() == contract.spec.provider_id
                && terms.consumer.id.as_str() == contract.spec.consumer_id
        };
        Self(terms.filter(is_of).map(|terms| InForce {
            provider: terms.provider.id.clone(),
            consumer: terms.consumer.id.clone(),
            grant: Grant {
                resources: terms.resources.clone(),
                pools: terms.pools.iter().map(|(name, it)| (name.clone(), it.resources.clone())).collect(),
                enforcement: terms.enforcement,
            },
        }))
    }

    /// What it allows `consumer` to use of `provider`.
    pub(super) fn grant(&self, provider: &ClusterId, consumer: &ClusterId) -> Option<Grant> {
        let deal = self.0.as_ref()?;
        (deal.provider == *provider && deal.consumer == *consumer).then(|| deal.grant.clone())
    }

    #[cfg(test)]
    pub(crate) fn test(provider: ClusterId, consumer: ClusterId, grant: Grant) -> Self {
        Self(Some(InForce { provider, consumer, grant }))
    }
}

/// An offer: by which policy it was made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Bid {
    pub(crate) from: Box<str>,
    pub(crate) policy: Option<Box<str>>,
}

impl Bid {
    pub(crate) fn read(offer: &ResourceOffer) -> Self {
        let spec = &offer.spec;
        Self { from: spec.cluster_id.as_str().into(), policy: spec.policy.as_deref().map(Into::into) }
    }
}

/// What a policy says about pods.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct House(pub(super) Arc<HouseRules>);

impl House {
    pub(crate) fn read(policy: &SharingPolicy) -> Self {
        let (spec, said) = (&policy.spec, &policy.spec.workloads);
        let read = Policy::read(policy.name_any(), &Spec::from(spec));
        let labels = spec.node_selector.match_labels.iter().flatten();
        let labels = labels.map(|(key, value)| NodeSelectorRequirement {
            key: key.clone(),
            operator: "In".to_owned(),
            values: Some(vec![value.clone()]),
        });
        let expressions = spec.node_selector.match_expressions.iter().flatten();
        let expressions = expressions.map(|it| NodeSelectorRequirement {
            key: it.key.clone(),
            operator: it.operator.clone(),
            values: it.values.clone(),
        });
        let pools =
            read.pool_nodes().map(|(name, terms)| (name.clone(), terms.iter().map(|it| term(it)).collect()));
        Self(Arc::new(HouseRules {
            pools: pools.collect(),
            level: said.pod_security.unwrap_or_default(),
            runtime_class: said.runtime_class.clone(),
            max_priority: said.max_priority.unwrap_or_default(),
            kept: read.kept_annotations().clone(),
            custom_kinds: said.custom_kinds.as_ref().map(|kinds| noted(kinds)),
            nodes: labels.chain(expressions).collect(),
        }))
    }
}

/// Custom kinds as an annotation has them, in one order whatever theirs.
fn noted(kinds: &[String]) -> String {
    let kinds: BTreeSet<&str> = kinds.iter().map(String::as_str).collect();
    kinds.into_iter().collect::<Vec<_>>().join(" ")
}

/// Requirements of which all must hold.
fn term(requirements: &[Requirement]) -> NodeSelectorTerm {
    let each = |it: &Requirement| {
        let RequirementSpec { key, operator, values } = it.to_spec();
        NodeSelectorRequirement { key, operator, values: (!values.is_empty()).then_some(values) }
    };
    let all: Vec<_> = requirements.iter().map(each).collect();
    // A pool of all nodes has no requirements, and a term without any selects none.
    let all = if all.is_empty() { vec![any_node()] } else { all };
    NodeSelectorTerm { match_expressions: Some(all), match_fields: None }
}

/// Met by every node there is.
fn any_node() -> NodeSelectorRequirement {
    NodeSelectorRequirement {
        key: "kubernetes.io/hostname".to_owned(),
        operator: "Exists".to_owned(),
        values: None,
    }
}

/// A consumer's map.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Map {
    pub(crate) resource_version: Box<str>,
    /// Whose it says that it is.
    pub(crate) origin: Box<str>,
    pub(crate) deleting: bool,
    pub(crate) wanted: BTreeMap<String, String>,
    pub(crate) told: BTreeMap<String, RemoteNamespace>,
}

impl Map {
    /// Reads a map; `None` if it is one of ours about what we want elsewhere.
    pub(crate) fn read(map: NamespaceMap) -> Option<Self> {
        let label = |key: &str| map.labels().get(key).map(String::as_str);
        let origin = label(labels::REPLICATION_ORIGIN)
            .filter(|_| label(labels::REPLICATED) == Some(labels::TRUE))?
            .into();
        Some(Self {
            resource_version: map.metadata.resource_version.as_deref().unwrap_or_default().into(),
            origin,
            deleting: map.metadata.deletion_timestamp.is_some(),
            told: map.status.map(|status: NamespaceMapStatus| status.current_mapping).unwrap_or_default(),
            wanted: map.spec.desired_mapping,
        })
    }
}
