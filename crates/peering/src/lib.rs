//! The room in which clusters ask for resources, offer them and sign contracts.

#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic))]

pub mod log;
pub mod offer;
pub mod paper;
pub mod stock;
