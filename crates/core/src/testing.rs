//! Short spellings for tests.

use jiff::Timestamp;

use crate::canonical::Digest;
use crate::contract::{Clauses, Enforcement, Party, PublicKey, ServiceLevel};
use crate::field::Problems;
use crate::money::{Period, Prices};
use crate::names::{ClusterId, ContractId};
use crate::resources::Resources;
use crate::selector::{Selector, SelectorSpec};
use crate::span::Span;

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

/// A contract between `north` (provider) and `south` (consumer) for July 2026.
pub(crate) fn clauses() -> Clauses {
    let party = |id: &str, name: &str, key: u8| Party {
        id: self::id(id),
        name: name.parse().unwrap_or_else(|error| panic!("{error}")),
        key: PublicKey::new([key; 32]),
    };
    let price = |name: &str, text: &str| {
        let name = name.parse().unwrap_or_else(|error| panic!("{error}"));
        (name, text.parse().unwrap_or_else(|error| panic!("{error}")))
    };
    let currency = "EUR".parse().unwrap_or_else(|error| panic!("{error}"));
    let prices = Prices::new(currency, Period::HOUR, [price("cpu", "0.02"), price("memory", "0.004")]);
    let promises = [("availability".to_owned(), "99.9".to_owned())].into();
    Clauses {
        contract: contract_id("c-1"),
        sequence: 0,
        predecessor: None,
        provider: party("north", "norden", 1),
        consumer: party("south", "sueden", 2),
        resources: list("cpu=1500m, memory=4Gi, nvidia.com/gpu=1"),
        pools: [].into(),
        prices: prices.ok(),
        not_before: time("2026-07-01T00:00:00Z"),
        not_after: time("2026-08-01T00:00:00Z"),
        renewal: Some(Span::clamped(2_592_000)),
        enforcement: Enforcement::Hard,
        service_level: ServiceLevel::new(promises).unwrap_or_default(),
        offer: Digest::of("test", b"offer"),
    }
}
