//! Asking candidates who they are, and those who hold an ID that another claims whether they are still there.

use std::net::IpAddr;
use std::time::Duration;

use jiff::Timestamp;
use tokio::task::JoinSet;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::Room;
use crate::advert::{Advert, Origin, Refused};
use crate::book::Answer;
use crate::events::{Statement, Telling};
use crate::peers::{Incumbent, Peer};
use crate::probe::{self, Endpoint};
use crate::wan::propagate;

/// How long finding the addresses of a host may take.
const RESOLVE: Duration = Duration::from_secs(5);

/// An answer, and to what.
struct Answered {
    origin: Origin,
    advert: Advert,
    result: Result<Answer, Refused>,
    seconds: f64,
}

impl Room {
    /// Asks whoever is due until it is stopped.
    pub(super) async fn ask_for_ever(self, stop: CancellationToken) {
        let mut changes = self.0.state.subscribe();
        let mut asking: JoinSet<Answered> = JoinSet::new();
        loop {
            changes.borrow_and_update();
            let next = self.ask_due(&mut asking);
            tokio::select! {
                () = stop.cancelled() => return,
                Some(answered) = asking.join_next(), if !asking.is_empty() => match answered {
                    Ok(answered) => self.note_answer(answered),
                    Err(error) => propagate(error),
                },
                changed = changes.changed() => if changed.is_err() { return },
                () = tokio::time::sleep_until(next) => {}
            }
        }
    }

    /// Asks whoever is due; returns when to look again.
    fn ask_due(&self, asking: &mut JoinSet<Answered>) -> Instant {
        /// Without anything due; those who are seen wake up earlier.
        const IDLE: Duration = Duration::from_secs(60);
        let now = Instant::now();
        let mut state = self.0.state.write();
        state.book.expire(now);
        while let Some((origin, advert)) = state.book.next(now) {
            let identify = self.0.identify.clone();
            asking.spawn(async move {
                let started = Instant::now();
                let result = probe::ask(&advert, &identify).await;
                Answered { origin, advert, result, seconds: started.elapsed().as_secs_f64() }
            });
        }
        state.book.next_time(now).unwrap_or(now + IDLE)
    }

    fn note_answer(&self, answered: Answered) {
        let Answered { origin, advert, result, seconds } = answered;
        let refusal = result.as_ref().err().map(|refused| refused.why);
        self.0.metrics.asked(refusal, seconds);
        if let Err(refused) = &result {
            self.log_refusal(&origin, refused);
            self.0.metrics.refuse(&origin.sender.source(), refused.why);
        }
        let changed = self.0.state.write().book.answered(&origin, &advert, result, Instant::now());
        if changed {
            self.0.state.notify();
        }
    }

    /// Logs why an advertised cluster is not taken, for those who miss it; strangers do not fill the log.
    fn log_refusal(&self, origin: &Origin, refused: &Refused) {
        let statement = Statement {
            name: origin.record.to_string(),
            uid: origin.sender.to_string(),
            reason: refused.why.as_str(),
            message: refused.to_string(),
            is_warning: true,
        };
        if self.0.logged.lock().tell(&statement, Instant::now()) == Telling::Tell {
            let Statement { name, uid, reason, message, .. } = statement;
            tracing::info!(record = name, from = uid, reason, "an advertised cluster is refused: {message}");
        }
    }

    /// Asks the one that holds an ID whether it is where its ForeignCluster says.
    pub(super) async fn ask_incumbent(&self, peer: &Peer) -> Incumbent {
        let shown = match endpoint(&peer.url).await {
            Some(endpoint) => probe::ask_endpoint(endpoint, &self.0.identify).await.ok(),
            None => None,
        };
        let shown = shown.filter(|answer| Some(answer.identity.id.as_str()) == peer.id.as_deref());
        let before = self.0.state.read().incumbents.get(&peer.name).map_or(0, |before| before.deaths);
        Incumbent {
            url: peer.url.clone(),
            deaths: if shown.is_some() { 0 } else { before.saturating_add(1) },
            shown: shown.map(|answer| answer.fingerprint),
            asked: Timestamp::now(),
        }
    }
}

/// Where a URL leads, if something answers there.
async fn endpoint(url: &str) -> Option<Endpoint> {
    let uri: http::Uri = url.parse().ok()?;
    let host = uri.host()?.trim_start_matches('[').trim_end_matches(']').to_owned();
    let port = uri.port_u16().unwrap_or(443);
    let addresses: Vec<IpAddr> = match host.parse() {
        Ok(address) => vec![address],
        Err(_) => {
            let found = tokio::net::lookup_host((host.as_str(), port));
            let found = tokio::time::timeout(RESOLVE, found).await.ok()?.ok()?;
            found.map(|address| address.ip()).take(crate::advert::MAX_ADDRESSES).collect()
        }
    };
    let address = probe::connect(&addresses, port).await?;
    let url = url.trim_end_matches('/').to_owned();
    // Which certificate it shows is the question here.
    Some(Endpoint { url, host, address, fingerprint: None })
}
