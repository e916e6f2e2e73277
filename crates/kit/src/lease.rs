//! Leader election on a `coordination.k8s.io` Lease.
//!
//! Whoever holds the lease leads. A leader that cannot renew stops leading *before* another may take over: its
//! [`Leadership`] ends `renew_deadline` after it last *began* a successful renewal, and others wait the longer
//! `duration` after they last *saw* one. Nobody's wall clock is compared with anybody else's.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use kube::Api;
use kube::api::{ObjectMeta, PostParams};
use parking_lot::Mutex;
use tokio::sync::watch;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::backoff::jitter;
use crate::clusters::ClientSource;
use crate::watch::Chain;

mod evaluate;
#[cfg(test)]
mod tests;

pub use evaluate::{Observation, Record, Verdict, evaluate};

/// Which lease, who we are, and the timing.
#[derive(Clone, Debug)]
pub struct LeaseConfig {
    /// Namespace of the lease.
    pub namespace: String,
    /// Name of the lease.
    pub name: String,
    /// Who we are. Must differ between any two processes, also between two lives of one pod.
    pub identity: String,
    /// How an identity of an earlier life of this process begins, where it is certain that such a life has ended: in a
    /// pod, a container starts again only after it is dead. Its lease is taken over without waiting.
    pub earlier_lives: Option<String>,
    /// How long others wait after the last renewal they saw.
    pub duration: Duration,
    /// How long we lead after we began the last renewal that succeeded. Must be shorter than `duration`: the
    /// difference is the time our work has to end.
    pub renew_deadline: Duration,
    /// How often we renew, or look whether we may take over.
    pub retry: Duration,
}

impl LeaseConfig {
    /// The usual timing: taken over at most 17 s after a crash, renewed every 2 s.
    pub fn new(namespace: impl Into<String>, name: impl Into<String>, identity: impl Into<String>) -> Self {
        Self {
            namespace: namespace.into(),
            name: name.into(),
            identity: identity.into(),
            earlier_lives: None,
            duration: Duration::from_secs(15),
            renew_deadline: Duration::from_secs(10),
            retry: Duration::from_secs(2),
        }
    }
}

/// The right to lead, as long as it lasts.
#[derive(Clone)]
pub struct Leadership {
    ended: CancellationToken,
    valid_until: Arc<Mutex<Instant>>,
    term: i32,
}

impl Leadership {
    /// Cancelled when we must stop leading.
    pub fn ended(&self) -> &CancellationToken {
        &self.ended
    }

    /// Whether we lead at this instant. Ask just before each write: after this process was stopped for a while,
    /// the token may not have been cancelled yet.
    pub fn is_valid(&self) -> bool {
        !self.ended.is_cancelled() && Instant::now() < *self.valid_until.lock()
    }

    /// Counts the leaders there have been; grows with each.
    pub fn term(&self) -> i32 {
        self.term
    }
}

/// Why a campaign ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// We were asked to stop; the lease was given back if we held it.
    Stopped,
    /// We led and could not renew, or another took over. The work was cancelled.
    Lost,
    /// The work ended by itself; the lease was given back.
    WorkDone,
}

/// Where a candidate stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Standing {
    /// Not known yet who leads; with the reason, where asking for the lease fails.
    Unknown {
        /// Why it is not known.
        failure: Option<String>,
    },
    /// Another leads.
    Follower {
        /// Who.
        leader: String,
    },
    /// We lead.
    Leader,
}

/// How a lease was lost.
#[derive(Clone, Copy, Debug)]
enum Loss {
    /// The server was out of reach for too long; nobody else can lead yet.
    NotRenewed,
    /// Somebody took it by force, or removed it.
    Taken,
}

/// One candidate.
pub struct Campaign {
    source: Arc<dyn ClientSource>,
    config: LeaseConfig,
    seen: Option<Observation>,
    lease: Option<Lease>,
    standing: watch::Sender<Standing>,
}

impl Campaign {
    /// A candidate for the lease of `config`, on the cluster of `source`.
    pub fn new(source: impl ClientSource, config: LeaseConfig) -> Self {
        let standing = watch::Sender::new(Standing::Unknown { failure: None });
        Self { source: Arc::new(source), config, seen: None, lease: None, standing }
    }

    /// Tells where the candidate stands to these receivers, instead of to its own alone: successive campaigns of one
    /// process may share the sender.
    #[must_use]
    pub fn tell(mut self, standing: watch::Sender<Standing>) -> Self {
        self.standing = standing;
        self
    }

