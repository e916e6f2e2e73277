//! Addresses of one side as the other side sees them.

/// How addresses of pods are seen from the other side. As long as no network joins the clusters, as they are.
pub trait Translate: Send + Sync {
    /// The address under which a pod of `provider` is reached from home; `None` if it cannot be.
    fn to_home(&self, provider: &str, address: &str) -> Option<String>;

    /// The address under which an endpoint of home is reached from `provider`; `None` if it cannot be.
    fn to_provider(&self, provider: &str, address: &str) -> Option<String>;
}

/// Addresses are the same on both sides.
#[derive(Clone, Copy, Debug, Default)]
pub struct Unchanged;

impl Translate for Unchanged {
    fn to_home(&self, _: &str, address: &str) -> Option<String> {
        Some(address.to_owned())
    }

    fn to_provider(&self, _: &str, address: &str) -> Option<String> {
        Some(address.to_owned())
    }
}
