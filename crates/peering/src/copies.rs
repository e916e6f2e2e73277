//! What we keep here of contracts that lie at a peer; and what is known of signatures and of the log.
//!
//! A copy has the name of its original and says whose it is by its labels. It is there before the original says that we are
//! bound: of what we propose, so that a restart goes on with it; of what we sign, so that it counts as sold.

use jiff::Timestamp;
use kube::ResourceExt;
use kube::api::ObjectMeta;
use liqo_api::contract::ContractPhase;
use liqo_api::{Contract, labels};
use liqo_core::canonical::Digest;
use liqo_core::contract::{PublicKey, Terms};

use crate::events::labels_of;
use crate::house::account;
use crate::index::Deal;
use crate::lending::{over, pots, reservation};
use crate::paper;
use crate::places::{Peer, Planned, View};
use crate::steps::{Step, Where};

/// The domain of the digests by which signatures are remembered.
const VERIFIED: &str = "liqo.io/verified";

/// Whether this key signed these terms so.
pub(crate) fn is_signed(view: &View<'_>, key: &PublicKey, terms: &Terms, signature: &str) -> bool {
    is_signed_by(&view.index.memory, key, terms, signature)
}

/// Whether this key signed these terms so.
pub(crate) fn is_signed_by(
    memory: &crate::index::Memory,
    key: &PublicKey,
    terms: &Terms,
    signature: &str,
) -> bool {
    let of = Digest::of(VERIFIED, format!("{key} {} {signature}", terms.digest()).as_bytes());
    memory.is_verified(of, || paper::is_signed(key, terms, signature))
}

/// Whether the log has that these terms were signed.
pub(crate) fn has_logged(view: &View<'_>, terms: &Terms) -> bool {
    view.index.log.has(&terms.digest())
}

/// Whether a contract is over for us, though whoever has it was not there to be told: what we noted stands.
pub(crate) fn is_noted_over(view: &View<'_>, deal: &Deal) -> bool {
    !deal.is_over() && deal.id().is_some_and(|id| view.index.log.is_over(&id))
}

/// Whether the log has all that is to be said of a contract.
pub(crate) fn is_logged(view: &View<'_>, deal: &Deal) -> bool {
    account(view, deal).is_none_or(|account| view.index.log.missing_of(&account).is_empty())
}

/// The labels of our copy of something that this peer has.
pub(crate) fn copy_metadata(peer: &Peer<'_>, name: String) -> ObjectMeta {
    let mut all = labels_of();
    let id = peer.id.to_string();
    let pairs = [
        (labels::CLUSTER_ID, id.as_str()),
        (labels::REPLICATED, labels::TRUE),
        (labels::REPLICATION, labels::FALSE),
        (labels::REPLICATION_ORIGIN, id.as_str()),
    ];
    all.extend(pairs.map(|(key, value)| (key.to_owned(), value.to_owned())));
    ObjectMeta {
        name: Some(name),
        namespace: Some(peer.copies.namespace.to_owned()),
        labels: Some(all),
        ..ObjectMeta::default()
    }
}

/// Keeps what we are about to sign at a peer, with our signature. Returns whether that is done.
pub(crate) fn reserve(
    peer: &Peer<'_>,
    deal: &Deal,
    noted: Vec<(String, String)>,
    planned: &mut Planned,
) -> bool {
    if peer.copies.namespace.is_empty() {
        return false;
    }
    let Some(copy) = peer.copies.contract(&deal.name_any()) else {
        let mut metadata = copy_metadata(peer, deal.name_any());
        metadata.annotations = Some(noted.into_iter().collect());
        let copy = Contract { metadata, spec: deal.spec.clone(), status: None };
        planned.step(Step::create(Where::Here, &copy, "reserve"));
        return false;
    };
    let mut wanted = (**copy).clone();
    wanted.spec = deal.spec.clone();
    wanted.annotations_mut().extend(noted);
    let step = Step::bring(Where::Here, &**copy, &wanted, "reserve");
    let done = step.is_none();
    planned.step(step);
    done
}

/// Has our copy say what its original says; `expired` if time has told what the original does not. What both signed and
/// we have forgotten, as after a parting that nobody answered, is known again.
pub(crate) fn mirror(view: &View<'_>, peer: &Peer<'_>, deal: &Deal, planned: &mut Planned) {
    let Some(copy) = peer.copies.contract(&deal.name_any()) else {
        return adopt(view, peer, deal, planned);
    };
    if is_noted_over(view, deal) {
        return;
    }
    let mut wanted = (**copy).clone();
    wanted.spec = deal.spec.clone();
    planned.step(Step::bring(Where::Here, &**copy, &wanted, "copy contract"));
    let mut wanted = (**copy).clone();
    wanted.status.clone_from(&deal.status);
    if let Some(status) = &mut wanted.status
        && !deal.is_over()
        && is_past(deal, view.now)
    {
        status.phase = ContractPhase::Expired;
    }
    planned.step(Step::bring_status(Where::Here, &**copy, &wanted, "copy contract status"));
}

/// Keeps what both signed and we have no copy of.
fn adopt(view: &View<'_>, peer: &Peer<'_>, deal: &Deal, planned: &mut Planned) {
    let Some(signed) = deal.signed().filter(|_| deal.is_live() && !is_past(deal, view.now)) else { return };
    if is_noted_over(view, deal) {
        return;
    }
    if peer.copies.namespace.is_empty() {
        return;
    }
    let mut metadata = copy_metadata(peer, deal.name_any());
    if deal.spec.provider_id == view.me.id().as_str() {
        // It is sold from the first write on.
        let pot = pots(view.index, view.me).remove(&peer.id).flatten();
        let noted = reservation(&signed.provider_signature, &pot);
        metadata.annotations = Some(noted.into_iter().collect());
    }
    let copy = Contract { metadata, spec: deal.spec.clone(), status: None };
    planned.step(Step::create(Where::Here, &copy, "copy contract"));
}

/// Whether what was agreed on has come to its end.
pub(crate) fn is_past(deal: &Deal, now: Timestamp) -> bool {
    deal.agreed_terms().is_some_and(|terms| terms.not_after <= now)
}

/// Has our copy say that its original is over, and removes it once that is in the log.
pub(crate) fn part(view: &View<'_>, peer: &Peer<'_>, deal: &Deal, planned: &mut Planned) {
    let Some(copy) = peer.copies.contract(&deal.name_any()) else { return };
    if copy.status != deal.status {
        return mirror(view, peer, deal, planned);
    }
    remove(view, copy, planned);
}

/// Removes a copy whose original is gone, or not asked about any more: first it says that it is over, so that the log has
/// that, too.
pub(crate) fn remove(view: &View<'_>, copy: &Deal, planned: &mut Planned) {
    if copy.agreed.is_some() && !copy.is_over() {
        let wanted = over(copy, ContractPhase::Ended, "Gone", "it is not there any more", view.now);
        planned.step(Step::bring_status(Where::Here, &**copy, &wanted, "end copy of contract"));
    } else if is_logged(view, copy) {
        planned.step(Step::delete(Where::Here, &**copy, "delete copy of contract"));
    }
}