    /// Waits for the lease, then runs `work` while it holds it.
    ///
    /// When leadership is lost, `work` is cancelled through its [`Leadership`]; if it has not ended when another
    /// may take over, it is dropped where it stands. Start again after [`Ended::Lost`] with a fresh process, or
    /// a fresh campaign if nothing of the old work can still be running.
    pub async fn run<F, Fut>(mut self, stop: CancellationToken, work: F) -> Ended
    where
        F: FnOnce(Leadership) -> Fut,
        Fut: Future<Output = ()>,
    {
        let Some(leadership) = stop.run_until_cancelled(self.acquire()).await else { return Ended::Stopped };
        tracing::info!(lease = self.config.name, term = leadership.term, "leading");
        let working = work(leadership.clone());
        let mut working = std::pin::pin!(working);
        let (done, loss) = tokio::select! {
            () = &mut working => (Ended::WorkDone, None),
            loss = self.keep(&leadership) => (Ended::Lost, Some(loss)),
            () = stop.cancelled() => (Ended::Stopped, None),
        };
        leadership.ended.cancel();
        self.stand(Standing::Unknown { failure: None });
        if let Some(loss) = loss {
            let left = self.left_after(loss);
            tracing::warn!(
                lease = self.config.name,
                ?loss,
                "lost the lease; stopping what only a leader may do"
            );
            if tokio::time::timeout(left, working).await.is_err() {
                tracing::error!(lease = self.config.name, "the leader's work did not end in time; dropped");
            }
            return Ended::Lost;
        }
        if done == Ended::Stopped {
            // The lease is still ours while the work winds down.
            tokio::select! {
                () = &mut working => {}
                _ = self.keep(&leadership) => {}
            }
        }
        self.release(&leadership).await;
        done
    }

    /// How long the work may still run after the lease was lost.
    fn left_after(&self, loss: Loss) -> Duration {
        match loss {
            // Half of what is left until others may take over; the other half is for what we do not foresee.
            Loss::NotRenewed => (self.config.duration - self.config.renew_deadline) / 2,
            Loss::Taken => Duration::ZERO,
        }
    }

    async fn acquire(&mut self) -> Leadership {
        loop {
            let started = Instant::now();
            let timeout = self.config.renew_deadline / 2;
            match tokio::time::timeout(timeout, self.try_acquire()).await {
                Ok(Ok(Some(term))) => {
                    self.stand(Standing::Leader);
                    return Leadership {
                        ended: CancellationToken::new(),
                        valid_until: Arc::new(Mutex::new(started + self.config.renew_deadline)),
                        term,
                    };
                }
                Ok(Ok(None)) => {}
                Ok(Err(error)) => self.unknown(&format!("cannot ask for the lease: {}", Chain(&error))),
                Err(_) => {
                    self.unknown(&format!("no answer about the lease within {} s", timeout.as_secs_f32()));
                }
            }
            // Candidates that ask at different times do not collide for ever.
            tokio::time::sleep(self.config.retry.mul_f64(0.8 + 0.4 * jitter())).await;
        }
    }

    fn stand(&self, standing: Standing) {
        self.standing.send_if_modified(|current| {
            let changed = *current != standing;
            *current = standing;
            changed
        });
    }

    fn unknown(&self, failure: &str) {
        let standing = Standing::Unknown { failure: Some(failure.to_owned()) };
        // Once per failure: it is asked again every few seconds.
        if *self.standing.borrow() != standing {
            tracing::warn!(lease = self.config.name, failure, "not known who leads");
        }
        self.stand(standing);
    }

    /// Takes the lease if it is free; returns the term if we have it now.
    async fn try_acquire(&mut self) -> Result<Option<i32>, kube::Error> {
        let api = self.api();
        let Some(lease) = api.get_opt(&self.config.name).await? else {
            let metadata = ObjectMeta { name: Some(self.config.name.clone()), ..ObjectMeta::default() };
            let lease = Lease { metadata, spec: Some(self.claim(None)) };
            return self.won(api.create(&PostParams::default(), &lease).await);
        };
        let seen = Observation::update(self.seen.take(), Record::from(&lease), Instant::now());
        let verdict = evaluate(&seen, &self.config.identity, Instant::now());
        self.seen = Some(seen);
        if let Verdict::Held { by, .. } = verdict
            && !self.config.earlier_lives.as_ref().is_some_and(|prefix| by.starts_with(prefix))
        {
            self.stand(Standing::Follower { leader: by });
            return Ok(None);
        }
        let lease = Lease { spec: Some(self.claim(lease.spec.as_ref())), ..lease };
        let written = api.replace(&self.config.name, &PostParams::default(), &lease).await;
        self.won(written)
    }

