//! What should happen for one ForeignCluster. Pure: what is known and the time.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::Namespace;
use kube::ResourceExt;
use liqo_api::foreign_cluster::{
    NOT_ASKED, PeeringConditionStatus as Status, PeeringConditionType, PeeringEnabled, TenantNamespaces,
};
use liqo_api::names::{ClusterId, Identity};
use liqo_api::{DiscoveryType, ForeignCluster, annotations, finalizers, labels};
use liqo_kit::Key;
use liqo_kit::write::Target;
use serde_json::json;

use super::failure::{Failure, check_peer};
use super::status::{self, PUT_OUT, Told};
use super::withdraw;
use super::{Attempt, Basis, Received};
use crate::client::{Authorities, Certified, Trust};
use crate::index::{Held, Index, KnownKey, Standing, Tenant};
use crate::steps::{Call, Step};
use crate::wire::key_to_base64;

#[cfg(test)]
mod tests;

/// The part of its life after which a certificate is renewed, in per cent; what is left is for all that may go wrong.
const RENEW_AFTER_PERCENT: i64 = 66;
/// By how much of its life, in per cent, renewals of different peers differ, so that they do not all come at once.
const RENEW_SPREAD_PERCENT: i64 = 5;
/// However short-lived a certificate is or however wrong a clock: no new one is asked for before this.
const RENEW_PAUSE: SignedDuration = SignedDuration::from_secs(60);

/// How long after its creation a ForeignCluster need not say that we are at it.
const UNTOLD: SignedDuration = SignedDuration::from_secs(2);

/// What is looked at.
pub(crate) struct View<'a> {
    pub(crate) index: &'a Index,
    /// Without an identity of our own nobody is called; what goes away goes all the same.
    pub(crate) me: Option<&'a liqo_identity::Identity>,
    /// Whether clusters that are found are to be borrowed from without anybody saying so.
    pub(crate) autojoin: bool,
    pub(crate) now: Timestamp,
}

/// What should happen, and when to look again if nothing else happens.
#[derive(Debug, Default)]
pub(crate) struct Planned {
    pub(crate) steps: Vec<Step>,
    pub(crate) wake: Option<Timestamp>,
}

impl Planned {
    pub(crate) fn step(&mut self, step: Step) {
        self.steps.push(step);
    }

    pub(crate) fn wake_at(&mut self, at: Timestamp) {
        self.wake = Some(self.wake.map_or(at, |wake| wake.min(at)));
    }

    /// Tells it, if it is not told yet.
    fn tell(&mut self, cluster: &ForeignCluster, told: &Told, now: Timestamp) {
        // What is over in a moment need not be told, and costs the API server nothing then.
        let created = cluster.creation_timestamp().map_or(now, |time| time.0);
        let patient_until = created.saturating_add(UNTOLD).unwrap_or(created);
        let says_nothing = cluster.peering_status(PeeringConditionType::AuthenticationStatus) == Status::None;
        if *told == Told::authenticating().with(told) && says_nothing && now < patient_until {
            self.wake_at(patient_until);
            return;
        }
        if let Some((status, reports)) = status::missing(cluster, told, now) {
            self.steps.extend(reports.into_iter().map(Step::Report));
            self.step(Step::WriteStatus { name: cluster.name_any(), status });
        }
    }
}

