//! What the rest of liqo-rs reckons with: plain data and arithmetic, no IO, no clock, no Kubernetes client.
//!
//! ```text
//! "1.5Gi" ──parse──▶ Quantity ──┐                         ┌─▶ add, subtract, compare, scale by a Ratio
//! "nvidia.com/gpu" ▶ ResourceName ──▶ Resources (a list) ─┤
//! {"cpu":"2", …}  ──parse────────────▲                    └─▶ Partial: what worked, and what is wrong with the rest
//! ```
//!
//! A [`Quantity`] is exact: a whole number of billionths in an `i128`, never a float. It reads and writes the
//! texts Kubernetes reads and writes, which is checked against Kubernetes' own library.
//! In [`Resources`] every resource stands for itself: a bad one is reported and spoils no other.
//!
//! # From capacity to contract
//!
//! ```text
//! nodes, pods ──▶ capacity ─┐
//! SharingPolicy ─▶ policy ──┼─▶ evaluate ──▶ Offer ──▶ threshold: worth telling? how often?
//!           ┌───▶ ledger ───┘                  │
//!           │                                  ▼ (to the consumer) acceptance: take it?
//!           │   sold, unless it is gone        │
//!           └────────────────────────── contract: Terms, signed by both; lifecycle, obligations
//!                                              └─▶ chain: the log of what happened
//! ```
//!
//! Every decision is a function of what it is given; time is an argument. What comes from a peer is bounded in number
//! and size, and what is wrong with it is said in words.

pub mod acceptance;
pub mod canonical;
pub mod capacity;
pub mod chain;
pub mod contract;
mod field;
mod fraction;
pub mod ledger;
pub mod money;
pub mod names;
mod pattern;
pub mod policy;
pub mod pools;
mod quantity;
mod resources;
pub mod selector;
mod span;
#[cfg(test)]
mod testing;
pub mod threshold;

pub use field::{FieldProblem, FieldProblems};
pub use pattern::Patterns;
pub use quantity::{Format, Granularity, ParseQuantityError, Quantity, Ratio, RoundTo, Rounding};
pub use resources::{
    InvalidResourceName, Partial, ResourceName, ResourceProblem, ResourceProblems, Resources,
};
pub use span::{InvalidSpan, Span};
