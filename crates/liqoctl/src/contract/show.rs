//! Contracts, for people.

use jiff::Timestamp;
use liqo_api::Contract;
use liqo_core::contract::Terms;
use liqo_inspect::age;

use crate::offer::left;
use crate::peering::amounts;
use crate::peering::paper::{ContractView, PoolView, pool_names, texts};
use crate::style::{Mark, Style};
use crate::table::Table;

/// The list.
pub(super) fn table(views: &[ContractView], wide: bool, now: Timestamp) -> String {
    let headings = [
        "NAME",
        "PEER",
        "DIRECTION",
        "PHASE",
        "CPU",
        "MEMORY",
        "PRICE",
        "VALID",
        "POOLS",
        "AMENDMENT",
        "AGE",
        "NAMESPACE",
        "DIGEST",
    ];
    let columns = if wide { headings.len() } else { 9 };
    let mut table = Table::of(&headings[..columns]);
    let none = || "-".to_owned();
    for view in views {
        let amount = |name: &str| view.resources.get(name).map_or_else(none, |it| it.0.clone());
        let mut cells = vec![
            view.name.clone(),
            view.peer.clone(),
            view.direction.to_owned(),
            view.phase.clone(),
            amount("cpu"),
            amount("memory"),
            view.price.clone().unwrap_or_else(|| "free".to_owned()),
            view.valid_until.map_or_else(none, |until| left(until, now)),
            pool_names(&view.pools),
            view.sequence.map_or_else(none, |sequence| sequence.to_string()),
            view.created.map_or_else(none, |created| age::text(now.duration_since(created))),
            view.namespace.clone(),
            view.digest.clone().unwrap_or_else(none),
        ];
        cells.truncate(columns);
        table.push(cells);
    }
    table.to_string()
}

/// One contract. What counts are the terms that both signed; what is only proposed is told as such.
pub(super) fn text(contract: &Contract, view: &ContractView, wide: bool, style: Style) -> String {
    let agreed = contract.status.as_ref().and_then(|status| status.agreed.as_ref());
    let signed = agreed.and_then(|agreed| Terms::parse(agreed.terms.as_bytes()).ok());
    let proposed = Terms::parse(contract.spec.terms.as_bytes()).ok();
    let mut lines: Vec<(&str, String)> = vec![
        ("Name", view.name.clone()),
        ("Peer", view.peer.clone()),
        ("Direction", view.direction.to_owned()),
        ("Phase", view.phase.clone()),
    ];
    match signed.as_ref().or(proposed.as_ref()) {
        Some(terms) => lines.extend(clauses(terms, wide)),
        None => lines.push(("Terms", "they cannot be read; liqoctl contract verify says why".to_owned())),
    }
    if let Some(agreed) = agreed {
        lines.push(("Signed", agreed.time.0.to_string()));
    }
    if let Some(ended) = &contract.spec.ended {
        lines.push(("Ended", format!("{}, {} ({})", ended.time.0, ended.message, ended.reason)));
    }
    if signed.is_some()
        && signed != proposed
        && let Some(terms) = proposed
    {
        lines.push(("Proposed", format!("amendment {}: {}", terms.sequence, terms.resources)));
    }
    let mut text: String =
        lines.into_iter().map(|(name, value)| format!("{:<14} {value}\n", format!("{name}:"))).collect();
    for condition in &view.conditions {
        let mark = style.mark(if condition.status == "False" { Mark::Bad } else { Mark::Good });
        let message =
            if condition.message.is_empty() { String::new() } else { format!(": {}", condition.message) };
        text += &format!("{mark} {}{message}\n", condition.type_);
    }
    text
}

fn clauses(terms: &Terms, wide: bool) -> Vec<(&'static str, String)> {
    let party = |party: &liqo_core::contract::Party| match wide {
        true => format!("{} (ID {}, key {})", party.name, party.id, party.key),
        false => format!("{} (ID {})", party.name, party.id),
    };
    let renewal = terms.renewal.map_or_else(|| "none".to_owned(), |span| format!("for {span} each time"));
    let mut lines = vec![
        ("Provider", party(&terms.provider)),
        ("Consumer", party(&terms.consumer)),
        ("Resources", amounts(&texts(&terms.resources))),
        ("Price", liqo_peering::paper::price(terms).unwrap_or_else(|| "free".to_owned())),
        ("Valid", format!("from {} to {}", terms.not_before, terms.not_after)),
        ("Renewal", renewal),
    ];
    let pools = PoolView::all_of(terms);
    lines.extend(pools.iter().map(|pool| ("Pool", format!("{}: {}", pool.name, pool.sentence()))));
    let promises: Vec<String> =
        terms.service_level.iter().map(|(name, value)| format!("{name} {value}")).collect();
    if !promises.is_empty() {
        lines.push(("Service level", promises.join(", ")));
    }
    lines.push(("Amendment", terms.sequence.to_string()));
    if wide {
        lines.push(("Digest", terms.digest().to_string()));
        lines.push(("Offer", terms.offer.to_string()));
    }
    lines
}