/// What should happen for this ForeignCluster.
pub(crate) fn plan(view: &View<'_>, cluster: &ForeignCluster) -> Planned {
    if cluster.metadata.deletion_timestamp.is_some() {
        return withdraw::plan(view, cluster);
    }
    let mut planned = Planned::default();
    let Some(me) = view.me else { return planned };
    let id = known_id(cluster);
    // Before anything exists that must be removed again.
    if !cluster.finalizers().iter().any(|finalizer| finalizer == finalizers::AUTHENTICATION) {
        let mut all = cluster.finalizers().to_vec();
        all.push(finalizers::AUTHENTICATION.to_owned());
        planned.step(patch(cluster, "add finalizer", json!({ "metadata": { "finalizers": all } })));
        return planned;
    }
    let mut told = if cluster.spec.foreign_auth_url.is_empty() {
        Told::new(Status::None, "NotCalled", "this peer calls us; where it can be called is not known")
    } else if let Some(other) = id.as_ref().and_then(|id| another(view.index, id, cluster)) {
        duplicate(&other)
    } else {
        Caller { view, me, cluster, planned: &mut planned }.told()
    };
    let tenant = id.as_ref().and_then(|id| view.index.tenant_of(id));
    let held = id.as_ref().and_then(|id| view.index.identity_at(id));
    told.tenant = TenantNamespaces {
        local: tenant.filter(|tenant| !tenant.deleting).map(|tenant| tenant.name.clone()),
        remote: held.and_then(|held| held.remote_namespace.as_ref()).map(ToString::to_string),
    };
    told.trouble = tenant.and_then(|tenant| trouble(view, tenant, &mut planned));
    planned.tell(cluster, &told, view.now);
    planned
}

pub(crate) fn patch(cluster: &ForeignCluster, what: &'static str, patch: serde_json::Value) -> Step {
    let resource_version = cluster.resource_version().unwrap_or_default();
    Step::PatchCluster { name: cluster.name_any(), resource_version, patch, what }
}

/// The peer's ID, if it is known and legal.
pub(crate) fn known_id(cluster: &ForeignCluster) -> Option<ClusterId> {
    let identity = cluster.spec.cluster_identity.as_ref()?;
    identity.cluster_id.as_deref()?.parse().ok()
}

/// The ForeignCluster that is this cluster already.
fn another(index: &Index, id: &ClusterId, cluster: &ForeignCluster) -> Option<String> {
    let first = index.cluster_of(id)?.name_any();
    (first != cluster.name_any()).then_some(first)
}

fn not_asked(name: &str) -> Told {
    let message = format!(
        "known, not asked for an identity there: nobody wants to borrow from it; set outgoingPeeringEnabled: Yes, or run \
         liqoctl peer {name}"
    );
    Told::new(Status::None, NOT_ASKED, message)
}

fn duplicate(other: &str) -> Told {
    let message = format!(
        "the ForeignCluster {other} has the same cluster ID, and two cannot be the same cluster; delete one of them"
    );
    Told::new(Status::Denied, "DuplicateCluster", message)
}

/// What is wrong with the peer itself.
fn trouble(view: &View<'_>, tenant: &Tenant, planned: &mut Planned) -> Option<(&'static str, String)> {
    if view.index.standing(tenant) == Standing::Revoked {
        let message = "this cluster was put out: what it came in by was revoked, and it can do nothing here until it \
                       comes with a new token";
        return Some((PUT_OUT, message.to_owned()));
    }
    let (trouble, until) = status::claim(tenant.claim.as_ref()?, view.now)?;
    planned.wake_at(until);
    Some(trouble)
}

/// When a certificate should be renewed.
pub(crate) fn renew_at(certified: &Certified, seed: &str) -> Timestamp {
    let life = certified.not_after.duration_since(certified.not_before).as_secs();
    let spread = i64::from(spread(seed)) * RENEW_SPREAD_PERCENT * life / 100 / 256;
    let after = SignedDuration::from_secs(life * RENEW_AFTER_PERCENT / 100 + spread);
    certified.not_before.saturating_add(after).unwrap_or(certified.not_after)
}

/// A number that differs from peer to peer and never changes.
pub(crate) fn spread(seed: &str) -> u8 {
    use sha2::{Digest, Sha256};
    Sha256::digest(seed)[0]
}

/// Why a certificate is asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Need {
    /// There is one, and it will do until then.
    Nothing { until: Timestamp },
    /// There is none that works.
    First,
    /// There is one that works and should be replaced; the value of the annotation that asks for it.
    Newer(Option<String>),
}

/// One peer that we call.
struct Caller<'a> {
    view: &'a View<'a>,
    me: &'a liqo_identity::Identity,
    cluster: &'a ForeignCluster,
    planned: &'a mut Planned,
}

