//! Asking, and what is done with the answer.

use kube::ResourceExt;
use kube::api::ObjectMeta;
use liqo_api::foreign_cluster::PeeringConditionStatus as Status;
use liqo_api::{ResourceOffer, ResourceRequest, ResourceRequestSpec, labels};
use liqo_core::Resources;

use super::{Borrowing, Wish};
use crate::copies;
use crate::events::{Report, labels_of};
use crate::index::{Bid, created};
use crate::lending::OFFERED;
use crate::offer;
use crate::places::Planned;
use crate::standing::is_true;
use crate::status::Told;
use crate::steps::{Step, Where};

impl Borrowing<'_> {
    /// Asks, decides, proposes, and tells how far that is.
    pub(super) fn keep(&self, wish: Wish, planned: &mut Planned) -> Told {
        if !self.is_here() {
            match self.asked(planned) {
                Asked::Yes => {}
                Asked::Told(told) => return told,
            }
        }
        let Some(bid) = self.offer() else {
            self.drop_offer_copy(planned);
            self.mirror_all(planned);
            return self.unanswered();
        };
        if !self.is_here() {
            self.copy_offer(bid, planned);
        }
        self.decide_and_sign(bid, wish, planned)
    }

    /// Makes sure that we have asked.
    fn asked(&self, planned: &mut Planned) -> Asked {
        let name = self.peer.name();
        if !self.is_ready() {
            return Asked::Told(Told::new(Status::Pending, "Asking", format!("{name} is about to be asked")));
        }
        let wanted = self.wants().map_or_else(|_| Resources::new(), |wants| wants.wanted);
        let Some(request) = self.request() else {
            let request = self.new_request(&wanted);
            planned.step(Step::create(self.table.at, &request, "create request"));
            let message = format!("{name} is asked for resources");
            let since = crate::status::since(
                self.peer.cluster,
                liqo_api::foreign_cluster::PeeringConditionType::OutgoingPeering,
            );
            let occasion = since.map_or(0, jiff::Timestamp::as_second);
            planned.step(
                Report::new("ResourcesRequested", message, occasion).about(self.view, self.peer.cluster),
            );
            return Asked::Told(Told::pending(
                "Asking",
                format!("{name} is asked for resources"),
                self.view.now,
            ));
        };
        if request.spec.withdrawal_timestamp.is_some() {
            // An earlier peering ends first; then we ask again.
            let told = self.part(planned);
            return Asked::Told(
                told.unwrap_or_else(|| Told::nothing("Ended", "an earlier peering has ended")),
            );
        }
        let mut right = request.clone();
        right.spec.resources = offer::texts(&wanted);
        planned.step(Step::bring(self.table.at, request, &right, "change request"));
        Asked::Yes
    }

    /// Whether what is offered is the answer to what we want now.
    pub(super) fn is_answered(&self) -> bool {
        // Where nobody is asked, what is offered answers nothing else.
        let Some(request) = self.request() else { return true };
        let wanted = self.wants().map_or_else(|_| Resources::new(), |wants| wants.wanted);
        let conditions = request.status.iter().flat_map(|status| &status.conditions);
        let answer = conditions.into_iter().find(|it| it.type_ == OFFERED);
        request.spec.resources == offer::texts(&wanted)
            && answer.is_some_and(|answer| answer.observed_generation == request.metadata.generation)
    }

    fn new_request(&self, wanted: &Resources) -> ResourceRequest {
        let me = &self.view.me.identity;
        let mut all = labels_of();
        all.insert(labels::CLUSTER_ID.to_owned(), me.id.to_string());
        let metadata = ObjectMeta {
            name: Some(me.name.to_string()),
            namespace: Some(self.table.namespace.to_owned()),
            labels: Some(all),
            ..ObjectMeta::default()
        };
        let spec = ResourceRequestSpec {
            cluster_identity: me.cluster_identity(),
            auth_url: None,
            resources: offer::texts(wanted),
            withdrawal_timestamp: None,
        };
        ResourceRequest { metadata, spec, status: None }
    }

    /// What is told while there is no offer.
    fn unanswered(&self) -> Told {
        let name = self.peer.name();
        let Some(request) = self.request() else {
            return Told::nothing("NoOffer", format!("{name} offers nothing"));
        };
        let conditions = request.status.iter().flat_map(|status| &status.conditions);
        let refusal = conditions.into_iter().find(|it| it.type_ == OFFERED && !is_true(it));
        match refusal {
            Some(refusal) if refusal.reason == "NeedsApproval" => {
                let message = format!("provider waits: {}", refusal.message);
                Told::new(Status::Pending, "NeedsApproval", message)
            }
            Some(refusal) => Told::new(
                Status::Denied,
                "RefusedByProvider",
                format!("provider refused: {}", refusal.message),
            ),
            None => {
                let message = format!("{name} was asked for resources and has not answered yet");
                Told::pending("Asked", message, created(request))
            }
        }
    }

    /// Keeps a copy of the offer here, for people and for those who make a node of it.
    fn copy_offer(&self, bid: &Bid, planned: &mut Planned) {
        if self.peer.copies.namespace.is_empty() {
            return;
        }
        let Some(copy) = self.peer.copies.offer_of(&self.peer.id) else {
            let metadata = copies::copy_metadata(self.peer, bid.name_any());
            let copy = ResourceOffer { metadata, spec: bid.spec.clone(), status: None };
            planned.step(Step::create(Where::Here, &copy, "copy offer"));
            let message = match &bid.read {
                Ok(read) => format!("{} offers {}", self.peer.name(), read.resources),
                Err(problem) => format!("{} offers what makes no sense: {problem}", self.peer.name()),
            };
            let occasion = bid.metadata.uid.clone().unwrap_or_default();
            planned.step(Report::new("OfferReceived", message, occasion).about(self.view, self.peer.cluster));
            return;
        };
        let mut wanted = (**copy).clone();
        wanted.spec = bid.spec.clone();
        planned.step(Step::bring(Where::Here, &**copy, &wanted, "copy offer"));
    }

    pub(super) fn drop_offer_copy(&self, planned: &mut Planned) {
        if !self.is_here()
            && let Some(copy) = self.peer.copies.offer_of(&self.peer.id)
        {
            planned.step(Step::delete(Where::Here, &**copy, "delete copy of offer"));
        }
    }
}

/// Whether we have asked.
enum Asked {
    Yes,
    /// Not yet; this is to be told.
    Told(Told),
}