    fn won(&mut self, written: Result<Lease, kube::Error>) -> Result<Option<i32>, kube::Error> {
        match written {
            Ok(lease) => {
                let term = lease.spec.as_ref().and_then(|spec| spec.lease_transitions).unwrap_or(0);
                self.lease = Some(lease);
                Ok(Some(term))
            }
            // Another candidate was quicker.
            Err(kube::Error::Api(status)) if status.code == 409 => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Renews until that is no longer possible.
    async fn keep(&mut self, leadership: &Leadership) -> Loss {
        loop {
            let deadline = *leadership.valid_until.lock();
            let pause = tokio::time::sleep(self.config.retry);
            tokio::select! {
                () = tokio::time::sleep_until(deadline) => return Loss::NotRenewed,
                () = pause => {}
            }
            let started = Instant::now();
            let timeout = self.config.renew_deadline / 2;
            let renewed = tokio::select! {
                () = tokio::time::sleep_until(deadline) => return Loss::NotRenewed,
                renewed = tokio::time::timeout(timeout, self.renew()) => renewed,
            };
            match renewed {
                Ok(Ok(true)) => *leadership.valid_until.lock() = started + self.config.renew_deadline,
                Ok(Ok(false)) => return Loss::Taken,
                Ok(Err(error)) => {
                    tracing::warn!(lease = self.config.name, error = %Chain(&error), "cannot renew the lease");
                }
                Err(_) => tracing::warn!(lease = self.config.name, "no answer when renewing the lease"),
            }
        }
    }

    /// Renews once; `false` when another holds the lease now.
    async fn renew(&mut self) -> Result<bool, kube::Error> {
        let api = self.api();
        let lease = match &self.lease {
            Some(lease) => lease.clone(),
            // The last attempt ended in the dark: look first.
            None => match api.get_opt(&self.config.name).await? {
                Some(lease) if Record::from(&lease).holder.as_deref() == Some(&self.config.identity) => lease,
                _ => return Ok(false),
            },
        };
        let mut spec = lease.spec.clone().unwrap_or_default();
        spec.renew_time = Some(MicroTime(jiff::Timestamp::now()));
        self.lease = None;
        let lease = Lease { spec: Some(spec), ..lease };
        match api.replace(&self.config.name, &PostParams::default(), &lease).await {
            Ok(lease) => {
                self.lease = Some(lease);
                Ok(true)
            }
            Err(kube::Error::Api(status)) if status.code == 409 => {
                let lease = api.get(&self.config.name).await?;
                let ours = Record::from(&lease).holder.as_deref() == Some(&self.config.identity);
                self.lease = ours.then_some(lease);
                // Somebody edited the lease without taking it: it is renewed the next time round.
                if ours { Err(kube::Error::Api(status)) } else { Ok(false) }
            }
            Err(error) => Err(error),
        }
    }

    /// Gives the lease back, so that the next leader need not wait.
    async fn release(&mut self, leadership: &Leadership) {
        if Instant::now() >= *leadership.valid_until.lock() {
            return;
        }
        let Some(lease) = self.lease.take() else { return };
        let mut spec = lease.spec.clone().unwrap_or_default();
        spec.holder_identity = Some(String::new());
        spec.lease_duration_seconds = Some(1);
        spec.renew_time = Some(MicroTime(jiff::Timestamp::now()));
        let lease = Lease { spec: Some(spec), ..lease };
        let api = self.api();
        let params = PostParams::default();
        let released = api.replace(&self.config.name, &params, &lease);
        if !matches!(tokio::time::timeout(self.config.retry, released).await, Ok(Ok(_))) {
            tracing::info!(lease = self.config.name, "could not give the lease back; it will expire");
        }
    }

    fn claim(&self, former: Option<&LeaseSpec>) -> LeaseSpec {
        let now = MicroTime(jiff::Timestamp::now());
        let transitions = former.and_then(|spec| spec.lease_transitions).unwrap_or(0);
        LeaseSpec {
            holder_identity: Some(self.config.identity.clone()),
            lease_duration_seconds: i32::try_from(self.config.duration.as_secs().max(1)).ok(),
            acquire_time: Some(now.clone()),
            renew_time: Some(now),
            lease_transitions: Some(transitions.saturating_add(1)),
            ..LeaseSpec::default()
        }
    }

    fn api(&self) -> Api<Lease> {
        Api::namespaced(self.source.client(), &self.config.namespace)
    }
}
