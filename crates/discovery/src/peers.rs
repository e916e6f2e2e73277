//! The ForeignClusters: what there is, what should be, and how it is written.

mod index;
mod plan;
mod writes;

pub(crate) use index::{Peer, Peers};
pub(crate) use plan::{Active, DISCOVERED, Incumbent, Incumbents, Report, Step, World, plan};
pub(crate) use writes::write;
