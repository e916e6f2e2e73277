//! Terms for tests that need some.

use liqo_core::Span;
use liqo_core::canonical::Digest;
use liqo_core::contract::{Clauses, Enforcement, Party, PublicKey, ServiceLevel, Terms};

/// Some terms.
pub(crate) fn terms() -> Terms {
    let party = |id: &str, key| Party {
        id: id.parse().unwrap(),
        name: id.parse().unwrap(),
        key: PublicKey::new([key; 32]),
    };
    let clauses = Clauses {
        contract: "c-1".parse().unwrap(),
        sequence: 0,
        predecessor: None,
        provider: party("north", 1),
        consumer: party("south", 2),
        resources: [("cpu".parse().unwrap(), "2".parse().unwrap())].into_iter().collect(),
        pools: [].into(),
        prices: None,
        not_before: "2026-03-01T12:00:00Z".parse().unwrap(),
        not_after: "2026-03-02T12:00:00Z".parse().unwrap(),
        renewal: Some(Span::clamped(86_400)),
        enforcement: Enforcement::Hard,
        service_level: ServiceLevel::default(),
        offer: Digest::of("test", b"offer"),
    };
    Terms::new(clauses).unwrap()
}
