//! How many objects of each kind a namespace of a consumer may have.
//!
//! Without an end to them, a consumer could fill the API server's store, which all share. They are in a quota apart from the
//! contract's, so that making pods does not wait for it, and so that they hold where a contract is soft.

use std::collections::BTreeMap;

/// ResourceQuota with these limits, in each namespace that a provider hosts.
pub(crate) const OBJECT_QUOTA: &str = "liqo-objects";

/// Twice as many as the largest namespace that tests have.
const CONFIG_MAPS: u32 = 10_000;
/// Keys, passwords and tokens: larger namespaces have some hundreds.
const SECRETS: u32 = 5_000;
/// Each takes an address of the provider's Services, of which a small cluster has 4,096 (a `/20`).
const SERVICES: u32 = 1_000;
/// Ten for each Service; one has a hundred addresses.
const ENDPOINT_SLICES: u32 = 10_000;
/// Each may be a disk; a node takes a few dozen of them.
const CLAIMS: u32 = 1_000;
/// One for each Service.
const INGRESSES: u32 = 1_000;

/// How many objects of each kind a namespace of a consumer may have, by the name that a quota has for them.
///
/// ShadowPods are not among them: Kubernetes counts kinds of others only minutes after they were defined, and refuses them
/// until then.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits(BTreeMap<&'static str, u32>);

impl Default for Limits {
    fn default() -> Self {
        Self(BTreeMap::from([
            ("count/configmaps", CONFIG_MAPS),
            ("count/secrets", SECRETS),
            ("count/services", SERVICES),
            ("count/endpointslices.discovery.k8s.io", ENDPOINT_SLICES),
            ("count/persistentvolumeclaims", CLAIMS),
            ("count/ingresses.networking.k8s.io", INGRESSES),
        ]))
    }
}

impl Limits {
    /// The same, with another limit for one of the kinds.
    #[must_use]
    pub fn with(mut self, kind: &str, most: u32) -> Self {
        for (name, limit) in &mut self.0 {
            if *name == kind {
                *limit = most;
            }
        }
        self
    }

    /// As a quota says it.
    pub(crate) fn hard(&self) -> BTreeMap<String, String> {
        self.0.iter().map(|(name, most)| ((*name).to_owned(), most.to_string())).collect()
    }
}
