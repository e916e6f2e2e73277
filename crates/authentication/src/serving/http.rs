//! The service on the wire.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::extract::{Extension, State};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use http::header::{CONNECTION, RETRY_AFTER};
use http::{HeaderValue, StatusCode};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use jiff::SignedDuration;
use kube::ResourceExt;
use liqo_api::names::ClusterId;
use liqo_identity::Identity;
use liqo_kit::Shared;
use liqo_kit::serve::{Peer, ServeConfig, source};
use liqo_kit::watch::WatchStatus;
use parking_lot::Mutex;
use tokio::sync::{Semaphore, watch};
use tokio::time::Instant;

use super::execute::{AROUND, Done, Executor};
use super::judge::{Grant, House, Reason, Refusal, judge};
use super::plan::Known;
use super::rates::Rates;
use crate::Limits;
use crate::index::{Claim, Index, NO_KEY};
use crate::metrics::AuthenticationMetrics;
use crate::objects::Report;
use crate::tokens::{AdmittedBy, Token};
use crate::wire::{CERTIFICATE_PATH, IDS_PATH, Ids, MAX_BODY, Request, key_to_base64, parse};

/// How long a caller that may be served soon waits for its turn.
const TURN: Duration = Duration::from_secs(10);
/// Room for what comes beside the body.
const BODY_MARGIN: usize = 1 << 10;
/// The same claim is noted once in this time.
const CLAIM_NOTED_EVERY: SignedDuration = SignedDuration::from_mins(1);

/// What the service needs.
pub(crate) struct Service {
    pub(crate) identity: watch::Receiver<Option<Arc<Identity>>>,
    pub(crate) index: Shared<Index>,
    pub(crate) watches: Vec<WatchStatus>,
    pub(crate) executor: Executor,
    pub(crate) metrics: AuthenticationMetrics,
    attempts: Mutex<Rates<IpAddr>>,
    /// Certificates of each peer.
    issued: Mutex<Rates<ClusterId>>,
    /// Peers that came by the token for all, or without one.
    newcomers: Mutex<Rates<()>>,
    turns: Semaphore,
}

impl Service {
    pub(crate) fn new(
        executor: Executor,
        identity: watch::Receiver<Option<Arc<Identity>>>,
        watches: Vec<WatchStatus>,
        metrics: AuthenticationMetrics,
    ) -> Self {
        let limits = &executor.settings.limits;
        let now = Instant::now();
        let attempts = Rates::new(limits.failures_per_source, Some(limits.failures), now);
        let issued = Rates::new(limits.certificates_per_peer, None, now);
        let newcomers = Rates::new(limits.newcomers, None, now);
        Self {
            identity,
            index: executor.index.clone(),
            watches,
            attempts: Mutex::new(attempts),
            issued: Mutex::new(issued),
            newcomers: Mutex::new(newcomers),
            turns: Semaphore::new(limits.certificates),
            metrics,
            executor,
        }
    }

    /// The two paths of Liqo.
    pub(crate) fn router(self: Arc<Self>) -> Router {
        Router::new()
            .route(IDS_PATH, get(ids))
            .route(CERTIFICATE_PATH, post(certificate))
            .layer(axum::middleware::map_response(close))
            .with_state(self)
    }

    /// Who we are, once all that judging needs is known.
    fn me(&self) -> Option<Arc<Identity>> {
        let ready = self.watches.iter().all(WatchStatus::is_ready);
        self.identity.borrow().clone().filter(|_| ready)
    }
}

/// The limits of the server below.
pub(crate) fn serve_config(limits: &Limits) -> ServeConfig {
    ServeConfig {
        max_connections: limits.connections,
        max_per_source: limits.connections_per_source,
        handshake_timeout: limits.patience,
        header_timeout: limits.patience,
        lifetime: Some(limits.patience * 3 + TURN + limits.certificate + AROUND),
        // The handler says in its own words what is too long.
        max_body: MAX_BODY + BODY_MARGIN,
        drain: Duration::from_secs(5),
    }
}

/// Callers come once in months: nobody needs the connection after the answer.
async fn close(mut response: Response) -> Response {
    response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    response
}

async fn ids(State(service): State<Arc<Service>>) -> Response {
    let Some(me) = service.me() else { return starting() };
    let fingerprint = service.index.read().serving.as_ref().map(|serving| serving.fingerprint.to_string());
    Json(Ids {
        cluster_id: me.id.to_string(),
        cluster_name: me.name.to_string(),
        public_key: Some(key_to_base64(&me.public_key())),
        fingerprint,
    })
    .into_response()
}

