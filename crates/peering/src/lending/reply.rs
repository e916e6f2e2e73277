//! What a ResourceRequest says of its answer.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use liqo_api::resource_request::{OfferState, ResourceRequestStatus};
use liqo_api::{ResourceRequest, conditions};

use super::Why;
use crate::standing::{condition, whole_second};

/// Condition of a request: whether there is an offer, and if not, why.
pub(crate) const OFFERED: &str = "Offered";

/// The request, answered by an offer.
pub(super) fn offered(request: &ResourceRequest, message: &str, now: Timestamp) -> ResourceRequest {
    let mut wanted = request.clone();
    let status = wanted.status.get_or_insert_with(ResourceRequestStatus::default);
    status.offer_state = OfferState::Created;
    status.offer_withdrawal_timestamp = None;
    let offered = condition(OFFERED, true, "Offered", message, request.metadata.generation);
    conditions::set(&mut status.conditions, offered, now);
    wanted
}

/// The request, answered by a refusal.
pub(super) fn refused(request: &ResourceRequest, why: &Why, now: Timestamp) -> ResourceRequest {
    let mut wanted = request.clone();
    let status = wanted.status.get_or_insert_with(ResourceRequestStatus::default);
    if status.offer_state == OfferState::Created {
        status.offer_withdrawal_timestamp = Some(Time(whole_second(now)));
    }
    status.offer_state = OfferState::None;
    let refused = condition(OFFERED, false, why.reason, &why.message, request.metadata.generation);
    conditions::set(&mut status.conditions, refused, now);
    wanted
}
