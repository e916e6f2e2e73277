//! The terms: checked once, then unchangeable, with their bytes and their digest.

use std::fmt;
use std::ops::Deref;
use std::str::FromStr;
use std::sync::Arc;

use jiff::Timestamp;

use super::{Enforcement, ServiceLevel};
use crate::canonical::{self, Digest, NotCanonical};
use crate::field::{FieldProblem, Problems};
use crate::money::Prices;
use crate::names::{ClusterId, ClusterName, ContractId};
use crate::pools::{self, MOST_LABELS, MOST_POOLS, Pools};
use crate::quantity::{Excerpt, Quantity};
use crate::resources::{ResourceName, Resources};
use crate::selector::read_labels;
use crate::span::Span;

mod wire;

#[cfg(test)]
mod tests;

/// The domain of the digest of terms.
pub const TERMS_DOMAIN: &str = "liqo.io/contract-terms/v1";
const SIGNATURE_DOMAIN: &str = "liqo.io/contract-signature/v1";

/// Bytes in the canonical form; what the longest allowed clauses need.
const LONGEST: usize = 128 << 10;
/// Resources in a contract; as many as a list of resources may have in an object.
pub const MOST_RESOURCES: usize = 64;
/// Steps of a resource; as much as prices can reckon with.
const LARGEST_AMOUNT: u128 = 1_000_000_000_000_000_000;
/// Amendments of a contract; a number that every JSON library keeps.
const LAST_SEQUENCE: u64 = (1 << 53) - 1;
const KEY_PREFIX: &str = "ed25519:";

/// One side of a contract.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Party {
    /// What identifies the cluster.
    pub id: ClusterId,
    /// What people call it.
    pub name: ClusterName,
    /// The key that its signature is checked with.
    pub key: PublicKey,
}

/// An Ed25519 public key, written `ed25519:` and 64 hex digits.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct PublicKey([u8; 32]);

/// What two clusters agree on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Clauses {
    /// The contract, the same in all amendments.
    pub contract: ContractId,
    /// 0, then 1, 2, … for each amendment.
    pub sequence: u64,
    /// The digest of the terms that this amendment replaces.
    pub predecessor: Option<Digest>,
    /// Who lends.
    pub provider: Party,
    /// Who uses.
    pub consumer: Party,
    /// What is lent.
    pub resources: Resources,
    /// The same by pool of the provider's nodes; nothing where the offer has none.
    pub pools: Pools,
    /// What it costs; `None` if it is free.
    pub prices: Option<Prices>,
    /// From when on.
    pub not_before: Timestamp,
    /// Until when, that moment not included.
    pub not_after: Timestamp,
    /// For how long it goes on each time it ends; `None` if it is over then.
    pub renewal: Option<Span>,
    /// Whether use beyond the agreed is refused or reported.
    pub enforcement: Enforcement,
    /// What else is promised.
    pub service_level: ServiceLevel,
    /// The digest of the offer that this comes from.
    pub offer: Digest,
}

/// Clauses that were checked, with their canonical bytes and digest. Cheap to clone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Terms(Arc<Sealed>);

#[derive(Debug, PartialEq, Eq)]
struct Sealed {
    clauses: Clauses,
    bytes: Vec<u8>,
    digest: Digest,
}

/// Why clauses are no terms, or bytes are none.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidTerms {
    /// The bytes are not in canonical form.
    #[error(transparent)]
    Form(#[from] NotCanonical),
    /// The bytes are longer than any terms can be.
    #[error("terms of {0} bytes are not read; at most {LONGEST} are allowed")]
    Long(usize),
    /// A later version of terms.
    #[error("terms of version {0} are not known here; this program reads version {version}", version = wire::VERSION)]
    Version(u64),
    /// A field that is missing, unknown or cannot be read.
    #[error("{field}: {problem}")]
    Field {
        /// The field.
        field: String,
        /// What is wrong with it.
        problem: String,
    },
    /// The terms are fine, but do not amend those that they claim to.
    #[error("amendment {sequence} does not follow: {problem}")]
    DoesNotFollow {
        /// The amendment.
        sequence: u64,
        /// Why.
        problem: &'static str,
    },
}

