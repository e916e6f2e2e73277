//! Short spellings for tests.

use jiff::Timestamp;

use crate::field::Problems;
use crate::names::{ClusterId, ContractId};
use crate::resources::Resources;
use crate::selector::{Selector, SelectorSpec};

/// A list such as `cpu=2, memory=4Gi`.
pub(crate) fn list(text: &str) -> Resources {
    let entries = text.split(',').map(str::trim).filter(|entry| !entry.is_empty());
    let pairs = entries.map(|entry| entry.split_once('=').unwrap_or_else(|| panic!("no '=' in {entry}")));
    Resources::parse(pairs).into_result().unwrap_or_else(|problems| panic!("{problems}"))
}

pub(crate) fn id(text: &str) -> ClusterId {
    text.parse().unwrap_or_else(|error| panic!("{error}"))
}

pub(crate) fn contract_id(text: &str) -> ContractId {
    text.parse().unwrap_or_else(|error| panic!("{error}"))
}

/// A selector such as `tier=gold`.
pub(crate) fn selector(text: &str) -> Selector {
    let labels =
        text.split(',').map(|entry| entry.split_once('=').unwrap_or_else(|| panic!("no '=' in {entry}")));
    let match_labels = labels.map(|(key, value)| (key.to_owned(), value.to_owned())).collect();
    Selector::read(
        &SelectorSpec { match_labels, ..SelectorSpec::default() },
        "test",
        &mut Problems::default(),
    )
}

/// A moment such as `2026-03-01T08:00:00Z`.
pub(crate) fn time(text: &str) -> Timestamp {
    text.parse().unwrap_or_else(|error| panic!("{error}"))
}
