//! Borrowing no more: contracts end, the request is withdrawn, and once the provider has answered, nothing stays behind.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::ResourceExt;
use liqo_api::contract::Ended;
use liqo_api::foreign_cluster::{PeeringConditionStatus as Status, PeeringConditionType as Part};
use liqo_api::{annotations, labels};

use super::Borrowing;
use crate::copies;
use crate::index::Deal;
use crate::parting::deadline;
use crate::places::{Peer, Planned, View};
use crate::standing::whole_second;
use crate::status::{self, Told};
use crate::steps::{Step, Where};

/// Reason of what is told when a peer could not be told that it is over; it is told when it can be.
pub(crate) const NOT_TOLD: &str = "PeerNotTold";

impl<'a> Borrowing<'a> {
    /// Ends what there is; `None` if there is nothing.
    pub(super) fn part(&self, planned: &mut Planned) -> Option<Told> {
        if self.is_here() { self.part_here(planned) } else { self.part_there(planned) }
    }

    /// At our own place: the provider answers, and we clean up.
    fn part_here(&self, planned: &mut Planned) -> Option<Told> {
        let mut busy = false;
        for deal in self.deals() {
            let since = deal.spec.ended.as_ref().map(|ended| ended.time.0);
            let late = since.is_some_and(|since| self.is_late(since, planned));
            if deal.is_over() || late {
                if copies::is_logged(self.view, deal) {
                    planned.step(Step::delete(Where::Here, &**deal, "delete contract"));
                }
            } else {
                self.end(deal, planned);
            }
            busy = true;
        }
        // Who owns the place removes what is withdrawn.
        if let Some(bid) = self.table.offer_of(&self.peer.id).filter(|bid| bid.is_withdrawn()) {
            planned.step(Step::delete(Where::Here, &**bid, "delete withdrawn offer"));
        }
        busy.then(|| self.disconnecting())
    }

    /// At the provider's place: it answers, and cleans up what we may not.
    fn part_there(&self, planned: &mut Planned) -> Option<Told> {
        self.end_all(planned);
        let Some(request) = self.request() else {
            let ended = |deal: &Deal| deal.spec.ended.as_ref().map_or(self.view.now, |ended| ended.time.0);
            let late = match self.open() {
                Some(deal) if !self.is_late(ended(deal), planned) => return Some(self.disconnecting()),
                open => open.is_some(),
            };
            return self.clean_up(late, planned).then(|| self.disconnecting());
        };
        let mut wanted = request.clone();
        let since = request.spec.withdrawal_timestamp.clone();
        wanted.spec.withdrawal_timestamp = since.clone().or_else(|| Some(Time(whole_second(self.view.now))));
        if self.peer.is_going() {
            wanted.annotations_mut().insert(annotations::LEAVING.to_owned(), labels::TRUE.to_owned());
        }
        let withdraw = Step::bring(self.table.at, request, &wanted, "withdraw request");
        let told = withdraw.is_none();
        planned.step(withdraw);
        let late = since.is_some_and(|since| self.is_late(since.0, planned));
        let answered = told && self.open().is_none() && self.table.offer_of(&self.peer.id).is_none();
        if answered || late {
            planned.step(Step::delete(self.table.at, request, "delete request"));
        }
        Some(self.disconnecting())
    }

