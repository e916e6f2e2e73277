//! What one rendering may cost, so that a hostile chart ends with an error instead of filling the machine.

use std::cell::Cell;

/// Blocks, parentheses and included templates inside each other. Real charts stay below 50; the stack of a thread
/// of 2 MiB carries twice this, also without optimisation.
const MAX_DEPTH: u32 = 200;

/// Work of one rendering: a step costs [`STEP`], a byte that is read or written costs 1. Half a million steps, which is
/// some fifty times what a real chart needs and less than a second.
const MAX_WORK: u64 = 100_000_000;

/// What evaluating one node of a template costs.
const STEP: u64 = 200;

/// All the text and lists that one rendering may make, intermediate ones included. Real charts make some 100 KiB.
const MAX_MADE: u64 = 64 << 20;

/// What an item of a list or map costs, in bytes.
pub(crate) const ITEM_COST: usize = 64;

/// What a map costs by itself, in bytes: it is laid out for several entries at once.
pub(crate) const MAP_COST: usize = 1024;

/// What each byte of a text costs that becomes a tree: `{a: b}` is short, and a map.
pub(crate) const TREE_COST: usize = 64;

/// Counts what a rendering has used up.
#[derive(Debug, Default)]
pub(crate) struct Budget {
    work: Cell<u64>,
    made: Cell<u64>,
    depth: Cell<u32>,
}

impl Budget {
    /// Pays for evaluating one node.
    pub(crate) fn step(&self) -> Result<(), String> {
        self.work(STEP)
    }

    /// Pays for looking at `bytes` bytes.
    pub(crate) fn read(&self, bytes: usize) -> Result<(), String> {
        self.work(bytes as u64)
    }

    /// Pays for making `bytes` bytes; to be called before they are made.
    pub(crate) fn make(&self, bytes: usize) -> Result<(), String> {
        let made = self.made.get().saturating_add(bytes as u64);
        if made > MAX_MADE {
            return Err(format!("the chart writes more than it may: {} MiB of text", MAX_MADE >> 20));
        }
        self.made.set(made);
        self.work(bytes as u64)
    }

    /// Goes one level deeper, until the returned guard is dropped.
    pub(crate) fn enter(&self) -> Result<Level<'_>, String> {
        let depth = self.depth.get() + 1;
        if depth > MAX_DEPTH {
            return Err(format!(
                "more than {MAX_DEPTH} blocks and templates inside each other; does a template include itself?"
            ));
        }
        self.depth.set(depth);
        Ok(Level(self))
    }

    fn work(&self, cost: u64) -> Result<(), String> {
        let work = self.work.get().saturating_add(cost);
        self.work.set(work);
        if work > MAX_WORK {
            Err("the chart reckons more than it may; does a loop not end?".into())
        } else {
            Ok(())
        }
    }
}

/// One level of depth, given back when dropped.
#[derive(Debug)]
pub(crate) struct Level<'a>(&'a Budget);

impl Drop for Level<'_> {
    fn drop(&mut self) {
        self.0.depth.set(self.0.depth.get() - 1);
    }
}
