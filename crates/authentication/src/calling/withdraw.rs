//! What happens when a ForeignCluster goes: the peer is put out, the other rooms finish, and nothing stays behind.

use jiff::{SignedDuration, Timestamp};
use kube::ResourceExt;
use liqo_api::foreign_cluster::DiscoveryType;
use liqo_api::names::ClusterId;
use liqo_api::{ForeignCluster, annotations, finalizers, labels};
use liqo_kit::Key;
use serde_json::json;

use super::plan::{Planned, View, known_id, patch};
use crate::index::{Index, Tenant};
use crate::objects::PEER_ROLE;
use crate::steps::Step;
use crate::tokens::{AdmittedBy, OPEN, Token};

#[cfg(test)]
mod tests;

/// How long the other rooms have to end the peering in order. None of them can block us for longer.
pub(crate) const ORDERLY: SignedDuration = SignedDuration::from_secs(60);
/// When the ForeignCluster goes though something of ours could not be removed.
const GIVE_UP: SignedDuration = SignedDuration::from_secs(70);
/// How long a peer may still take part in that.
pub(crate) const PEER_STAYS: SignedDuration = SignedDuration::from_secs(10);

/// What should happen for a ForeignCluster that is being deleted.
pub(crate) fn plan(view: &View<'_>, cluster: &ForeignCluster) -> Planned {
    let mut planned = Planned::default();
    if !cluster.finalizers().iter().any(|finalizer| finalizer == finalizers::AUTHENTICATION) {
        return planned;
    }
    let going = Going { view, cluster, since: deleted_at(cluster, view.now) };
    let id = known_id(cluster).filter(|id| !going.somebody_else_is(id));
    let others_at_work = going.others_at_work();
    if let Some(tenant) = id.as_ref().and_then(|id| view.index.tenant_of(id)) {
        going.shut_out(tenant, &mut planned);
        let stays = others_at_work && !going.has_passed(PEER_STAYS);
        let key = Key::namespaced(&tenant.name, PEER_ROLE);
        match view.index.bindings.get(&key) {
            Some(_) if stays => planned.wake_at(going.after(PEER_STAYS)),
            Some(binding) => {
                planned
                    .step(Step::DeleteBinding { namespace: tenant.name.clone(), uid: binding.uid.clone() });
            }
            None => {}
        }
    }
    if others_at_work && !going.has_passed(ORDERLY) {
        planned.wake_at(going.after(ORDERLY));
        return planned;
    }
    let left = id.map_or_else(Vec::new, |id| going.leftovers(&id));
    planned.wake_at(going.after(GIVE_UP));
    if (left.is_empty() && planned.steps.is_empty()) || going.has_passed(GIVE_UP) {
        let rest: Vec<_> = cluster
            .finalizers()
            .iter()
            .filter(|finalizer| *finalizer != finalizers::AUTHENTICATION)
            .cloned()
            .collect();
        planned.step(patch(cluster, "remove finalizer", json!({ "metadata": { "finalizers": rest } })));
    }
    planned.steps.extend(left);
    planned
}

fn deleted_at(cluster: &ForeignCluster, now: Timestamp) -> Timestamp {
    cluster.metadata.deletion_timestamp.as_ref().map_or(now, |time| time.0)
}

struct Going<'a> {
    view: &'a View<'a>,
    cluster: &'a ForeignCluster,
    since: Timestamp,
}

impl Going<'_> {
    /// Whether a part of the peering that comes before us has not finished.
    fn others_at_work(&self) -> bool {
        let ours = |finalizer: &str| {
            finalizer != finalizers::AUTHENTICATION
                && finalizer.split('/').next().is_some_and(|domain| domain.ends_with("liqo.io"))
        };
        self.cluster.finalizers().iter().any(|finalizer| ours(finalizer)) && !self.is(annotations::FORCE)
    }

    fn is(&self, annotation: &str) -> bool {
        self.cluster.annotations().get(annotation).map(String::as_str) == Some(labels::TRUE)
    }

    fn after(&self, time: SignedDuration) -> Timestamp {
        self.since.saturating_add(time).unwrap_or(self.since)
    }

    fn has_passed(&self, time: SignedDuration) -> bool {
        self.view.now >= self.after(time)
    }

    /// Whether another ForeignCluster stands for the same peer, which then keeps everything.
    fn somebody_else_is(&self, id: &ClusterId) -> bool {
        self.view.index.cluster_of(id).is_some_and(|first| first.name_any() != self.cluster.name_any())
    }

    /// Lets the peer not come back by itself with what it came in by.
    fn shut_out(&self, tenant: &Tenant, planned: &mut Planned) {
        if self.is(annotations::WITHDRAWN) {
            return;
        }
        planned.steps.extend(shut_out(self.view.index, tenant));
    }

    /// What must be gone before the ForeignCluster may go.
    fn leftovers(&self, id: &ClusterId) -> Vec<Step> {
        let (index, group) = (self.view.index, id.to_string());
        let identities = index.identities.group(&group);
        let mut left: Vec<_> = identities
            .map(|(_, held)| Step::DeleteIdentity { key: held.key.clone(), uid: held.uid.clone() })
            .collect();
        // A token for a cluster that was found by itself is still good when it is found again.
        let found = matches!(self.cluster.discovery_type(), DiscoveryType::Lan | DiscoveryType::Wan);
        if let Some(token) = index.remote_tokens.get(id.as_str()).filter(|_| !found) {
            left.push(Step::DeleteRemoteToken { name: token.name.clone(), uid: token.uid.clone() });
        }
        let tenants = index.tenants.group(&group).map(|(_, tenant)| tenant);
        left.extend(
            tenants
                .filter(|tenant| !tenant.deleting)
                .map(|tenant| Step::DeleteTenant { name: tenant.name.clone(), uid: tenant.uid.clone() }),
        );
        left
    }
}

/// The note that a peer must not come back with what it came in by; nothing if there is one.
pub(crate) fn shut_out(index: &Index, tenant: &Tenant) -> Option<Step> {
    match tenant.admitted_by.as_ref()? {
        AdmittedBy::Own => {
            let digest = index.book.own.as_ref()?.digest();
            (!index.is_denied(&tenant.peer))
                .then(|| Step::Deny { peer: tenant.peer.clone(), token_digest: digest })
        }
        AdmittedBy::Open => {
            let token_digest = index.book.own.as_ref().map_or_else(|| OPEN.to_owned(), Token::digest);
            let denied = index.denied.contains_key(tenant.peer.as_str());
            (!denied).then(|| Step::Deny { peer: tenant.peer.clone(), token_digest })
        }
        AdmittedBy::Token(id) => {
            let record = index.book.peers.get(id).filter(|record| record.revoked.is_none())?;
            let resource_version = record.resource_version.clone();
            Some(Step::RevokeToken { id: id.clone(), resource_version })
        }
    }
}
