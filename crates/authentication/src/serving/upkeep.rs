//! What the leader keeps true on the called side: who was put out is out, roles are what they should be, and the house has
//! its token and its certificate. Pure.

use jiff::{SignedDuration, Timestamp};
use kube::ResourceExt;
use liqo_api::ForeignCluster;
use liqo_api::foreign_cluster::DiscoveryType;
use liqo_kit::Key;

use crate::calling::plan::Planned;
use crate::index::{Index, Standing, Tenant};
use crate::objects::PEER_ROLE;
use crate::steps::Step;

#[cfg(test)]
mod tests;

/// A peer without a ForeignCluster is put out after this; when one comes in, the two appear shortly after one another.
const ORPHAN_BINDING: SignedDuration = SignedDuration::from_secs(30);
/// A tenant namespace without a ForeignCluster is removed after this.
const ORPHAN_TENANT: SignedDuration = SignedDuration::from_mins(10);

/// What should happen for one tenant namespace.
pub(crate) fn plan_tenant(index: &Index, tenant: &Tenant, now: Timestamp) -> Planned {
    let mut planned = Planned::default();
    if tenant.deleting {
        return planned;
    }
    let key = Key::namespaced(&tenant.name, PEER_ROLE);
    let cluster = index.cluster_of(&tenant.peer);
    planned.steps.extend(note_standing(index, tenant));
    let orphan_after = |age: SignedDuration| {
        let created = tenant.created.unwrap_or(now);
        created.saturating_add(age).unwrap_or(created)
    };
    if let Some(binding) = index.bindings.get(&key) {
        let delete = Step::DeleteBinding { namespace: tenant.name.clone(), uid: binding.uid.clone() };
        let created = binding.created.unwrap_or(now);
        let orphaned = created.saturating_add(ORPHAN_BINDING).unwrap_or(created);
        if index.standing(tenant) != Standing::Admitted || !binding.right_role {
            planned.step(delete);
        } else if !binding.right_peer {
            planned.step(Step::FixBinding { peer: tenant.peer.clone(), namespace: tenant.name.clone() });
        } else if cluster.is_none() && now >= orphaned {
            planned.step(delete);
        } else if cluster.is_none() {
            planned.wake_at(orphaned);
        }
    }
    if index.roles.get(&key).is_some_and(|role| !role.right) {
        planned.step(Step::FixRole { peer: tenant.peer.clone(), namespace: tenant.name.clone() });
    }
    if cluster.is_none() {
        let at = orphan_after(ORPHAN_TENANT);
        if now >= at {
            planned.step(Step::DeleteTenant { name: tenant.name.clone(), uid: tenant.uid.clone() });
        } else {
            planned.wake_at(at);
        }
    }
    planned
}

/// Notes on the namespace that its peer is put out, or no longer is. A ForeignCluster that goes ends the peering in order
/// itself, and the peer takes part in that.
fn note_standing(index: &Index, tenant: &Tenant) -> Option<Step> {
    let going = |cluster: &ForeignCluster| cluster.metadata.deletion_timestamp.is_some();
    let put_out = index.standing(tenant) == Standing::Revoked;
    if put_out == tenant.put_out || (put_out && index.cluster_of(&tenant.peer).is_some_and(going)) {
        return None;
    }
    let (name, resource_version) = (tenant.name.clone(), tenant.resource_version.clone());
    Some(Step::NotePutOut { name, resource_version, put_out })
}

/// What the house itself needs.
pub(crate) fn plan_house(index: &Index, tokens_required: bool, now: Timestamp) -> Vec<Step> {
    let mut steps = Vec::new();
    match &index.book.own {
        _ if !index.own_token_exists => steps.push(Step::CreateOwnToken),
        Some(token) if token.is_empty() => steps.push(Step::FillOwnToken),
        _ => {}
    }
    match &index.serving {
        _ if !index.serving_exists => steps.push(Step::CreateServing),
        Some(serving) if serving.is_due(now) => {
            steps.push(Step::ReplaceServing { resource_version: serving.resource_version.clone() });
        }
        _ => {}
    }
    let own = index.book.own.as_ref().map(crate::tokens::Token::digest);
    for (peer, denied) in &index.denied {
        // Another token, or somebody who adds the cluster again, means that it may come. Where no token is asked for, another
        // one says nothing about those who come without.
        let obsolete = tokens_required && own.as_ref().is_some_and(|own| *own != denied.token_digest);
        if obsolete || is_wanted(index, peer, denied.created) {
            steps.push(Step::LiftDenial { peer: peer.clone(), uid: denied.uid.clone() });
        }
    }
    steps
}

/// Whether somebody, and not the peer itself, made a ForeignCluster for it since it was put out.
fn is_wanted(index: &Index, peer: &str, since: Option<Timestamp>) -> bool {
    index.clusters.group(&peer.to_owned()).any(|(_, cluster)| {
        let created = cluster.creation_timestamp().map(|time| time.0);
        cluster.metadata.deletion_timestamp.is_none()
            && created.zip(since).is_some_and(|(created, since)| created >= since)
            && cluster.discovery_type() != DiscoveryType::IncomingPeering
    })
}
