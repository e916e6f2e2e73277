//! Tokens of service accounts, as Secrets at providers.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use kube::api::ObjectMeta;
use liqo_kit::Key;

use crate::mirror::{Here, read_here};
use crate::pods::index::TokenNeed;
use crate::pods::volumes::NAMESPACE_KEY;
use crate::route::{token_key, token_secret_name};

#[cfg(test)]
mod tests;

/// How long a token is asked for: what a kubelet asks for as well.
pub(crate) const LIFETIME: SignedDuration = SignedDuration::from_hours(1);

/// A token that we have.
#[derive(Clone)]
pub(crate) struct Token {
    pub(crate) text: String,
    /// When another is asked for.
    pub(crate) renew: Timestamp,
}

impl Token {
    /// A token that holds until `expires`, seen `now`.
    pub(crate) fn new(text: String, now: Timestamp, expires: Timestamp) -> Self {
        // Half of it is left for when something does not work.
        let half = now.duration_until(expires) / 2;
        Self { text, renew: now.checked_add(half).unwrap_or(now) }
    }
}

/// The tokens that we have: by namespace and account, then by audience.
pub(crate) type Held = BTreeMap<Key, BTreeMap<Option<Box<str>>, Token>>;

/// The tokens to ask for now.
pub(crate) fn missing(
    needs: &BTreeMap<Key, TokenNeed>,
    held: &Held,
    now: Timestamp,
) -> Vec<(Key, Option<Box<str>>)> {
    let fresh = |account: &Key, audience: &Option<Box<str>>| {
        held.get(account).and_then(|tokens| tokens.get(audience)).is_some_and(|token| now < token.renew)
    };
    let wanted = needs.iter().flat_map(|(account, need)| {
        need.audiences.iter().map(move |audience| (account.clone(), audience.clone()))
    });
    wanted.filter(|(account, audience)| !fresh(account, audience)).collect()
}

/// The Secret with the tokens of an account, as it is copied to the providers that need it.
pub(crate) fn secret(
    account: &Key,
    need: &TokenNeed,
    tokens: &BTreeMap<Option<Box<str>>, Token>,
) -> Option<(Key, Here)> {
    let namespace = account.namespace()?;
    let bytes = |text: &str| ByteString(text.as_bytes().to_vec());
    let mut data: BTreeMap<String, ByteString> = tokens
        .iter()
        .filter(|(audience, _)| need.audiences.contains(*audience))
        .map(|(audience, token)| (token_key(audience.as_deref()), bytes(&token.text)))
        .collect();
    if data.is_empty() {
        return None;
    }
    data.insert(NAMESPACE_KEY.to_owned(), bytes(namespace));
    let name = token_secret_name(account.name());
    let secret = Secret {
        metadata: ObjectMeta { name: Some(name.clone()), ..ObjectMeta::default() },
        data: Some(data),
        type_: Some("Opaque".to_owned()),
        ..Secret::default()
    };
    let mut here = read_here(secret)?;
    here.only = Some(need.providers.clone());
    Some((Key::namespaced(namespace, &name), here))
}
