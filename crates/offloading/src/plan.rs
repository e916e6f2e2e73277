//! What should happen, given what is known.
//!
//! - [`namespace`] is about one namespace: its NamespaceOffloading, its labels, what its owner is told;
//! - [`peer`] is about one cluster: our map for it, and the copy there;
//! - [`drain`] is about pods that have to leave before a namespace does;
//! - [`fail_back`] is about pods that go back to a cluster that answers again;
//! - [`verdict`] is which clusters a namespace extends to, and why not to the others.

use jiff::Timestamp;
use liqo_api::names::Identity;

use crate::index::{Index, Subject};
use crate::settings::Settings;
use crate::steps::Step;

pub(crate) mod drain;
pub(crate) mod fail_back;
mod namespace;
mod peer;
mod status;
#[cfg(test)]
mod tests;
mod verdict;

/// What plans look at.
pub(crate) struct View<'a> {
    pub(crate) index: &'a Index,
    pub(crate) me: &'a Identity,
    pub(crate) settings: &'a Settings,
    pub(crate) now: Timestamp,
}

/// What is missing, and when to look again if nothing changes until then.
#[derive(Debug, Default)]
pub(crate) struct Planned {
    pub(crate) steps: Vec<Step>,
    pub(crate) wake: Option<Timestamp>,
}

/// What is missing of this.
pub(crate) fn plan(view: &View<'_>, subject: &Subject) -> Planned {
    match subject {
        Subject::House => crate::webhook::plan(view),
        Subject::Namespace(name) => namespace::plan(view, name),
        Subject::Peer(cluster) => Planned { steps: peer::plan(view, cluster), wake: None },
    }
}
