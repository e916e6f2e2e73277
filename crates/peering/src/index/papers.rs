//! Requests, offers and contracts, read once where they come in.

use std::ops::Deref;

use jiff::Timestamp;
use kube::ResourceExt;
use liqo_api::contract::{Agreed, ContractPhase};
use liqo_api::{Contract, ResourceOffer, ResourceRequest, labels};
use liqo_core::canonical::Digest;
use liqo_core::contract::Terms;
use liqo_core::names::{ClusterId, ContractId};
use liqo_kit::{Key, Store};

use crate::offer::Read;

/// What lies in tenant namespaces of one cluster.
#[derive(Default)]
pub(crate) struct Papers {
    pub(crate) requests: Store<ResourceRequest>,
    pub(crate) offers: Store<Bid>,
    pub(crate) contracts: Store<Deal>,
}

/// An offer, with what can be made of it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Bid {
    object: ResourceOffer,
    /// What is offered; or why that is no offer.
    pub(crate) read: Result<Read, String>,
}

impl Bid {
    pub(crate) fn read(object: ResourceOffer) -> Self {
        let read = Read::of(&object.spec).map_err(|error| error.to_string());
        Self { object, read }
    }

    pub(crate) fn digest(&self) -> Option<Digest> {
        self.read.as_ref().ok().map(|read| read.digest)
    }

    pub(crate) fn is_withdrawn(&self) -> bool {
        self.object.spec.withdrawal_timestamp.is_some()
    }

    pub(crate) fn is_from(&self, peer: &ClusterId) -> bool {
        self.object.spec.cluster_id == peer.as_str()
    }
}

impl Deref for Bid {
    type Target = ResourceOffer;

    fn deref(&self) -> &ResourceOffer {
        &self.object
    }
}

/// A contract, with its terms.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Deal {
    object: Contract,
    /// The terms that the consumer signed last; or why they are none.
    pub(crate) proposed: Result<Terms, String>,
    /// The terms that both signed; or why they are none.
    pub(crate) agreed: Option<Result<Terms, String>>,
}

impl Deal {
    pub(crate) fn read(object: Contract) -> Self {
        let parse = |text: &str| Terms::parse(text.as_bytes()).map_err(|error| error.to_string());
        let proposed = parse(&object.spec.terms);
        let agreed = object.status.as_ref().and_then(|status| status.agreed.as_ref());
        let agreed = agreed.map(|agreed| match &proposed {
            Ok(terms) if agreed.terms == object.spec.terms => Ok(terms.clone()),
            _ => parse(&agreed.terms),
        });
        Self { object, proposed, agreed }
    }

    pub(crate) fn phase(&self) -> ContractPhase {
        self.object.status.as_ref().map_or(ContractPhase::Proposed, |status| status.phase)
    }

    /// Whether nothing can come any more. One that was refused can be proposed anew.
    pub(crate) fn is_over(&self) -> bool {
        matches!(self.phase(), ContractPhase::Expired | ContractPhase::Ended)
    }

    /// Whether it is, or may yet be, in force.
    pub(crate) fn is_live(&self) -> bool {
        !self.is_over() && self.object.spec.ended.is_none()
    }

    /// Its ID, if its name can be one.
    pub(crate) fn id(&self) -> Option<ContractId> {
        self.object.name_any().parse().ok()
    }

    pub(crate) fn is_between(&self, provider: &str, consumer: &str) -> bool {
        self.object.spec.provider_id == provider && self.object.spec.consumer_id == consumer
    }

    /// The terms in force, as far as they can be read.
    pub(crate) fn agreed_terms(&self) -> Option<&Terms> {
        self.agreed.as_ref()?.as_ref().ok()
    }

    /// What both signed, as it is written.
    pub(crate) fn signed(&self) -> Option<&Agreed> {
        self.object.status.as_ref()?.agreed.as_ref()
    }

    /// Whether the latest proposal is what both signed.
    pub(crate) fn is_settled(&self) -> bool {
        self.signed().is_some_and(|agreed| agreed.terms == self.object.spec.terms)
    }

    pub(crate) fn condition(
        &self,
        kind: &str,
    ) -> Option<&k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition> {
        let conditions = self.object.status.iter().flat_map(|status| &status.conditions);
        conditions.into_iter().find(|condition| condition.type_ == kind)
    }
}

impl Deref for Deal {
    type Target = Contract;

    fn deref(&self) -> &Contract {
        &self.object
    }
}

/// Whether this is our copy of what lies at the peer.
pub(crate) fn is_copy(object: &impl ResourceExt) -> bool {
    object.labels().get(labels::REPLICATED).map(String::as_str) == Some(labels::TRUE)
}

/// When an object was made.
pub(crate) fn created(object: &impl ResourceExt) -> Timestamp {
    object.creation_timestamp().map_or(Timestamp::MIN, |time| time.0)
}

impl liqo_kit::Index<ResourceRequest> for Papers {
    fn apply(&mut self, key: &Key, object: ResourceRequest) {
        self.requests.apply(key, object);
    }

    fn delete(&mut self, key: &Key) {
        self.requests.delete(key);
    }
}

impl liqo_kit::Index<Bid> for Papers {
    fn apply(&mut self, key: &Key, object: Bid) {
        self.offers.apply(key, object);
    }

    fn delete(&mut self, key: &Key) {
        self.offers.delete(key);
    }
}

impl liqo_kit::Index<Deal> for Papers {
    fn apply(&mut self, key: &Key, object: Deal) {
        self.contracts.apply(key, object);
    }

    fn delete(&mut self, key: &Key) {
        self.contracts.delete(key);
    }
}
