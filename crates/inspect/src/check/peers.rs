//! Peers that are in trouble.

use liqo_install::finding::Finding;

use super::{World, docs, not_looked_at};
use crate::peer::PeerView;

const NAME: &str = "no peer is in trouble";

pub(super) fn check(world: &World<'_>) -> Vec<Finding> {
    let peers = match &world.facts.peers {
        Ok(peers) => peers.iter().map(PeerView::new).collect::<Vec<_>>(),
        // The kind itself is missing, which is told elsewhere.
        Err(why) if why.is_absent() => return vec![],
        Err(why) => return vec![not_looked_at(NAME, why)],
    };
    let mut findings: Vec<Finding> = peers.iter().filter_map(trouble).collect();
    if findings.is_empty() && !peers.is_empty() {
        findings.push(Finding::ok(NAME, format!("{} of {} are well", peers.len(), peers.len())));
    }
    findings
}

fn trouble(peer: &PeerView) -> Option<Finding> {
    if peer.troubles.is_empty() {
        return None;
    }
    let finding = Finding::warning(format!("peer {} is well", peer.name), peer.troubles.join("; "));
    Some(finding.hint(format!("kubectl describe foreigncluster {}", peer.name)).docs(docs::PEERS))
}
