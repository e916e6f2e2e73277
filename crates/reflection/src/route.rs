//! From where to where something is reflected, and what follows from that.

use std::collections::BTreeMap;

use liqo_api::{annotations, labels};
use serde::Serialize;
use sha2::{Digest, Sha256};

/// How many characters of the home cluster's ID are in the name of its certificate authority at providers, as in Liqo.
const ID_DIGITS: usize = 5;
/// The ConfigMap with a cluster's certificate authority, which Kubernetes makes in each namespace.
pub(crate) const ROOT_CA: &str = "kube-root-ca.crt";
/// How the names of Secrets with tokens begin.
pub(crate) const TOKEN_PREFIX: &str = "liqo-token-";
/// Hex digits of a digest that are kept.
const DIGITS: usize = 32;
/// What kubectl notes for itself: large, and of no use elsewhere.
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// From where to where something is reflected.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Route<'a> {
    /// The ID of this cluster.
    pub(crate) home: &'a str,
    /// The ID of the provider.
    pub(crate) provider: &'a str,
    /// The namespace at home.
    pub(crate) namespace: &'a str,
    /// The namespace at the provider.
    pub(crate) remote: &'a str,
    /// The storage class there that stands for ours.
    pub(crate) storage_class: Option<&'a str>,
}

impl Route<'_> {
    /// The labels that an object has at the provider: its own, and where it comes from.
    pub(crate) fn labels(&self, own: Option<&BTreeMap<String, String>>) -> BTreeMap<String, String> {
        let mut all: BTreeMap<_, _> = own.cloned().unwrap_or_default();
        all.retain(|key, _| !is_ours(key));
        all.insert(labels::REFLECTION_ORIGIN.to_owned(), self.home.to_owned());
        all.insert(labels::REFLECTION_DESTINATION.to_owned(), self.provider.to_owned());
        all
    }
}

/// Whether this label says how we treat the object here; at the provider it would say that about the copy.
fn is_ours(key: &str) -> bool {
    [
        labels::SHADOW_POD,
        labels::MANAGED_BY,
        labels::FENCED,
        labels::POOL,
        labels::REFLECTION_ORIGIN,
        labels::REFLECTION_DESTINATION,
    ]
    .contains(&key)
}

/// The annotations that an object has at the provider.
pub(crate) fn annotations(own: Option<&BTreeMap<String, String>>) -> BTreeMap<String, String> {
    let mut all = own.cloned().unwrap_or_default();
    all.retain(|key, _| {
        key != LAST_APPLIED && key != annotations::SKIP_REFLECTION && key != annotations::CONTENT
    });
    all
}

/// The name that a ConfigMap of home has at providers: they have a `kube-root-ca.crt` of their own.
pub(crate) fn config_map_name(name: &str, home: &str) -> String {
    if name == ROOT_CA { root_ca_name(home) } else { name.to_owned() }
}

/// The name of home's certificate authority at providers.
pub(crate) fn root_ca_name(home: &str) -> String {
    // Names end with a letter or a digit.
    format!("{ROOT_CA}.{}", home.get(..ID_DIGITS).unwrap_or(home).trim_end_matches('-'))
}

/// The name of the Secret at providers that has the tokens of this service account.
pub(crate) fn token_secret_name(account: &str) -> String {
    format!("{TOKEN_PREFIX}{account}")
}

/// Whether a Secret of this name is one with tokens.
pub(crate) fn is_token_secret(name: &str) -> bool {
    name.starts_with(TOKEN_PREFIX)
}

/// The key of that Secret with the token for this audience; none is the API server itself.
pub(crate) fn token_key(audience: Option<&str>) -> String {
    match audience {
        None | Some("") => "token".to_owned(),
        Some(audience) => {
            let mut digest = digest(&audience);
            digest.truncate(10);
            format!("token-{digest}")
        }
    }
}

/// A digest of anything, the same in every process and version.
pub(crate) fn digest(what: &impl Serialize) -> String {
    // What is digested here is made of texts, numbers and maps with texts as keys, which can always be written down.
    digest_of(&serde_json::to_vec(what).unwrap_or_default())
}

/// A digest of these bytes.
pub(crate) fn digest_of(bytes: &[u8]) -> String {
    let digest = Sha256::digest(bytes);
    digest.iter().take(DIGITS / 2).map(|byte| format!("{byte:02x}")).collect()
}
