//! Makes the calls that the plan asks for.

use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::api::authentication::v1::SelfSubjectReview;
use kube::api::PostParams;
use kube::{Api, ResourceExt};
use liqo_api::ForeignCluster;
use liqo_identity::Identity;
use liqo_kit::clusters::{ClientConfig, Credentials};
use liqo_kit::{ClientSource, Clusters, Shared};
use tokio::time::Instant;

use super::failure::{Failure, check_peer};
use super::plan::{after_failure, basis, known_id};
use super::{Attempt, Basis, Received};
use crate::Clock;
use crate::client::{Authorities, CallError, Obtained, Trust, identify, request_certificate};
use crate::index::{Index, KnownKey};
use crate::metrics::AuthenticationMetrics;
use crate::steps::Call;
use crate::tokens::Token;
use crate::wire::PeerIdentity;

/// What calls need.
#[derive(Clone)]
pub(crate) struct Caller {
    pub(crate) index: Shared<Index>,
    pub(crate) authorities: Authorities,
    pub(crate) metrics: AuthenticationMetrics,
    pub(crate) clock: Clock,
}

/// A call that is about to be made, with all that it is made with.
pub(crate) struct Ready {
    call: Call,
    basis: Basis,
    cluster: ForeignCluster,
    me: Arc<Identity>,
    token: Token,
    known: KnownKey,
}

enum Found {
    Identity(PeerIdentity),
    Certificate(Box<Received>),
}

impl Caller {
    /// Notes that the call is being made; nothing if the ForeignCluster is gone or a call is being made already.
    pub(crate) fn begin(&self, call: Call, me: &Arc<Identity>) -> Option<Ready> {
        let mut index = self.index.write();
        let key = liqo_kit::Key::cluster(call.cluster());
        let cluster = index.clusters.store().get(&key)?.clone();
        let basis = basis(&index, me, &cluster);
        let name = call.cluster().to_owned();
        // What was found out before, with something else, means nothing.
        let former = index.attempts.remove(&name).filter(|attempt| attempt.basis == basis);
        let mut attempt = former.unwrap_or_else(|| Attempt::new(basis.clone()));
        let busy = attempt.under_way;
        attempt.under_way = true;
        index.attempts.insert(name, attempt);
        if busy {
            return None;
        }
        let id = known_id(&cluster);
        let token = id.as_ref().and_then(|id| index.remote_tokens.get(id.as_str()));
        let token = token.map(|token| token.token.clone()).unwrap_or_default();
        let known = id.and_then(|id| index.tenant_of(&id).map(|tenant| tenant.key.clone()));
        Some(Ready {
            call,
            basis,
            cluster,
            me: Arc::clone(me),
            token,
            known: known.unwrap_or(KnownKey::None),
        })
    }

    /// Makes it, and remembers what came of it.
    pub(crate) async fn make(&self, ready: Ready) {
        let started = Instant::now();
        let result = self.ask(&ready).await;
        let name = ready.cluster.name_any();
        let outcome = match &result {
            Ok(Found::Identity(_)) => "identified",
            Ok(Found::Certificate(_)) => "granted",
            Err(failure) => failure.reason,
        };
        self.metrics.called(outcome, started.elapsed());
        match &result {
            Ok(_) => tracing::info!(cluster = name, outcome, "called a peer"),
            Err(failure) => {
                tracing::warn!(cluster = name, outcome, message = failure.message, "called a peer in vain");
            }
        }
        self.remember(&name, &ready, result);
        self.index.notify();
    }

    fn remember(&self, name: &str, ready: &Ready, result: Result<Found, Failure>) {
        let mut index = self.index.write();
        let Some(attempt) = index.attempts.get_mut(name).filter(|attempt| attempt.basis == ready.basis)
        else {
            return;
        };
        match result {
            Err(failure) => {
                let seed = ready.cluster.uid().unwrap_or_default();
                after_failure(attempt, failure, &seed, self.clock.now());
            }
            Ok(found) => {
                *attempt = Attempt { obtained: attempt.obtained.take(), ..Attempt::new(ready.basis.clone()) };
                match found {
                    Found::Identity(identity) => attempt.identified = Some(identity),
                    Found::Certificate(received) => attempt.obtained = Some(*received),
                }
            }
        }
    }

    async fn ask(&self, ready: &Ready) -> Result<Found, Failure> {
        let spec = &ready.cluster.spec;
        let url = spec.foreign_auth_url.as_str();
        let failed = |error: CallError| Failure::of(&error, !ready.token.is_empty());
        let trust = Trust::of(spec, &self.authorities).map_err(failed)?;
        let peer = identify(url, &trust).await.map_err(failed)?;
        let Call::Obtain { rotation, try_first, .. } = &ready.call else { return Ok(Found::Identity(peer)) };
        check_peer(&peer, spec.cluster_identity.as_ref(), &ready.me.id, &ready.known)?;
        let now = self.clock.now();
        let obtained =
            request_certificate(url, &trust, &ready.me, &peer, &ready.token, now).await.map_err(failed)?;
        if *try_first {
            try_out(&obtained, &ready.me).await?;
        }
        let rotation = rotation.clone();
        Ok(Found::Certificate(Box::new(Received { obtained, at: now, rotation, peer })))
    }

    /// Forgets what is about ForeignClusters that do not exist any more.
    pub(crate) fn forget_the_gone(&self) {
        let index = self.index.read();
        let exists = |name: &String| index.clusters.store().get(&liqo_kit::Key::cluster(name)).is_some();
        if index.attempts.keys().all(exists) {
            return;
        }
        drop(index);
        let mut index = self.index.write();
        let Index { attempts, clusters, .. } = &mut *index;
        attempts.retain(|name, _| clusters.store().get(&liqo_kit::Key::cluster(name)).is_some());
    }

    /// When our certificates end, by the name of the ForeignCluster.
    pub(crate) fn expiries(index: &Index) -> std::collections::BTreeMap<String, Timestamp> {
        let clusters = index.clusters.store().iter();
        clusters
            .filter_map(|(key, cluster)| {
                let held = index.identity_at(&known_id(cluster)?)?;
                Some((key.name().to_owned(), held.certificate.as_ref().ok()?.not_after))
            })
            .collect()
    }
}

/// Whether the peer's API server takes the certificate. An old one that works is replaced only by one that does.
async fn try_out(obtained: &Obtained, me: &Identity) -> Result<(), Failure> {
    // Who is vouched for by the public authorities is tried by whoever uses it first.
    let Some(ca) = &obtained.api_server_ca else { return Ok(()) };
    let url = &obtained.api_server_url;
    let not_working = |reason: &str| Failure::not_working(url, reason);
    let credentials =
        Credentials::certificate(url, ca, &obtained.certificate, obtained.private_key.as_bytes())
            .map_err(|reason| not_working(&reason))?;
    let clusters = Clusters::new(ClientConfig::default());
    let (cluster, _) = clusters.set("peer", credentials).map_err(|error| not_working(&error.to_string()))?;
    let reviews: Api<SelfSubjectReview> = Api::all(cluster.client());
    let review = reviews.create(&PostParams::default(), &SelfSubjectReview::default()).await;
    let user = review
        .map_err(|error| not_working(&error.to_string()))?
        .status
        .and_then(|status| status.user_info?.username);
    if user.as_deref() == Some(me.id.as_str()) {
        Ok(())
    } else {
        Err(not_working("it takes us for somebody else"))
    }
}
