//! Keeps a list-and-watch going: list, follow, resume, list again when the past is gone.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::fetch::{self, Failure, Lines};
use super::tracker::{Line, LineError, Tracker};
use super::{Scope, WatchConfig};
use crate::backoff::{Backoff, jitter};
use crate::clusters::ClientSource;

/// How much longer than asked a server may take to end a quiet watch before the connection counts as dead.
const IDLE_MARGIN: Duration = Duration::from_secs(5);

/// A watch that ends sooner than this without a word is a failure, or it would be asked again without pause.
const SHORTEST_WATCH: Duration = Duration::from_secs(1);

/// After so many refusals in a row to resume, the version itself is taken for the reason, and a list is made.
const REFUSALS_BEFORE_LIST: u32 = 5;

/// What to do next.
#[derive(Debug, PartialEq)]
enum Phase {
    /// Take over a full list.
    List,
    /// Watch from this version.
    Follow(String),
}

pub(super) struct Driver {
    source: Arc<dyn ClientSource>,
    scope: Scope,
    config: WatchConfig,
    tracker: Tracker,
    streaming: bool,
    backoff: Backoff,
    refusals: u32,
}

impl Driver {
    pub(super) fn new(
        source: Arc<dyn ClientSource>,
        scope: Scope,
        config: WatchConfig,
        tracker: Tracker,
    ) -> Self {
        let streaming = config.streaming;
        let backoff = Backoff::new(config.backoff);
        Self { source, scope, config, tracker, streaming, backoff, refusals: 0 }
    }

    pub(super) async fn drive(mut self) {
        let mut phase = Phase::List;
        loop {
            let (next, failure) = self.step(phase).await;
            self.tracker.flush();
            phase = match failure {
                None => next,
                // Expected after a compaction or a restart of the server: list now, wait only if that fails.
                Some(failure) if failure.is_gone() && !self.tracker.is_listing() => {
                    tracing::debug!(
                        watch = self.scope.name,
                        "the version to resume from is gone; listing again"
                    );
                    next
                }
                Some(failure) => self.after(next, &failure).await,
            };
        }
    }

    async fn step(&mut self, phase: Phase) -> (Phase, Option<Failure>) {
        match phase {
            Phase::List if self.streaming => self.stream(None).await,
            Phase::List => match self.list_pages().await {
                Ok(version) => (Phase::Follow(version), None),
                Err(failure) => (Phase::List, Some(failure)),
            },
            Phase::Follow(version) => self.stream(Some(version)).await,
        }
    }

    /// Reads pages until the list is complete, and returns its version.
    async fn list_pages(&mut self) -> Result<String, Failure> {
        let client = self.source.client();
        self.tracker.begin_list();
        let (mut token, mut body) = (None, Vec::new());
        let (page_size, timeout) = (self.config.page_size, self.config.request_timeout);
        loop {
            fetch::read_page(&client, &self.scope, page_size, token, timeout, &mut body).await?;
            self.healthy();
            let page = self.tracker.page(&body).map_err(Failure::Garbage)?;
            token = page.continue_token.filter(|token| !token.is_empty());
            if token.is_none() {
                self.tracker.end_list(&page.resource_version);
                return Ok(page.resource_version);
            }
        }
    }

    /// Watches until the stream ends, for a reason or without one; says where to go on.
    async fn stream(&mut self, from: Option<String>) -> (Phase, Option<Failure>) {
        let opened = Instant::now();
        // Spread over time, so that a thousand watches opened together do not all reconnect together.
        let lifetime = self.config.idle.mul_f64(1.0 + 0.2 * jitter());
        let client = self.source.client();
        let timeout = self.config.request_timeout;
        let reader = fetch::open_watch(&client, &self.scope, from.as_deref(), lifetime, timeout).await;
        let reader = match reader {
            Ok(reader) => reader,
            Err(failure) => return self.not_opened(from, failure),
        };
        self.tracker.counters().connections.inc();
        self.tracker.status.heard();
        let mut position = Position { listing: from.is_none(), version: from };
        if position.listing {
            self.tracker.begin_list();
        }
        let mut lines = Lines::new(reader);
        let end = loop {
            // Nothing need happen for as long as a watch lives: one that was resumed, and is not ended at once, is back.
            let proving = self.backoff.attempts() > 0 && !position.listing;
            let idle = if proving { SHORTEST_WATCH } else { lifetime + IDLE_MARGIN };
            let tracker = &mut self.tracker;
            let read = lines.read(idle, |line| position.take(tracker, line)).await;
            self.tracker.flush();
            match read {
                Ok(true) => self.healthy(),
                Ok(false) => break None,
                Err(Failure::Silent(_)) if proving => self.healthy(),
                Err(failure) => break Some(failure),
            }
        };
        self.ended(position, end, opened.elapsed())
    }

