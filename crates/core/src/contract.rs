//! Contracts.

mod clauses;

pub use clauses::{Enforcement, Renewal, ServiceLevel};
