//! Putting liqo into a cluster, and taking it out again.

pub mod finding;
