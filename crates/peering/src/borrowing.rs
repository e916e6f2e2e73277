//! Borrowing: we ask, decide on what is offered, propose a contract, and check what the provider signed.
//!
//! ```text
//!  ResourceRequest ─▶ (the provider's ResourceOffer) ─▶ decide ─▶ Contract, signed by us ─▶ (signed by the provider)
//!                              ▲                          ▲
//!                     copied here, to be seen      limits, or a person
//! ```
//!
//! All of it lies in our namespace at the provider if we ask, and in its namespace here if it pushed an offer.

use kube::ResourceExt;
use liqo_api::foreign_cluster::{
    PeeringConditionStatus as Status, PeeringConditionType as Part, PeeringEnabled,
};
use liqo_api::{ResourceRequest, annotations};

use crate::index::{Bid, Deal};
use crate::offer::Wants;
use crate::places::{Peer, Planned, Table, View};
use crate::status::{self, Told};
use crate::steps::Where;

mod ask;
mod contracts;
mod decide;
mod part;

pub(crate) use decide::ACCEPTED;
pub(crate) use part::NOT_TOLD;

/// One peer that we borrow from, or do not, at one place.
pub(crate) struct Borrowing<'a> {
    pub(crate) view: &'a View<'a>,
    pub(crate) peer: &'a Peer<'a>,
    pub(crate) table: &'a Table<'a>,
}

/// Whether we want to borrow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wish {
    /// We do.
    Yes,
    /// We do not.
    No,
    /// Nobody said so; what is offered unasked is shown.
    Undecided,
}

/// Whether we want to borrow from this peer.
pub(crate) fn wish(view: &View<'_>, peer: &Peer<'_>) -> Wish {
    let joins = |domain: &str| view.index.domain_joins(domain);
    if peer.is_going() {
        Wish::No
    } else if peer.cluster.wants_outgoing(view.settings.autojoin, joins) {
        Wish::Yes
    } else if peer.cluster.spec.outgoing_peering_enabled == PeeringEnabled::Auto {
        Wish::Undecided
    } else {
        Wish::No
    }
}

/// Where we borrow; nowhere if we do not, or cannot yet.
fn seat(view: &View<'_>, peer: &Peer<'_>, wish: Wish) -> Option<Where> {
    let here = peer.here.as_ref();
    let pushed = here.and_then(|here| here.offer_of(&peer.id)).filter(|bid| !bid.is_withdrawn());
    let bound =
        here.is_some_and(|here| here.contracts(peer.id.as_str(), view.me.id().as_str()).any(Deal::is_live));
    match wish {
        Wish::No => None,
        // What is agreed on stays where it is.
        Wish::Yes if bound => Some(Where::Here),
        Wish::Yes if peer.access.is_some() => Some(Where::There),
        _ => pushed.map(|_| Where::Here),
    }
}

/// What should happen, and what is to be told of it.
pub(crate) fn plan(view: &View<'_>, peer: &Peer<'_>, planned: &mut Planned) -> Told {
    let wish = wish(view, peer);
    let seat = seat(view, peer, wish);
    let mut told = None;
    for table in peer.tables() {
        let borrowing = Borrowing { view, peer, table };
        let at_table = if seat == Some(table.at) {
            Some(borrowing.keep(wish, planned))
        } else {
            borrowing.part(planned)
        };
        told = at_table.or(told);
    }
    match (&peer.there, seat) {
        (None, Some(Where::There)) => told.or_else(|| Some(out_of_reach(view, peer))),
        // What lies at the peer is over when it can be reached; what is borrowed here is not concerned.
        (None, Some(Where::Here)) => told,
        (None, None) => part::out_of_reach(view, peer, planned).or(told),
        (Some(_), _) => told,
    }
    .unwrap_or_else(|| nothing(view, peer, wish))
}

/// What is told while nothing is borrowed, and nothing is under way.
fn nothing(view: &View<'_>, peer: &Peer<'_>, wish: Wish) -> Told {
    let name = peer.name();
    match wish {
        Wish::Yes => {
            let since = status::since(peer.cluster, Part::OutgoingPeering).unwrap_or(view.now);
            let callable = !peer.cluster.spec.foreign_auth_url.is_empty();
            let message = if callable {
                format!("we have no identity at {name} yet")
            } else {
                format!("where {name} can be called is not known; it may offer something by itself")
            };
            Told::pending("WaitingForIdentity", message, since)
        }
        Wish::Undecided => {
            Told::nothing("NotWanted", "nobody said that resources are to be borrowed from it")
        }
        Wish::No => Told::nothing("NotWanted", "no resources are to be borrowed from it"),
    }
}

/// What is told while we should be there and are not.
fn out_of_reach(view: &View<'_>, peer: &Peer<'_>) -> Told {
    let in_force = peer
        .copies
        .contracts(peer.id.as_str(), view.me.id().as_str())
        .find(|deal| deal.is_live() && deal.agreed.is_some() && !crate::copies::is_past(deal, view.now));
    // What was agreed on holds, whether or not the other side can be asked.
    if let Some(terms) = in_force.and_then(Deal::agreed_terms) {
        return contracts::established(peer, terms);
    }
    status::out_of_reach(view, peer, Part::OutgoingPeering)
}

impl<'a> Borrowing<'a> {
    fn is_here(&self) -> bool {
        self.table.at == Where::Here
    }

    /// What we ask for.
    fn request(&self) -> Option<&'a ResourceRequest> {
        (!self.is_here()).then(|| self.table.request_of(self.view.me.id())).flatten()
    }

    /// What we are offered.
    fn offer(&self) -> Option<&'a Bid> {
        self.table.offer_of(&self.peer.id).filter(|bid| !bid.is_withdrawn())
    }

    /// The offer as it is kept here, where a person's decision is on it.
    fn offer_here(&self) -> Option<&'a Bid> {
        if self.is_here() { self.offer() } else { self.peer.copies.offer_of(&self.peer.id) }
    }

    /// The contracts with this peer, the oldest first.
    fn deals(&self) -> Vec<&'a Deal> {
        let (them, me) = (self.peer.id.as_str(), self.view.me.id().as_str());
        self.table.contracts(them, me).collect()
    }

    /// Our copies of them.
    fn copies(&self) -> Vec<&'a Deal> {
        let (them, me) = (self.peer.id.as_str(), self.view.me.id().as_str());
        self.peer.copies.contracts(them, me).collect()
    }

    /// Whether it is noted on the ForeignCluster that something may lie at the peer: before anything does.
    fn is_ready(&self) -> bool {
        let told = status::current(self.peer.cluster, Part::OutgoingPeering);
        self.peer.has_finalizer() && told.is_some_and(|told| told.status != Status::None)
    }

    /// What is wanted and accepted of this peer.
    fn wants(&self) -> Result<Wants, String> {
        let of_peer = &self.peer.cluster.spec.borrowing;
        Wants::read(of_peer, &self.view.index.borrowing, self.view.settings.automatic)
            .map_err(|problems| problems.to_string())
    }

    /// What a person decided about this offer.
    fn hand(&self, bid: &Bid) -> Option<bool> {
        let decision = self.offer_here()?.annotations().get(annotations::DECISION)?;
        let (word, digest) = decision.trim().split_once(' ')?;
        let about_this = bid.digest().is_some_and(|known| known.to_string() == digest.trim());
        match word {
            "accept" if about_this => Some(true),
            "refuse" if about_this => Some(false),
            _ => None,
        }
    }
}
