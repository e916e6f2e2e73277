//! The wide network: DNS, searched as SearchDomains say.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use liqo_kit::Shared;
use tokio::task::JoinSet;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::advert::{Advert, Origin, Sender, Source};
use crate::metrics::DiscoveryMetrics;
use crate::state::State;

pub(crate) mod search;

use search::{Findings, Trouble};

/// Domains searched at once.
const AT_ONCE: usize = 4;

/// How long a search may take; each question has a limit of its own.
const SEARCH: Duration = Duration::from_secs(60);

/// How to search domains.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Wan {
    /// The name servers to ask; if empty, those that the system uses.
    pub name_servers: Vec<SocketAddr>,
}

/// A search that has ended.
struct Searched {
    name: Arc<str>,
    domain: String,
    result: Result<Findings, Trouble>,
    seconds: f64,
}

/// Searches what is due until it is stopped.
pub(crate) async fn run(
    settings: Wan,
    state: Shared<State>,
    metrics: DiscoveryMetrics,
    stop: CancellationToken,
) {
    let mut changes = state.subscribe();
    let mut searches: JoinSet<Searched> = JoinSet::new();
    loop {
        changes.borrow_and_update();
        while searches.len() < AT_ONCE
            && let Some((name, domain)) = next(&state)
        {
            searches.spawn(search_domain(settings.clone(), name, domain));
        }
        let next = state.read().domains.next_time();
        tokio::select! {
            () = stop.cancelled() => return,
            Some(searched) = searches.join_next(), if !searches.is_empty() => match searched {
                Ok(searched) => note(&state, &metrics, searched),
                Err(error) => propagate(error),
            },
            changed = changes.changed() => if changed.is_err() { return },
            () = sleep_until(next), if searches.len() < AT_ONCE => {}
        }
    }
}

fn next(state: &Shared<State>) -> Option<(Arc<str>, String)> {
    let now = Instant::now();
    // Looked at first without keeping watches waiting.
    if state.read().domains.next_time().is_none_or(|next| next > now) {
        return None;
    }
    state.write().domains.next(now)
}

async fn search_domain(settings: Wan, name: Arc<str>, domain: String) -> Searched {
    let started = Instant::now();
    let searching = async {
        let resolver = search::resolver(&settings.name_servers)?;
        search::search(&resolver, &domain).await
    };
    let late = || Trouble::Failed(format!("{domain} was not searched within {} s", SEARCH.as_secs()));
    let result = tokio::time::timeout(SEARCH, searching).await.unwrap_or_else(|_| Err(late()));
    Searched { name, domain, result, seconds: started.elapsed().as_secs_f64() }
}

/// Writes down what was found.
fn note(state: &Shared<State>, metrics: &DiscoveryMetrics, searched: Searched) {
    let Searched { name, domain, result, seconds } = searched;
    let outcome = match &result {
        Ok(_) => "found",
        Err(Trouble::NoRecords(..)) => "no_records",
        Err(Trouble::Failed(_)) => "failed",
    };
    metrics.searched(outcome, seconds);
    let (now, at) = (Instant::now(), Timestamp::now());
    let source = Source::Wan(Arc::clone(&name));
    let mut known = state.write();
    let life = known.domains.searched(&name, &domain, &result, at, now);
    let sender = Sender::Domain(Arc::clone(&name));
    if let (Some(_), Ok(findings)) = (life, &result) {
        known
            .book
            .keep_only(&sender, &findings.records.iter().map(|(record, _)| Arc::clone(record)).collect());
    }
    for (record, found) in result.into_iter().flat_map(|findings| findings.records) {
        let Some(ttl) = life else { break };
        metrics.record(&source);
        let seen = found.and_then(|advert| {
            let origin = Origin { sender: sender.clone(), record };
            known.book.see(origin, Advert { ttl, ..advert }, Duration::from_secs(ttl.into()), at, now)
        });
        if let Err(refused) = seen {
            tracing::debug!(domain, reason = refused.why.as_str(), "{refused}");
            metrics.refuse(&source, refused.why);
        }
    }
    drop(known);
    state.notify();
}

async fn sleep_until(at: Option<Instant>) {
    match at {
        Some(at) => tokio::time::sleep_until(at).await,
        None => std::future::pending().await,
    }
}

/// A search that panics is not a search that failed.
pub(crate) fn propagate(error: tokio::task::JoinError) {
    if let Ok(panic) = error.try_into_panic() {
        std::panic::resume_unwind(panic);
    }
}