impl Caller<'_> {
    fn told(&mut self) -> Told {
        match self.cluster.identity() {
            None => self.identify(),
            Some(Ok(identity)) => self.authenticate(&identity),
            Some(Err(error)) => Told::new(Status::Error, "InvalidIdentity", error.to_string()),
        }
    }

    /// What is remembered, if it is about things as they are now.
    fn attempt(&self) -> Option<&Attempt> {
        let attempt = self.view.index.attempts.get(&self.cluster.name_any())?;
        (attempt.basis == basis(self.view.index, self.me, self.cluster)).then_some(attempt)
    }

    /// Calls, unless it must wait; returns what is to be told meanwhile.
    fn call(&mut self, call: Call) -> Told {
        let attempt = self.attempt().cloned();
        if attempt.as_ref().is_none_or(|attempt| attempt.may_call(self.view.now)) {
            self.planned.step(Step::Call(call));
        } else if let Some(retry_at) = attempt.as_ref().and_then(|attempt| attempt.retry_at) {
            self.planned.wake_at(retry_at);
        }
        let failure = attempt.and_then(|attempt| attempt.failure);
        failure.as_ref().map_or_else(Told::authenticating, Told::failed)
    }

    /// Nobody said who is there: ask.
    fn identify(&mut self) -> Told {
        let Some(found) = self.attempt().and_then(|attempt| attempt.identified.clone()) else {
            return self.call(Call::Identify { cluster: self.cluster.name_any() });
        };
        let known = self.known_key(&found.identity.id);
        let expected = self.cluster.spec.cluster_identity.as_ref();
        if let Err(failure) = check_peer(&found, expected, &self.me.id, &known) {
            return Told::failed(&failure);
        }
        if let Some(other) = another(self.view.index, &found.identity.id, self.cluster) {
            return duplicate(&other);
        }
        let identity = &found.identity;
        self.planned.step(patch(
            self.cluster,
            "fill identity",
            json!({
                "metadata": { "labels": { labels::CLUSTER_ID: identity.id.as_str() } },
                "spec": { "clusterIdentity": {
                    "clusterID": identity.id.as_str(), "clusterName": identity.name.as_str(),
                } },
            }),
        ));
        Told::authenticating()
    }

    fn known_key(&self, id: &ClusterId) -> KnownKey {
        self.view.index.tenant_of(id).map_or(KnownKey::None, |tenant| tenant.key.clone())
    }

    fn authenticate(&mut self, peer: &Identity) -> Told {
        if peer.id == self.me.id {
            let message = "this is the cluster itself: it cannot peer with itself";
            return Told::new(Status::Denied, "OwnCluster", message);
        }
        if self.cluster.labels().get(labels::CLUSTER_ID).map(String::as_str) != Some(peer.id.as_str()) {
            let label = json!({ "metadata": { "labels": { labels::CLUSTER_ID: peer.id.as_str() } } });
            self.planned.step(patch(self.cluster, "add label", label));
        }
        if !self.is_to_be_asked(peer) {
            return not_asked(&self.cluster.name_any());
        }
        let Some(tenant) = self.view.index.tenant_of(&peer.id) else {
            return self.create_tenant(peer);
        };
        if tenant.deleting {
            let message = "an earlier peering with this cluster is just being removed";
            return Told::new(Status::Pending, "TenantNamespaceTerminating", message);
        }
        let held =
            self.view.index.identity_at(&peer.id).filter(|held| held.key.namespace() == Some(&tenant.name));
        // Its key first: once the identity is stored nobody is called, and the key would stay unknown.
        if !self.note_key(tenant) {
            self.store(peer, tenant, held);
        }
        self.keep(peer, held)
    }

    /// Whether somebody wants something of the peer for which it must know us. Found is not wanted: a stranger on the same
    /// network is not asked for rights. What we have there already is kept as long as it lasts.
    fn is_to_be_asked(&self, peer: &Identity) -> bool {
        let found = matches!(self.cluster.discovery_type(), DiscoveryType::Lan | DiscoveryType::Wan);
        let index = self.view.index;
        let joins = |domain: &str| index.domains.get(domain) == Some(&true);
        let held = || index.identity_at(&peer.id).and_then(|held| held.certificate.as_ref().ok());
        !found
            || self.cluster.wants_outgoing(self.view.autojoin, joins)
            || self.cluster.spec.incoming_peering_enabled == PeeringEnabled::Yes
            || held().is_some_and(|certified| certified.not_after > self.view.now)
    }

    fn create_tenant(&mut self, peer: &Identity) -> Told {
        self.planned.step(Step::CreateTenant { peer: peer.clone(), annotations: BTreeMap::new() });
        let name = peer.tenant_namespace();
        let target = Target::of::<Namespace>(Key::cluster(name.as_str()));
        let Some(failure) = self.view.index.failures.get(&target) else { return Told::authenticating() };
        let message = format!(
            "the namespace {name} cannot be made ({failure}); if there is one of that name that is not this peer's, it must \
             be removed, or the peer needs another name"
        );
        Told::new(Status::Error, "NoTenantNamespace", message)
    }

    /// What a peer told of its key is remembered, and no other is its key from then on. Whoever sets insecureSkipTLSVerify
    /// trusts the first that answers. Returns whether that is still to be done.
    fn note_key(&mut self, tenant: &Tenant) -> bool {
        let received = self.attempt().and_then(|attempt| attempt.obtained.as_ref());
        let Some(received) = received else { return false };
        let (KnownKey::None, Some(key)) = (&tenant.key, &received.peer.public_key) else { return false };
        let annotations = [(annotations::PEER_PUBLIC_KEY.to_owned(), key_to_base64(key))].into();
        let (name, resource_version) = (tenant.name.clone(), tenant.resource_version.clone());
        self.planned.step(Step::MarkTenant { name, resource_version, annotations });
        true
    }

    /// Stores what was received, and takes away the annotation that asked for it.
    fn store(&mut self, peer: &Identity, tenant: &Tenant, held: Option<&Held>) {
        let Some(received) = self.attempt().and_then(|attempt| attempt.obtained.clone()) else { return };
        if !is_stored(&received, held) {
            self.planned.step(Step::StoreIdentity {
                peer: peer.clone(),
                namespace: tenant.name.clone(),
                proxy_url: self.cluster.spec.foreign_proxy_url.clone(),
                token_digest: self.token_digest(&peer.id),
                received: Box::new(received),
            });
        } else if received.rotation.is_some() && received.rotation == rotation(self.cluster) {
            let patch_ = json!({ "metadata": { "annotations": { annotations::ROTATE: null } } });
            self.planned.step(patch(self.cluster, "remove rotation", patch_));
        }
    }

    /// Asks for a certificate when one is needed, and tells how things are.
    fn keep(&mut self, peer: &Identity, held: Option<&Held>) -> Told {
        let waiting = self.attempt().and_then(|attempt| attempt.obtained.as_ref());
        if waiting.is_some_and(|received| !is_stored(received, held)) {
            return self.established(peer, held).unwrap_or_else(Told::authenticating);
        }
        let cluster = self.cluster.name_any();
        match self.need(held) {
            Need::Nothing { until } => {
                self.planned.wake_at(until);
                self.established(peer, held).map_or_else(Told::authenticating, |told| self.foresee(told))
            }
            Need::First => {
                self.call(Call::Obtain { cluster, rotation: rotation(self.cluster), try_first: false })
            }
            Need::Newer(rotation) => {
                let told = self.call(Call::Obtain { cluster, rotation, try_first: true });
                match self.established(peer, held) {
                    Some(established) if told.reason == Told::authenticating().reason => established,
                    Some(established) => renewal_fails(established, &told),
                    None => told,
                }
            }
        }
    }

    /// What will be in the way of the next renewal is told when it is written, not months later.
    fn foresee(&self, established: Told) -> Told {
        match Trust::of(&self.cluster.spec, &Authorities::default()) {
            Ok(_) => established,
            Err(error) => renewal_fails(established, &Told::failed(&Failure::of(&error, true))),
        }
    }

    /// Of the token that the peer is shown.
    fn token_digest(&self, peer: &ClusterId) -> Option<String> {
        self.view.index.remote_tokens.get(peer.as_str()).map(|token| token.token.digest())
    }

    fn need(&self, held: Option<&Held>) -> Need {
        let now = self.view.now;
        let usable = held.and_then(|held| held.certificate.as_ref().ok());
        let Some(certified) = usable
            .filter(|certified| certified.not_after > now && certified.common_name == self.me.id.as_str())
        else {
            return Need::First;
        };
        let token = held.and_then(|held| self.token_digest(&held.peer));
        if token.is_some() && token.as_ref() != held.and_then(|held| held.token_digest.as_ref()) {
            return Need::Newer(rotation(self.cluster));
        }
        let renew_at = renew_at(certified, &self.cluster.uid().unwrap_or_default());
        let received = self.attempt().and_then(|attempt| attempt.obtained.as_ref());
        if let Some(received) = received {
            // A clock that runs wild must not keep the peer busy.
            let pause = received.at.saturating_add(RENEW_PAUSE).unwrap_or(received.at);
            let rotated = rotation(self.cluster).is_none_or(|value| received.rotation == Some(value));
            if now < pause && rotated {
                return Need::Nothing { until: renew_at.max(pause) };
            }
        }
        match rotation(self.cluster) {
            Some(value) if received.is_none_or(|received| received.rotation.as_ref() != Some(&value)) => {
                Need::Newer(Some(value))
            }
            _ if now >= renew_at => Need::Newer(None),
            _ => Need::Nothing { until: renew_at },
        }
    }

    /// What is told while we have an identity there.
    fn established(&self, peer: &Identity, held: Option<&Held>) -> Option<Told> {
        let certified = held?.certificate.as_ref().ok()?;
        if certified.not_after <= self.view.now {
            return None;
        }
        let until = certified.not_after;
        let spec = &self.cluster.spec;
        let proven = spec.auth_fingerprint.is_some() || spec.auth_ca_bundle.is_some();
        if spec.insecure_skip_tls_verify && !proven {
            let known = match self.known_key(&peer.id) {
                KnownKey::Key(key) => format!("the key {} was believed at the first call", key.fingerprint()),
                KnownKey::None | KnownKey::Unreadable => "it told no key".to_owned(),
            };
            let message = format!(
                "we have an identity at {name} until {until}, but it is not proven that it is {name}: \
                 insecureSkipTLSVerify is set, and {known}; set authFingerprint or authCaBundle instead",
                name = peer.name
            );
            return Some(Told::new(Status::Established, "AuthenticatedInsecurely", message));
        }
        let message = format!("we have an identity at {} until {until}", peer.name);
        Some(Told::new(Status::Established, "Authenticated", message))
    }
}

