//! Who gets which namespace. Pure: a function of maps, tenants, grants and namespaces.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use liqo_api::names::TENANT_NAMESPACE_PREFIX;
use liqo_core::names::ClusterId;
use liqo_kit::Key;

use crate::index::Index;
use crate::settings::Settings;

#[cfg(test)]
mod tests;

/// Another one has this name.
pub(crate) const NAME_TAKEN: &str = "NameTaken";
/// This name is for the cluster itself.
pub(crate) const PROTECTED_NAME: &str = "ProtectedName";
/// The consumer has as many as it may.
pub(crate) const TOO_MANY: &str = "TooMany";
/// There is no contract in force.
pub(crate) const NO_CONTRACT: &str = "NoContract";

/// Names that are, or may become, the cluster's own.
const PROTECTED: [&str; 3] = ["default", "liqo", "liqo-storage"];
const PROTECTED_PREFIXES: [&str; 3] = ["kube-", "openshift-", TENANT_NAMESPACE_PREFIX];

/// A namespace that a consumer gets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Claim {
    pub(crate) peer: ClusterId,
    pub(crate) map: Key,
    /// Its name at the consumer.
    pub(crate) original: String,
}

/// Why a consumer does not get a namespace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Denial {
    pub(crate) reason: &'static str,
    pub(crate) message: String,
}

/// Who gets which namespace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Claims {
    /// By the name here.
    pub(crate) wanted: BTreeMap<String, Claim>,
    /// Why others are not given, by map and by the name at the consumer.
    pub(crate) denied: BTreeMap<Key, BTreeMap<String, Denial>>,
    /// Peers without contract that may yet keep what they have.
    pub(crate) spared: BTreeSet<ClusterId>,
    /// When the first of them may no longer.
    pub(crate) wake: Option<Timestamp>,
}

/// Decides for all.
pub(crate) fn claims(index: &Index, settings: &Settings, now: Timestamp) -> Claims {
    let mut claims = Claims::default();
    let mut counts: BTreeMap<&ClusterId, usize> = BTreeMap::new();
    let mut asked: Vec<(&String, Claim)> = Vec::new();
    for (key, map) in index.maps.iter().filter(|(_, map)| !map.deleting) {
        let place = key.namespace().and_then(|place| index.tenants.store().get(&Key::cluster(place)));
        let Some(tenant) = place.filter(|it| !it.deleting && it.peer.as_str() == &*map.origin) else {
            continue;
        };
        let count = counts.entry(&tenant.peer).or_default();
        let granted = index.grant(&tenant.peer).is_some();
        for (original, name) in &map.wanted {
            let claim = Claim { peer: tenant.peer.clone(), map: key.clone(), original: original.clone() };
            if let Some(denial) = unconditional(granted, name, *count, settings) {
                claims.deny(claim, denial);
                continue;
            }
            *count += 1;
            asked.push((name, claim));
        }
    }
    // Who has it keeps it, whoever comes first in the alphabet.
    asked.sort_by_key(|(name, claim)| !holds(index, name, claim));
    for (name, claim) in asked {
        match taken(index, &claims, name, &claim) {
            Some(denial) => claims.deny(claim, denial),
            None => drop(claims.wanted.insert(name.clone(), claim)),
        }
    }
    claims.spare(index, settings, now);
    claims
}

impl Claims {
    fn deny(&mut self, claim: Claim, denial: Denial) {
        self.denied.entry(claim.map).or_default().insert(claim.original, denial);
    }

    /// Peers whose contract ended just now keep what they have for a little while.
    fn spare(&mut self, index: &Index, settings: &Settings, now: Timestamp) {
        for (peer, since) in &index.memory.lapsed {
            let end = since.checked_add(settings.grace).unwrap_or(Timestamp::MAX);
            if end > now && index.tenant_of(peer).is_some() {
                self.spared.insert(peer.clone());
                self.wake = Some(self.wake.map_or(end, |wake| wake.min(end)));
            }
        }
    }
}

/// What is refused whatever there is.
fn unconditional(granted: bool, name: &str, count: usize, settings: &Settings) -> Option<Denial> {
    let denial = |reason, message: String| Some(Denial { reason, message });
    let is_protected = PROTECTED.contains(&name)
        || name == settings.namespace.as_str()
        || PROTECTED_PREFIXES.iter().any(|prefix| name.starts_with(prefix));
    if is_protected {
        denial(PROTECTED_NAME, format!("the name {name} is for the provider's own namespaces"))
    } else if count >= settings.namespaces {
        denial(TOO_MANY, format!("a cluster may have at most {} namespaces here", settings.namespaces))
    } else if !granted {
        denial(NO_CONTRACT, "there is no contract in force".to_owned())
    } else {
        None
    }
}

/// Whether the namespace is this claim's already.
pub(crate) fn holds(index: &Index, name: &str, claim: &Claim) -> bool {
    index.space(name).is_some_and(|space| {
        space.peer.as_ref() == Some(&claim.peer) && space.original.as_deref() == Some(&claim.original)
    })
}

/// Why the name is not to be had.
fn taken(index: &Index, claims: &Claims, name: &str, claim: &Claim) -> Option<Denial> {
    let message = match (claims.wanted.get(name), index.space(name)) {
        (Some(other), _) if other.peer == claim.peer => {
            format!("the namespace {} has the name {name} at the provider", other.original)
        }
        // Whose it is, is nobody else's business.
        (Some(_), _) => format!("the provider has another namespace of the name {name}"),
        (None, Some(space)) if space.peer.as_ref() != Some(&claim.peer) => {
            format!("the provider has another namespace of the name {name}")
        }
        _ => return None,
    };
    Some(Denial { reason: NAME_TAKEN, message })
}