async fn certificate(
    State(service): State<Arc<Service>>,
    Extension(peer): Extension<Peer>,
    body: Body,
) -> Response {
    let Some(me) = service.me() else { return starting() };
    let started = Instant::now();
    let result = service.answer(&me, &peer, body).await;
    service
        .metrics
        .answered(result.as_ref().map(|_| ()).map_err(|refusal| refusal.reason), started.elapsed());
    match result {
        Ok(done) => (StatusCode::ACCEPTED, Json(done.answer)).into_response(),
        Err(refusal) => service.refuse(&peer, &refusal),
    }
}

fn starting() -> Response {
    let soon = [(RETRY_AFTER, HeaderValue::from(1))];
    (StatusCode::SERVICE_UNAVAILABLE, soon, "this cluster is just starting; try again in a moment\n")
        .into_response()
}

impl Service {
    async fn answer(&self, me: &Identity, peer: &Peer, body: Body) -> Result<Done, Refusal> {
        let body = read(body, self.executor.settings.limits.patience).await?;
        let request = parse(&body).map_err(|text| Refusal::new(Reason::Malformed, text))?;
        let now = self.executor.settings.clock.now();
        let house = House { me: &me.id, tokens_required: self.executor.settings.tokens_required };
        let mut judged = judge(&self.index.read(), &house, &request, now);
        self.must_wait(peer, &judged)?;
        if judged.as_ref().is_err_and(|refusal| refusal.reason == Reason::Unauthorized)
            && self.learns_of(&request.token).await
        {
            judged = judge(&self.index.read(), &house, &request, now);
        }
        let grant = match judged {
            Ok(grant) => grant,
            Err(refusal) => {
                match refusal.reason {
                    Reason::ClaimedTwice => self.report_claim(&request, peer).await,
                    Reason::OwnIdentity => {
                        self.metrics.claim_refused();
                        tracing::warn!(address = %peer.address, "a cluster says that it is this one; refused");
                    }
                    _ => {}
                }
                return Err(refusal);
            }
        };
        self.must_not_hurry(&grant)?;
        let turn = tokio::time::timeout(TURN, self.turns.acquire()).await;
        let Ok(Ok(_turn)) = turn else {
            return Err(Refusal::new(Reason::Failed, "too many clusters come at the same time; try again"));
        };
        let done = self.executor.execute(&grant).await?;
        self.report_admission(&grant, &done, peer).await;
        Ok(done)
    }

    /// Whether there is such a token though no watch has told of it yet: it may have been made a moment ago.
    async fn learns_of(&self, token: &Token) -> bool {
        let Some(id) = token.peer_token_id() else { return false };
        if self.index.read().book.peers.contains_key(id) {
            return false;
        }
        let Some(record) = self.executor.read_token(id).await else { return false };
        // What the watch told meanwhile is newer.
        self.index.write().book.peers.entry(id.to_owned()).or_insert(record);
        true
    }

    /// Who failed too often waits; unless it is a peer that is known by its key, which must not suffer from its neighbours.
    fn must_wait(&self, peer: &Peer, judged: &Result<Grant, Refusal>) -> Result<(), Refusal> {
        let wait = self.attempts.lock().wait(&source(peer.address), Instant::now());
        match wait {
            Some(wait) if !judged.as_ref().is_ok_and(|grant| grant.known) => {
                Err(too_many("too many failed attempts", wait))
            }
            _ => Ok(()),
        }
    }

    /// Even who may come and is in must not fill the cluster with namespaces and certificates.
    fn must_not_hurry(&self, grant: &Grant) -> Result<(), Refusal> {
        let now = Instant::now();
        if let Some(wait) = self.issued.lock().take(&grant.peer.id, now) {
            return Err(too_many("this cluster got too many certificates", wait));
        }
        let tenant =
            self.index.read().tenant_of(&grant.peer.id).and_then(|tenant| tenant.admitted_by.clone());
        if matches!(grant.by, AdmittedBy::Own | AdmittedBy::Open)
            && tenant.is_none()
            && let Some(wait) = self.newcomers.lock().take(&(), now)
        {
            return Err(too_many("too many new clusters came", wait));
        }
        Ok(())
    }

