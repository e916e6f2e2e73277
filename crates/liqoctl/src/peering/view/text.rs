//! A peer, for people.

use jiff::Timestamp;
use liqo_inspect::age;

use super::{Direction, PeerDetail, State, StepState, found_text};
use crate::style::{Mark, Style};

/// A peer, for people.
pub(crate) fn text(peer: &PeerDetail, wide: bool, style: Style, now: Timestamp) -> String {
    let mut parts = vec![summary(peer, wide)];
    parts.push(direction("BORROWED FROM IT", &peer.outgoing, wide, style, now));
    parts.push(direction("LENT TO IT", &peer.incoming, wide, style, now));
    if !peer.other.is_empty() {
        let lines: String = peer.other.iter().map(|state| format!("  {}\n", condition(state, now))).collect();
        parts.push(format!("{}\n{lines}", style.bold("OTHERWISE")));
    }
    parts.join("\n")
}

fn summary(peer: &PeerDetail, wide: bool) -> String {
    let unknown = || "not known yet".to_owned();
    let mut lines: Vec<(&str, String)> = vec![("Name", peer.name.clone())];
    let cluster = peer.cluster_name.as_ref().zip(peer.cluster_id.as_ref());
    lines.push(("Cluster", cluster.map_or_else(unknown, |(name, id)| format!("{name} (ID {id})"))));
    lines.push(("Found", found_text(peer.found).to_owned()));
    if let Some(url) = &peer.auth_url {
        lines.push(("Reached at", url.clone()));
    }
    if let Some(expires) = peer.certificate_expires {
        lines.push(("Certificate", format!("until {expires}")));
    }
    if wide {
        let namespaces = &peer.tenant_namespace;
        let named = [(&namespaces.local, "here"), (&namespaces.remote, "there")];
        let named = named.into_iter().filter_map(|(name, place)| Some(format!("{} {place}", name.as_ref()?)));
        lines.push(("Namespaces", named.collect::<Vec<_>>().join(", ")));
    }
    if let Some(since) = peer.removed_since {
        lines.push(("Removed", format!("since {since}; it goes when both sides know, or after a minute")));
    }
    lines.into_iter().map(|(name, value)| format!("{:<14} {value}\n", format!("{name}:"))).collect()
}

fn direction(title: &str, it: &Direction, wide: bool, style: Style, now: Timestamp) -> String {
    let mut text = format!("{}: {}\n", style.bold(title), condition(&it.state, now));
    for step in &it.steps {
        let (mark, since) = match step.state {
            StepState::Done => (Mark::Good, String::new()),
            StepState::Waiting => (Mark::Busy, waiting(step.since, now)),
            StepState::Refused => (Mark::Bad, waiting(step.since, now)),
        };
        text += &format!("  {} {}: {}{since}\n", style.mark(mark), step.name, step.text);
    }
    // The steps tell it already, unless somebody wants to see all.
    let told = !wide && it.steps.iter().any(|step| step.name == "offer" && step.state == StepState::Done);
    if let Some(offer) = it.offer.as_ref().filter(|_| !told) {
        text += &format!("  offer:     {}\n", offer.sentence());
    }
    if let Some(contract) = &it.contract {
        if !told {
            text += &format!("  contract:  {}\n", contract.sentence());
        }
        for (type_, message) in contract.broken() {
            text += &format!("  {} {type_}: {message}\n", style.mark(Mark::Bad));
        }
    }
    text
}

fn waiting(since: Option<Timestamp>, now: Timestamp) -> String {
    since.map(|since| format!(" (since {})", age::text(now.duration_since(since)))).unwrap_or_default()
}

fn condition(state: &State, now: Timestamp) -> String {
    let part = state.part.as_ref().map(|part| format!("{part}: ")).unwrap_or_default();
    let since = waiting(state.since, now);
    let message = if state.message.is_empty() { String::new() } else { format!(", {}", state.message) };
    format!("{part}{}{since}{message}", state.status)
}