    /// The contract that the provider has not ended yet.
    fn open(&self) -> Option<&'a Deal> {
        self.deals().into_iter().find(|deal| !deal.is_over())
    }

    /// Ends every contract that is not over.
    pub(super) fn end_all(&self, planned: &mut Planned) {
        for deal in self.deals().into_iter().filter(|deal| deal.is_live()) {
            self.end(deal, planned);
        }
    }

    fn end(&self, deal: &Deal, planned: &mut Planned) {
        let (reason, message) = if self.peer.is_going() {
            ("PeerRemoved", "the consumer has ended the peering")
        } else {
            ("Unpeered", "the consumer does not borrow any more")
        };
        self.end_because(deal, reason, message, planned);
    }

    /// Ends all contracts but one. There are several if we proposed one before we knew of another, as after a restart.
    pub(super) fn end_others(&self, kept: &Deal, planned: &mut Planned) {
        let others =
            self.deals().into_iter().filter(|deal| deal.is_live() && deal.name_any() != kept.name_any());
        for deal in others {
            self.end_because(deal, "Superseded", "the consumer has another contract", planned);
        }
    }

    /// Ends the contracts that were over for us when the provider could not be told.
    pub(super) fn end_noted(&self, planned: &mut Planned) {
        for deal in self.deals().into_iter().filter(|deal| copies::is_noted_over(self.view, deal)) {
            self.end_because(deal, "Ended", "it was over when the provider could not be told", planned);
        }
    }

    fn end_because(&self, deal: &Deal, reason: &str, message: &str, planned: &mut Planned) {
        if deal.spec.ended.is_some() || deal.is_over() {
            return;
        }
        let mut wanted = (**deal).clone();
        wanted.spec.ended = Some(Ended {
            time: Time(whole_second(self.view.now)),
            reason: reason.to_owned(),
            message: message.to_owned(),
        });
        planned.step(Step::bring(self.table.at, &**deal, &wanted, "end contract"));
    }

    /// Removes what we keep here. Returns whether something is left.
    fn clean_up(&self, late: bool, planned: &mut Planned) -> bool {
        self.drop_offer_copy(planned);
        let mut left = self.peer.copies.offer_of(&self.peer.id).is_some();
        for copy in self.copies() {
            left = true;
            match self.table.contract(&copy.name_any()) {
                Some(deal) if !late => copies::part(self.view, self.peer, deal, planned),
                _ => copies::remove(self.view, copy, planned),
            }
        }
        left
    }

    fn is_late(&self, since: Timestamp, planned: &mut Planned) -> bool {
        let at = deadline(self.view, self.peer, since);
        if self.view.now < at {
            planned.wake_at(at);
        }
        self.view.now >= at
    }

    fn disconnecting(&self) -> Told {
        let message = format!("{} is told that nothing is borrowed any more", self.peer.name());
        Told::new(Status::Disconnecting, "Unpeering", message)
    }
}

/// What happens to what we keep of a peer that cannot be reached and is not wanted any more; `None` if there is nothing.
pub(super) fn out_of_reach(view: &View<'_>, peer: &Peer<'_>, planned: &mut Planned) -> Option<Told> {
    let told = status::current(peer.cluster, Part::OutgoingPeering)?;
    let untold = told.status != Status::None || told.reason == NOT_TOLD;
    let (them, me) = (peer.id.as_str(), view.me.id().as_str());
    let copies: Vec<&Deal> = peer.copies.contracts(them, me).collect();
    // Where we have no place, nothing lies; what was borrowed here is over already.
    let strangers = peer.access.is_none() && copies.is_empty() && peer.copies.offer_of(&peer.id).is_none();
    if !untold || strangers {
        return None;
    }
    for copy in &copies {
        crate::parting::forget(view, peer, Part::OutgoingPeering, copy, planned);
    }
    let since = match told.status {
        Status::Disconnecting => status::since(peer.cluster, Part::OutgoingPeering),
        _ => None,
    };
    let at = deadline(view, peer, since.unwrap_or(view.now));
    // The time for telling it was over when that was noted, and does not begin anew.
    if told.status != Status::None && view.now < at {
        planned.wake_at(at);
        let message =
            format!("{} cannot be reached to be told that nothing is borrowed any more", peer.name());
        let told = Told::new(Status::Disconnecting, "PeerUnreachable", message);
        return Some(told.unless_begun(peer.cluster, Part::OutgoingPeering));
    }
    if let Some(copy) = peer.copies.offer_of(&peer.id) {
        planned.step(Step::delete(Where::Here, &**copy, "delete copy of offer"));
    }
    peer.access?;
    let message = format!(
        "{} could not be told that nothing is borrowed any more; it will be when it can be reached",
        peer.name()
    );
    Some(Told::nothing(NOT_TOLD, message))
}