    fn refuse(&self, peer: &Peer, refusal: &Refusal) -> Response {
        let address = peer.address;
        if refusal.reason.counts_as_failure() {
            self.attempts.lock().count(source(address), Instant::now());
        }
        let reason = refusal.reason.as_str();
        // Those who do not stop must not fill the log.
        match refusal.reason {
            Reason::TooMany => tracing::debug!(%address, reason, "refused a certificate"),
            _ => tracing::info!(%address, reason, "refused a certificate"),
        }
        let status = StatusCode::from_u16(refusal.reason.status()).unwrap_or(StatusCode::FORBIDDEN);
        let mut response = (status, format!("{}\n", refusal.text)).into_response();
        if let Some(wait) = refusal.retry_after {
            response.headers_mut().insert(RETRY_AFTER, HeaderValue::from(wait.as_secs()));
        }
        response
    }

    async fn report_admission(&self, grant: &Grant, done: &Done, peer: &Peer) {
        let (id, name, by) = (&grant.peer.id, &grant.peer.name, grant.by.as_str());
        tracing::info!(%id, %name, address = %peer.address, by, known = grant.known, "gave a certificate");
        let Some(cluster) = done.cluster.as_ref().filter(|_| done.first_time) else { return };
        let address = peer.address.ip();
        let by = match &grant.by {
            AdmittedBy::Open => "without a token, as none is asked for".to_owned(),
            AdmittedBy::Own | AdmittedBy::Token(_) => format!("by the token {by}"),
        };
        let message = format!("the cluster {name} ({id}) came in from {address} {by}");
        self.executor.report(&report(cluster, false, "PeerAdmitted", message)).await;
    }

    /// Tells that somebody said to be a cluster that is known with another key.
    async fn report_claim(&self, request: &Request, peer: &Peer) {
        let now = self.executor.settings.clock.now();
        let shown = request.proof.as_ref().map(|proof| proof.key.fingerprint());
        let claim = Claim { at: now, fingerprint: shown.unwrap_or_else(|| NO_KEY.to_owned()) };
        let (namespace, cluster) = {
            let index = self.index.read();
            let Some(tenant) = index.tenant_of(&request.caller.id) else { return };
            let noted = tenant.claim.as_ref().is_some_and(|noted| {
                noted.fingerprint == claim.fingerprint && now.duration_since(noted.at) < CLAIM_NOTED_EVERY
            });
            if noted {
                return;
            }
            let cluster = index.cluster_of(&request.caller.id);
            let cluster = cluster.map(|cluster| (cluster.name_any(), cluster.uid().unwrap_or_default()));
            (tenant.name.clone(), cluster)
        };
        self.metrics.claim_refused();
        tracing::warn!(id = %request.caller.id, address = %peer.address, key = claim.fingerprint, "claim refused");
        self.executor.note_claim(&namespace, claim.to_annotation()).await;
        if let Some((name, uid)) = cluster {
            let message = format!(
                "another cluster came from {} and said that it is this one, with the key {}; it was refused",
                peer.address.ip(),
                claim.fingerprint
            );
            let known = Known { name, uid, deleting: false };
            self.executor.report(&report(&known, true, "IdentityClaimedTwice", message)).await;
        }
    }
}

fn too_many(what: &str, wait: Duration) -> Refusal {
    let wait = Duration::from_secs(wait.as_secs() + 1);
    Refusal::new(Reason::TooMany, format!("{what}; wait {} s", wait.as_secs())).retry_after(wait)
}

fn report(cluster: &Known, warning: bool, reason: &str, message: String) -> Report {
    let (cluster, uid, reason) = (cluster.name.clone(), cluster.uid.clone(), reason.to_owned());
    Report { cluster, uid, warning, reason, message, since: 0 }
}

/// Reads a body of limited length within limited time.
async fn read(body: Body, patience: Duration) -> Result<Vec<u8>, Refusal> {
    let malformed = |text: &str| Refusal::new(Reason::Malformed, text);
    let reading = Limited::new(body, MAX_BODY).collect();
    match tokio::time::timeout(patience, reading).await {
        Ok(Ok(body)) => Ok(body.to_bytes().to_vec()),
        Ok(Err(error)) if error.is::<LengthLimitError>() => Err(malformed("the body is too long")),
        Ok(Err(_)) => Err(malformed("the body did not arrive")),
        Err(_) => Err(malformed("the body took too long to arrive")),
    }
}