impl InvalidTerms {
    fn field(field: impl Into<String>, problem: impl fmt::Display) -> Self {
        Self::Field { field: field.into(), problem: problem.to_string() }
    }
}

impl Terms {
    /// Checks clauses and gives them their bytes.
    pub fn new(clauses: Clauses) -> Result<Self, InvalidTerms> {
        check(&clauses)?;
        let bytes = canonical::bytes(&wire::document(&clauses))?;
        if bytes.len() > LONGEST {
            return Err(InvalidTerms::Long(bytes.len()));
        }
        let digest = Digest::of(TERMS_DOMAIN, &bytes);
        Ok(Self(Arc::new(Sealed { clauses, bytes, digest })))
    }

    /// Reads terms that must be in canonical form.
    pub fn parse(bytes: &[u8]) -> Result<Self, InvalidTerms> {
        if bytes.len() > LONGEST {
            return Err(InvalidTerms::Long(bytes.len()));
        }
        let terms = Self::new(wire::clauses(canonical::parse(bytes)?)?)?;
        // The document is canonical, but a text in it may not be: 1000m for 1.
        let same = terms.canonical().iter().zip(bytes).take_while(|(a, b)| a == b).count();
        if same < bytes.len() { Err(NotCanonical::Other(same).into()) } else { Ok(terms) }
    }

    /// The canonical bytes.
    pub fn canonical(&self) -> &[u8] {
        &self.0.bytes
    }

    /// The digest of the canonical bytes.
    pub fn digest(&self) -> Digest {
        self.0.digest
    }

    /// What each party signs.
    pub fn signing_input(&self) -> Vec<u8> {
        signing_input(&self.digest())
    }

    /// Whether these terms are the next amendment of `predecessor`. A party may have another name or key by then; whose
    /// key it is, is for the one who checks the signatures.
    pub fn check_follows(&self, predecessor: &Self) -> Result<(), InvalidTerms> {
        let rules = [
            (self.contract == predecessor.contract, "it is of another contract"),
            (self.provider.id == predecessor.provider.id, "the provider is another cluster"),
            (self.consumer.id == predecessor.consumer.id, "the consumer is another cluster"),
            (predecessor.sequence.checked_add(1) == Some(self.sequence), "its number is not the next one"),
            (self.predecessor == Some(predecessor.digest()), "it names other terms as its predecessor"),
        ];
        match rules.into_iter().find(|(kept, _)| !kept) {
            None => Ok(()),
            Some((_, problem)) => Err(InvalidTerms::DoesNotFollow { sequence: self.sequence, problem }),
        }
    }
}

impl Deref for Terms {
    type Target = Clauses;

    fn deref(&self) -> &Clauses {
        &self.0.clauses
    }
}

/// What each party of terms with this digest signs.
pub fn signing_input(digest: &Digest) -> Vec<u8> {
    [SIGNATURE_DOMAIN.as_bytes(), &[0], digest.as_bytes()].concat()
}

fn check(clauses: &Clauses) -> Result<(), InvalidTerms> {
    let Clauses { provider, consumer, .. } = clauses;
    if provider.id == consumer.id {
        return Err(InvalidTerms::field("consumer.id", "a cluster has no contract with itself"));
    }
    if provider.key == consumer.key {
        return Err(InvalidTerms::field("consumer.publicKey", "both parties have the same key"));
    }
    if clauses.sequence > LAST_SEQUENCE {
        return Err(InvalidTerms::field("sequence", format_args!("is beyond {LAST_SEQUENCE}")));
    }
    if (clauses.sequence > 0) != clauses.predecessor.is_some() {
        return Err(InvalidTerms::field(
            "predecessor",
            "every amendment names its predecessor, and nothing else does",
        ));
    }
    check_times(clauses)?;
    check_resources("resources", &clauses.resources)?;
    check_pools(clauses)
}

