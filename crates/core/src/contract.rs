//! Contracts: what two clusters agreed on, in bytes that both sign.
//!
//! ```text
//! Clauses ──check──▶ Terms ──▶ canonical bytes ──▶ digest ──▶ signing input ──▶ (Ed25519, elsewhere)
//!    ▲                 │
//!    └─────parse───────┘        lifecycle: who signed, what is due        obligations: is it kept?
//! ```
//!
//! # The canonical form, version 1
//!
//! A JSON object in the form of [`canonical`](crate::canonical), with these fields and no others:
//!
//! | field | what |
//! |---|---|
//! | `version` | the number 1 |
//! | `contract` | the contract's ID, the same in all amendments |
//! | `sequence` | 0, then 1, 2, … for each amendment |
//! | `predecessor` | digest of the terms that this amendment replaces; not there if `sequence` is 0 |
//! | `provider`, `consumer` | the parties: `id`, `name` and `publicKey` (`ed25519:` and 64 hex digits) |
//! | `resources` | amount of each resource: a quantity as Kubernetes writes it, in binary units for bytes (`memory`, `ephemeral-storage`, `storage`, `hugepages-*`, also after `requests.` or `limits.`), in decimal ones for the rest; more than zero |
//! | `pools` | by the name of each pool of the provider's nodes: its part of the `resources`, to which all parts add up, and the `labels` of its node, if it has any; not there if the offer has no pools |
//! | `prices` | `currency`, `period` (seconds) and `perUnit` (a price for a core, a GiB or one of each resource, as a decimal quantity); not there if it is free |
//! | `notBefore`, `notAfter` | RFC 3339 in UTC, whole seconds: `2026-01-01T00:00:00Z` |
//! | `renewal` | seconds for which it goes on each time it ends; not there if it is over then |
//! | `enforcement` | `hard` or `soft` |
//! | `serviceLevel` | further promises, a text each; not there if there is none |
//! | `offer` | digest of the offer that it comes from |
//!
//! The digest is that of [`canonical`](crate::canonical) with the domain [`TERMS_DOMAIN`]. What each party signs is
//! `liqo.io/contract-signature/v1`, a zero byte, and the 32 bytes of the digest ([`signing_input`]).
//! Terms in any other spelling are refused, so that a digest stands for one text only.

mod clauses;
mod lifecycle;
mod obligations;
mod terms;

pub use clauses::{Enforcement, InvalidServiceLevel, Renewal, ServiceLevel};
pub use lifecycle::{Action, Due, Event, Lifecycle, NotPossible, State};
pub use obligations::{Alarm, Change, Delays, Findings, findings};
pub use terms::{
    Clauses, InvalidKey, InvalidTerms, MOST_RESOURCES, Party, PublicKey, TERMS_DOMAIN, Terms, check_amount,
    signing_input,
};