    fn not_opened(&mut self, from: Option<String>, failure: Failure) -> (Phase, Option<Failure>) {
        match from {
            None if failure.is_unsupported() => {
                tracing::info!(
                    watch = self.scope.name,
                    "this server has no streaming lists; listing in pages"
                );
                self.streaming = false;
                (Phase::List, None)
            }
            Some(version) if !failure.is_gone() => (Phase::Follow(version), Some(failure)),
            _ => (Phase::List, Some(failure)),
        }
    }

    fn ended(
        &mut self,
        position: Position,
        failure: Option<Failure>,
        lasted: Duration,
    ) -> (Phase, Option<Failure>) {
        if position.listing {
            // A server that takes the question for an ordinary watch never marks the end of the list.
            if failure.is_none() || matches!(failure, Some(Failure::Silent(_))) {
                tracing::info!(watch = self.scope.name, "the streaming list did not end; listing in pages");
                self.streaming = false;
            }
            return (Phase::List, Some(failure.unwrap_or(Failure::Short)));
        }
        let phase = match (position.version, &failure) {
            (Some(version), failure) if !failure.as_ref().is_some_and(Failure::is_gone) => {
                Phase::Follow(version)
            }
            _ => Phase::List,
        };
        let failure = failure.or_else(|| (lasted < SHORTEST_WATCH).then_some(Failure::Short));
        (phase, failure)
    }

    /// The server spoke: whatever went wrong before is over.
    fn healthy(&mut self) {
        self.tracker.status.heard();
        if self.backoff.attempts() > 0 {
            self.backoff.reset();
            tracing::info!(watch = self.scope.name, "watching again");
            self.tracker.status.failed(None, false);
        }
        self.refusals = 0;
    }

    /// Waits as long as the failure asks for, and decides where to go on.
    async fn after(&mut self, next: Phase, failure: &Failure) -> Phase {
        self.tracker.counters().failures.inc();
        self.refusals = if failure.is_refusal() { self.refusals + 1 } else { 0 };
        let delay = self.backoff.next_delay();
        let text = failure.to_string();
        if self.backoff.attempts() == 1 {
            tracing::warn!(watch = self.scope.name, failure = text, retry_in = ?delay, "watch interrupted");
        } else {
            tracing::debug!(watch = self.scope.name, failure = text, retry_in = ?delay, "watch still interrupted");
        }
        self.tracker.status.failed(Some(text), failure.is_forbidden());
        tokio::time::sleep(delay).await;
        if self.refusals >= REFUSALS_BEFORE_LIST { Phase::List } else { next }
    }
}

/// How far a stream has come.
struct Position {
    listing: bool,
    version: Option<String>,
}

impl Position {
    fn take(&mut self, tracker: &mut Tracker, line: &[u8]) -> Result<(), Failure> {
        match tracker.line(line) {
            Ok(Line::Event(version)) => {
                // In the middle of a streaming list there is no version from which to go on.
                if !self.listing && !version.is_empty() {
                    self.version = Some(version);
                }
                Ok(())
            }
            Ok(Line::InitialEventsEnd(version)) => {
                tracker.end_list(&version);
                self.listing = false;
                self.version = Some(version);
                Ok(())
            }
            Err(LineError::Refused(status)) => Err(Failure::Refused(status)),
            Err(LineError::Garbage(error)) => Err(Failure::Garbage(error)),
        }
    }
}