fn check_times(clauses: &Clauses) -> Result<(), InvalidTerms> {
    for (field, time) in [("notBefore", clauses.not_before), ("notAfter", clauses.not_after)] {
        if time.subsec_nanosecond() != 0 || time < Timestamp::UNIX_EPOCH {
            return Err(InvalidTerms::field(field, "must be a whole second, not before 1970"));
        }
    }
    if clauses.not_before >= clauses.not_after {
        return Err(InvalidTerms::field("notAfter", "must be later than notBefore"));
    }
    Ok(())
}

fn check_resources(field: &str, resources: &Resources) -> Result<(), InvalidTerms> {
    if resources.is_empty() {
        return Err(InvalidTerms::field(field, "a contract about nothing is none"));
    }
    if resources.len() > MOST_RESOURCES {
        let problem = format!("has {} entries, at most {MOST_RESOURCES} are allowed", resources.len());
        return Err(InvalidTerms::field(field, problem));
    }
    for (name, amount) in resources.iter() {
        if let Err(problem) = check_amount(name, amount) {
            return Err(InvalidTerms::field(format!("{field}[{name}]"), problem));
        }
    }
    Ok(())
}

fn check_pools(clauses: &Clauses) -> Result<(), InvalidTerms> {
    if clauses.pools.len() > MOST_POOLS {
        let problem = format!("has {} entries, at most {MOST_POOLS} are allowed", clauses.pools.len());
        return Err(InvalidTerms::field("pools", problem));
    }
    for (name, pool) in &clauses.pools {
        check_resources(&format!("pools[{name}].resources"), &pool.resources)?;
        if pool.labels.len() > MOST_LABELS {
            let problem = format!("has {} entries, at most {MOST_LABELS} are allowed", pool.labels.len());
            return Err(InvalidTerms::field(format!("pools[{name}].labels"), problem));
        }
        let mut problems = Problems::default();
        read_labels(&pool.labels, &format!("pools[{name}].labels"), &mut problems);
        if let Some(FieldProblem { path, message }) = problems.into_vec().into_iter().next() {
            return Err(InvalidTerms::field(path, message));
        }
    }
    if !clauses.pools.is_empty() && pools::sum(&clauses.pools) != clauses.resources {
        return Err(InvalidTerms::field("pools", "do not add up to the resources"));
    }
    Ok(())
}

/// Whether a contract can be about so much of a resource; if not, why.
pub fn check_amount(name: &ResourceName, amount: Quantity) -> Result<(), String> {
    let step = name.granularity().nanos();
    match u128::try_from(amount.nanos()) {
        Ok(nanos) if nanos > 0 && nanos % step == 0 && nanos / step <= LARGEST_AMOUNT => Ok(()),
        _ => {
            let steps = if step == 1_000_000 { "thousandths" } else { "whole units" };
            Err(format!("is {amount}; must be more than 0 and at most 10^18, in {steps}"))
        }
    }
}

impl PublicKey {
    /// A key of these 32 bytes.
    pub const fn new(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// The 32 bytes.
    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

/// A text that is no public key.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0} is not a public key: expected ed25519: and 64 small hex digits")]
pub struct InvalidKey(Excerpt);

impl FromStr for PublicKey {
    type Err = InvalidKey;

    fn from_str(text: &str) -> Result<Self, InvalidKey> {
        let digits = text.strip_prefix(KEY_PREFIX);
        digits.and_then(canonical::from_hex).map(Self).ok_or_else(|| InvalidKey(Excerpt::of(text)))
    }
}

impl fmt::Display for PublicKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(&format!("{KEY_PREFIX}{}", canonical::to_hex(&self.0)))
    }
}

impl fmt::Debug for PublicKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, formatter)
    }
}
