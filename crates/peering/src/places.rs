//! Who is who, and where things lie.
//!
//! ```text
//!                  our cluster                                  the peer's cluster
//!  here    its tenant namespace: what it writes      there    our tenant namespace: what we write
//!          and what we answer                                 and what it answers
//!          + our copies of what lies there
//! ```
//!
//! Requests, offers and contracts of one direction lie at one place: on the side that was called. Who calls and who lends are
//! two questions, so each direction may lie here or there.

use std::sync::Arc;

use jiff::Timestamp;
use kube::ResourceExt;
use liqo_api::names::Identity as Names;
use liqo_api::{ForeignCluster, ResourceRequest, annotations, finalizers, labels};
use liqo_core::contract::{Party, PublicKey};
use liqo_core::names::ClusterId;
use liqo_identity::Identity;

use crate::Settings;
use crate::index::{Access, Bid, Deal, Index, Papers, Tenant, created, is_copy};
use crate::paper;
use crate::steps::{Step, Where};

/// Who we are.
#[derive(Clone, Debug)]
pub(crate) struct Me {
    pub(crate) identity: Arc<Identity>,
    pub(crate) party: Party,
}

impl Me {
    /// What we are in contracts; nothing if the identity cannot be in one.
    pub(crate) fn new(identity: Arc<Identity>) -> Option<Self> {
        let party = paper::party(&identity)?;
        Some(Self { identity, party })
    }

    pub(crate) fn id(&self) -> &ClusterId {
        &self.party.id
    }

    /// Our ID and name.
    pub(crate) fn names(&self) -> Names {
        Names { id: self.identity.id.clone(), name: self.identity.name.clone() }
    }
}

/// What is looked at.
#[derive(Clone, Copy)]
pub(crate) struct View<'a> {
    pub(crate) index: &'a Index,
    pub(crate) me: &'a Me,
    pub(crate) settings: &'a Settings,
    pub(crate) now: Timestamp,
}

/// What should happen, and when to look again if nothing else happens.
#[derive(Debug, Default)]
pub(crate) struct Planned {
    pub(crate) steps: Vec<Step>,
    pub(crate) wake: Option<Timestamp>,
}

impl Planned {
    /// Adds a step, unless something is to be done to the same part of the same object first.
    pub(crate) fn step(&mut self, step: impl Into<Option<Step>>) {
        if let Some(step) = step.into()
            && !self.steps.iter().any(|earlier| earlier.same_slot(&step))
        {
            self.steps.push(step);
        }
    }

    pub(crate) fn wake_at(&mut self, at: Timestamp) {
        self.wake = Some(self.wake.map_or(at, |wake| wake.min(at)));
    }
}

/// All about one peer.
pub(crate) struct Peer<'a> {
    pub(crate) id: ClusterId,
    pub(crate) names: Names,
    pub(crate) cluster: &'a ForeignCluster,
    /// By which what it signed is recognised.
    pub(crate) key: Option<PublicKey>,
    /// Whether it is put out: nothing is lent to it.
    pub(crate) put_out: bool,
    /// What lies in its namespace here; nothing while there is no such namespace.
    pub(crate) here: Option<Table<'a>>,
    /// What lies in our namespace there; nothing while that is not known.
    pub(crate) there: Option<Table<'a>>,
    /// Our copies of what lies there.
    pub(crate) copies: Table<'a>,
    pub(crate) access: Option<&'a Access>,
    /// Since when it answers that we may not look at our place there, while it does.
    pub(crate) forbidden: Option<Timestamp>,
}

/// What lies at a place.
pub(crate) struct Table<'a> {
    pub(crate) at: Where,
    pub(crate) namespace: &'a str,
    requests: Vec<&'a ResourceRequest>,
    offers: Vec<&'a Bid>,
    contracts: Vec<&'a Deal>,
}

impl<'a> Table<'a> {
    fn read(at: Where, namespace: &'a str, papers: &'a Papers, copies: bool) -> Self {
        let offers = papers.offers.in_namespace(namespace).map(|(_, bid)| bid);
        let contracts = papers.contracts.in_namespace(namespace).map(|(_, deal)| deal);
        let requests = papers.requests.in_namespace(namespace).map(|(_, request)| request);
        let mut table = Self {
            at,
            namespace,
            requests: requests.filter(|request| is_copy(*request) == copies).collect(),
            offers: offers.filter(|bid| is_copy(&***bid) == copies).collect(),
            contracts: contracts.filter(|deal| is_copy(&***deal) == copies).collect(),
        };
        table.contracts.sort_by_key(|deal| (created(&***deal), deal.name_any()));
        table
    }

