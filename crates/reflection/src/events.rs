//! What is said at providers about pods and claims, and how much of it is told at home.
//!
//! Warnings are told at once. What is normal is told only of pods that are not ready some time after the first word about
//! them: where all goes well the status says so, and events would cost more than the pod itself.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use liqo_kit::Key;

#[cfg(test)]
mod tests;

/// How long a pod may take before what is normal about it is told.
const PATIENCE: SignedDuration = SignedDuration::from_secs(10);
/// How often the same is told again, with how often it was said meanwhile.
const AGAIN: SignedDuration = SignedDuration::from_secs(30);
/// Different things that are told about one object.
const MOST_EACH: usize = 24;
/// Objects about which something waits to be told, and those about which something was.
const MOST_OBJECTS: usize = 16_384;
/// How much a provider may tell at once, and how much more in a second. Of what is normal, little: on a busy machine many pods
/// are slow, and telling that would make them slower.
const WARNINGS: Rate = Rate { burst: 100, each_second: 10 };
const NORMAL: Rate = Rate { burst: 20, each_second: 1 };

/// How much may be told.
#[derive(Clone, Copy)]
struct Rate {
    burst: u32,
    each_second: u32,
}

/// An object at home that something is said about.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Subject {
    Pod(Key),
    Claim(Key),
}

impl Subject {
    pub(crate) fn key(&self) -> &Key {
        match self {
            Self::Pod(key) | Self::Claim(key) => key,
        }
    }
}

/// One thing that is said.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Said {
    pub(crate) warning: bool,
    pub(crate) reason: String,
    pub(crate) message: String,
    /// Who says it.
    pub(crate) component: String,
    /// How often it was said, since when and until when.
    pub(crate) count: i32,
    pub(crate) first: Timestamp,
    pub(crate) last: Timestamp,
}

impl Said {
    fn what(&self) -> What {
        (self.reason.as_str().into(), self.message.as_str().into())
    }
}

type What = (Box<str>, Box<str>);

/// How the object is now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Standing {
    pub(crate) uid: Box<str>,
    /// Whether all is well with it, or over.
    pub(crate) settled: bool,
    /// Whether its owner wants to hear nothing.
    pub(crate) quiet: bool,
}

/// What was heard and not told, and what was told.
#[derive(Default)]
pub(crate) struct Events {
    waiting: BTreeMap<Subject, Waiting>,
    told: HashMap<Subject, Told>,
    purses: HashMap<(Arc<str>, bool), Purse>,
    wakes: BTreeSet<(Timestamp, Subject)>,
}

struct Waiting {
    provider: Arc<str>,
    since: Timestamp,
    said: BTreeMap<What, Said>,
}

#[derive(Default)]
struct Told {
    uid: Box<str>,
    /// When each thing was last told, and how often it had been said by then.
    what: BTreeMap<What, (Timestamp, i32)>,
}

/// What a provider may have told.
struct Purse {
    rate: Rate,
    left: u32,
    filled: Timestamp,
}

impl Purse {
    fn new(rate: Rate, now: Timestamp) -> Self {
        Self { rate, left: rate.burst, filled: now }
    }

    fn take(&mut self, now: Timestamp) -> bool {
        let seconds = now.duration_since(self.filled).as_secs();
        if let Ok(seconds) = u32::try_from(seconds)
            && seconds > 0
        {
            let more = seconds.saturating_mul(self.rate.each_second);
            self.left = self.left.saturating_add(more).min(self.rate.burst);
            self.filled = now;
        }
        let some = self.left > 0;
        self.left = self.left.saturating_sub(1);
        some
    }
}

