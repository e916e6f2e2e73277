//! The room in which clusters ask for resources, offer them and sign contracts.

#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic))]

mod log;
mod offer;
mod paper;
mod stock;
