//! What each consumer uses, over all its namespaces: pods that are there, and pods that are about to be.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use liqo_core::Resources;
use liqo_core::names::{ClusterId, PoolName};
use liqo_kit::Key;

/// How long a pod that was made may stay unseen. The watch is never that late; it was made and removed while nobody looked.
const UNSEEN: SignedDuration = SignedDuration::from_secs(60);

/// Whose contract a pod is counted against, and which pool of it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Account {
    pub(crate) peer: ClusterId,
    pub(crate) pool: Option<PoolName>,
}

impl From<ClusterId> for Account {
    fn from(peer: ClusterId) -> Self {
        Self { peer, pool: None }
    }
}

/// What a pod takes of whose contract.
type Charge = (Account, Arc<Resources>);

/// What each consumer uses.
#[derive(Debug, Default)]
pub(crate) struct Ledger {
    used: BTreeMap<ClusterId, Resources>,
    /// The same by pool, for pods that are in one.
    in_pools: BTreeMap<Account, Resources>,
    /// Pods that are there.
    charged: BTreeMap<Key, Charge>,
    /// Pods that are being made, since when.
    reserved: BTreeMap<Key, (Charge, Timestamp)>,
    /// By how much pods that are there are being made larger, since when.
    growing: BTreeMap<Key, (Charge, Timestamp)>,
}

const NOTHING: &Resources = &Resources::new();

impl Ledger {
    /// What a consumer uses.
    pub(crate) fn used(&self, peer: &ClusterId) -> &Resources {
        self.used.get(peer).unwrap_or(NOTHING)
    }

    /// What a consumer uses of one pool.
    pub(crate) fn used_in(&self, account: &Account) -> &Resources {
        self.in_pools.get(account).unwrap_or(NOTHING)
    }

    /// All consumers that use something.
    pub(crate) fn users(&self) -> impl Iterator<Item = (&ClusterId, &Resources)> {
        self.used.iter()
    }

    /// Whether a pod is being made, or was made and not seen yet.
    pub(crate) fn is_reserved(&self, key: &Key) -> bool {
        self.reserved.contains_key(key)
    }

    /// Counts a pod that is about to be made.
    pub(crate) fn reserve(
        &mut self,
        key: &Key,
        whose: impl Into<Account>,
        amount: Arc<Resources>,
        now: Timestamp,
    ) {
        self.release(key);
        let charge = (whose.into(), amount);
        self.add(&charge);
        self.reserved.insert(key.clone(), (charge, now));
    }

    /// Counts it no longer: it was seen, or could not be made. Returns whose it was.
    pub(crate) fn release(&mut self, key: &Key) -> Option<ClusterId> {
        let (charge, _) = self.reserved.remove(key)?;
        self.take(&charge);
        Some(charge.0.peer)
    }

    /// Whether a pod is being made larger, or was and nobody has seen it yet.
    pub(crate) fn is_growing(&self, key: &Key) -> bool {
        self.growing.contains_key(key)
    }

    /// Counts by how much a pod is about to be made larger.
    pub(crate) fn grow(&mut self, key: &Key, whose: impl Into<Account>, amount: Resources, now: Timestamp) {
        self.release_growth(key);
        let charge = (whose.into(), Arc::new(amount));
        self.add(&charge);
        self.growing.insert(key.clone(), (charge, now));
    }

    /// Counts that no longer: it was seen, or could not be done. Returns whose it was.
    pub(crate) fn release_growth(&mut self, key: &Key) -> Option<ClusterId> {
        let (charge, _) = self.growing.remove(key)?;
        self.take(&charge);
        Some(charge.0.peer)
    }

    /// The pods that were made, or made larger, so long ago that it must have been undone.
    pub(crate) fn overdue(&self, now: Timestamp) -> Vec<Key> {
        let late = |since: Timestamp| now.duration_since(since) > UNSEEN;
        let all = self.reserved.iter().chain(&self.growing);
        all.filter(|(_, (_, since))| late(*since)).map(|(key, _)| key.clone()).collect()
    }

    /// Forgets what was about to be made, when somebody else makes it.
    pub(crate) fn release_all(&mut self) {
        let keys: Vec<Key> = self.reserved.keys().chain(self.growing.keys()).cloned().collect();
        for key in &keys {
            self.release(key);
            self.release_growth(key);
        }
    }

    /// A pod that is there takes this much now, or nothing; returns whose room became free.
    pub(crate) fn settle(&mut self, key: &Key, charge: Option<Charge>) -> Option<ClusterId> {
        let before = self.charged.get(key);
        if before == charge.as_ref() {
            return None;
        }
        let before = self.charged.remove(key);
        if let Some(before) = &before {
            self.take(before);
        }
        if let Some(charge) = charge {
            self.add(&charge);
            self.charged.insert(key.clone(), charge);
        }
        before.map(|(account, _)| account.peer)
    }

    fn add(&mut self, (account, amount): &Charge) {
        self.used.entry(account.peer.clone()).or_default().accumulate(amount);
        if account.pool.is_some() {
            self.in_pools.entry(account.clone()).or_default().accumulate(amount);
        }
    }

    fn take(&mut self, (account, amount): &Charge) {
        subtract(&mut self.used, &account.peer, amount);
        subtract(&mut self.in_pools, account, amount);
    }
}

fn subtract<K: Ord>(sums: &mut BTreeMap<K, Resources>, key: &K, amount: &Resources) {
    let Some(used) = sums.get_mut(key) else { return };
    *used = used.sub_to_zero(amount);
    if used.is_zero() {
        sums.remove(key);
    }
}