impl Events {
    /// Something is said at a provider. What is too much is not kept. Returns whether there is something to tell earlier than
    /// was known.
    pub(crate) fn hear(&mut self, subject: Subject, provider: &Arc<str>, said: Said, now: Timestamp) -> bool {
        if self.waiting.len() >= MOST_OBJECTS && !self.waiting.contains_key(&subject) {
            return false;
        }
        let before = self.wake();
        // Something about it is due anyhow, unless this is the first that is heard, or urgent.
        let wake = match (said.warning, self.waiting.contains_key(&subject)) {
            (true, _) => Some(now),
            (false, false) => Some(later(now, PATIENCE)),
            (false, true) => None,
        };
        let waiting = self.waiting.entry(subject.clone()).or_insert_with(|| Waiting {
            provider: Arc::clone(provider),
            since: now,
            said: BTreeMap::new(),
        });
        let what = said.what();
        if waiting.said.len() < MOST_EACH || waiting.said.contains_key(&what) {
            waiting.said.insert(what, said);
        }
        self.wakes.extend(wake.map(|wake| (wake, subject)));
        self.wake() != before
    }

    /// When there is something to tell next.
    pub(crate) fn wake(&self) -> Option<Timestamp> {
        self.wakes.first().map(|(at, _)| *at)
    }

    /// What is to be told now, about whom; `standing` says how an object is, if it is there.
    pub(crate) fn due(
        &mut self,
        now: Timestamp,
        standing: impl Fn(&Subject) -> Option<Standing>,
    ) -> Vec<(Subject, Box<str>, Said)> {
        let mut all = vec![];
        while let Some((_, subject)) = self.wakes.first().filter(|(at, _)| *at <= now).cloned() {
            self.wakes.pop_first();
            let Some(waiting) = self.waiting.remove(&subject) else { continue };
            match standing(&subject).filter(|standing| !standing.quiet) {
                Some(standing) => self.sort(subject, waiting, &standing, now, &mut all),
                // Nobody is there to be told.
                None => drop(self.told.remove(&subject)),
            }
        }
        all
    }

    /// Tells what is due about one object and keeps the rest.
    fn sort(
        &mut self,
        subject: Subject,
        mut waiting: Waiting,
        standing: &Standing,
        now: Timestamp,
        all: &mut Vec<(Subject, Box<str>, Said)>,
    ) {
        if self.told.len() >= MOST_OBJECTS {
            self.told.clear();
        }
        let told = self.told.entry(subject.clone()).or_default();
        if told.uid != standing.uid {
            *told = Told { uid: standing.uid.clone(), ..Told::default() };
        }
        let (purses, provider) = (&mut self.purses, Arc::clone(&waiting.provider));
        let patience = later(waiting.since, PATIENCE);
        let mut next: Option<Timestamp> = None;
        waiting.said.retain(|what, said| {
            let mut wait = |until: Timestamp| {
                next = Some(next.map_or(until, |next| next.min(until)));
                true
            };
            match told.what.get(what) {
                Some((_, count)) if *count >= said.count => return false,
                Some((at, _)) if now < later(*at, AGAIN) => return wait(later(*at, AGAIN)),
                None if told.what.len() >= MOST_EACH => return false,
                _ => {}
            }
            if !said.warning && standing.settled {
                return false;
            }
            if !said.warning && now < patience {
                return wait(patience);
            }
            let rate = if said.warning { WARNINGS } else { NORMAL };
            let purse = purses.entry((Arc::clone(&provider), said.warning));
            if !purse.or_insert_with(|| Purse::new(rate, now)).take(now) {
                return wait(later(now, SignedDuration::from_secs(1)));
            }
            told.what.insert(what.clone(), (now, said.count));
            all.push((subject.clone(), standing.uid.clone(), said.clone()));
            false
        });
        if told.what.is_empty() {
            self.told.remove(&subject);
        }
        if let Some(next) = next {
            self.wakes.insert((next, subject.clone()));
            self.waiting.insert(subject, waiting);
        }
    }
}

fn later(time: Timestamp, by: SignedDuration) -> Timestamp {
    time.checked_add(by).unwrap_or(Timestamp::MAX)
}