fn renewal_fails(established: Told, failed: &Told) -> Told {
    let message = format!("{}; it cannot be renewed: {}", established.message, failed.message);
    Told { reason: "RenewalFailing", message, ..established }
}

fn is_stored(received: &Received, held: Option<&Held>) -> bool {
    let certified = held.and_then(|held| held.certificate.as_ref().ok());
    // A certificate that ends later than what was received came after it.
    certified.is_some_and(|certified| {
        certified.digest == received.obtained.certified.digest
            || certified.not_before > received.obtained.certified.not_before
    })
}

fn rotation(cluster: &ForeignCluster) -> Option<String> {
    cluster.annotations().get(annotations::ROTATE).cloned()
}

/// What a call to this peer is made with now.
pub(crate) fn basis(index: &Index, me: &liqo_identity::Identity, cluster: &ForeignCluster) -> Basis {
    let token = known_id(cluster).and_then(|id| index.remote_tokens.get(id.as_str()));
    Basis::new(cluster, token.map(|token| token.token.digest()), me)
}

/// What is remembered of a call that ended.
pub(crate) fn after_failure(attempt: &mut Attempt, failure: Failure, seed: &str, now: Timestamp) {
    attempt.under_way = false;
    attempt.failures = attempt.failures.saturating_add(1);
    let random = f64::from(spread(&format!("{seed} {}", attempt.failures))) / 256.0;
    attempt.retry_at = Some(failure.retry_at(attempt.failures, random, now));
    attempt.failure = Some(failure);
}