    /// The request of this cluster.
    pub(crate) fn request_of(&self, cluster: &ClusterId) -> Option<&'a ResourceRequest> {
        let of = |request: &&&ResourceRequest| {
            request.spec.cluster_identity.cluster_id == cluster.as_str()
                && request.metadata.deletion_timestamp.is_none()
        };
        self.requests.iter().find(of).copied()
    }

    /// The offer of this cluster.
    pub(crate) fn offer_of(&self, cluster: &ClusterId) -> Option<&'a Bid> {
        let mut offers = self.offers.iter().filter(|bid| bid.is_from(cluster));
        offers.find(|bid| bid.metadata.deletion_timestamp.is_none()).copied()
    }

    /// Whether an offer of another cluster has this name.
    pub(crate) fn offer_name_is_taken(&self, name: &str, by_other_than: &ClusterId) -> bool {
        self.offers.iter().any(|bid| bid.name_any() == name && !bid.is_from(by_other_than))
    }

    /// The contracts of these parties, the oldest first.
    pub(crate) fn contracts(
        &self,
        provider: &'a str,
        consumer: &'a str,
    ) -> impl DoubleEndedIterator<Item = &'a Deal> {
        let between = move |deal: &&Deal| {
            deal.is_between(provider, consumer) && deal.metadata.deletion_timestamp.is_none()
        };
        self.contracts.iter().copied().filter(between)
    }

    /// How many contracts there are.
    pub(crate) fn contracts_of_anybody(&self) -> usize {
        self.contracts.len()
    }

    /// The contract of this name.
    pub(crate) fn contract(&self, name: &str) -> Option<&'a Deal> {
        self.contracts.iter().find(|deal| deal.name_any() == name).copied()
    }
}

impl<'a> Peer<'a> {
    /// What is known of this peer; nothing if that is not enough to deal with it.
    pub(crate) fn read(index: &'a Index, id: &ClusterId) -> Option<Self> {
        let cluster = index.cluster_of(id)?;
        let names = cluster.identity()?.ok()?;
        let tenant = index.tenant_of(id);
        let usable = tenant.filter(|tenant| !tenant.deleting);
        let namespace = usable.map_or("", |tenant| tenant.name.as_str());
        let held = index.held_at(id);
        let link = index.links.get(id).filter(|link| link.is_usable());
        Some(Self {
            id: id.clone(),
            names,
            cluster,
            key: usable.and_then(|tenant: &Tenant| tenant.key),
            put_out: tenant.is_some_and(|tenant| tenant.put_out),
            here: usable.map(|tenant| Table::read(Where::Here, &tenant.name, &index.here, false)),
            there: link.map(|link| Table::read(Where::There, &link.namespace, &link.papers, false)),
            copies: Table::read(Where::Here, namespace, &index.here, true),
            access: held.and_then(|held| held.access.as_ref().ok()),
            forbidden: index.links.get(id).and_then(|link| link.forbidden),
        })
    }

    /// What people call it.
    pub(crate) fn name(&self) -> &str {
        self.names.name.as_str()
    }

    pub(crate) fn is_going(&self) -> bool {
        self.cluster.metadata.deletion_timestamp.is_some()
    }

    /// When somebody deleted the ForeignCluster.
    pub(crate) fn deleted_at(&self) -> Option<Timestamp> {
        self.cluster.metadata.deletion_timestamp.as_ref().map(|time| time.0)
    }

    /// Whether an annotation of the ForeignCluster says yes.
    pub(crate) fn is(&self, annotation: &str) -> bool {
        self.cluster.annotations().get(annotation).map(String::as_str) == Some(labels::TRUE)
    }

    /// Whether nobody is to be waited for.
    pub(crate) fn is_forced(&self) -> bool {
        self.is(annotations::FORCE)
    }

    /// Whether the ForeignCluster stays until what was agreed on is over.
    pub(crate) fn has_finalizer(&self) -> bool {
        self.cluster.finalizers().iter().any(|finalizer| finalizer == finalizers::CONTRACTS)
    }

    /// The places that are known.
    pub(crate) fn tables(&self) -> impl Iterator<Item = &Table<'a>> {
        self.here.iter().chain(&self.there)
    }
}
