//! Counted places, so that no request, however many come, makes the program grow without limit.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A fixed number of places that can be taken and come back when the [`Slot`] is dropped.
#[derive(Clone, Debug)]
pub(crate) struct Slots {
    used: Arc<AtomicUsize>,
    limit: usize,
}

/// Some places of a [`Slots`], given back on drop.
#[derive(Debug)]
pub(crate) struct Slot {
    used: Arc<AtomicUsize>,
    count: usize,
}

impl Slots {
    pub(crate) fn new(limit: usize) -> Self {
        Self { used: Arc::default(), limit }
    }

    /// Takes `count` places, all or none.
    pub(crate) fn take(&self, count: usize) -> Option<Slot> {
        self.used
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, |used| {
                used.checked_add(count).filter(|sum| *sum <= self.limit)
            })
            .ok()
            .map(|_| Slot { used: Arc::clone(&self.used), count })
    }

    pub(crate) fn used(&self) -> usize {
        self.used.load(Ordering::Acquire)
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.used.fetch_sub(self.count, Ordering::AcqRel);
    }
}

#[cfg(test)]
mod tests;
