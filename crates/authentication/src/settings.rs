//! What the room must be told.

use std::time::Duration;

use liqo_api::names::NamespaceName;

use crate::{Clock, Limits};

/// A year, as in Liqo.
const CERTIFICATE_LIFETIME: Duration = Duration::from_secs(365 * 24 * 3600);
/// Calls to other clusters at once.
const CALLS: usize = 16;

/// What the room must be told.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The namespace that Liqo is installed in.
    pub namespace: NamespaceName,
    /// The pod that this is.
    pub pod: String,
    /// Where peers reach our API server: a URL, or a host with or without a port. If not said, the ConfigMap `liqo-network`
    /// counts, and after that the address of a control-plane node.
    pub api_server: Option<String>,
    /// Whether the public authorities vouch for our API server, so that peers need not be told its own.
    pub public_api_server: bool,
    /// Whether clusters that are not known yet need a token to come in; else they need only prove that they have a key.
    pub tokens_required: bool,
    /// Whether clusters that are found are to be borrowed from without anybody saying so; else they are only known.
    pub autojoin: bool,
    /// How long the certificates of peers are valid; Kubernetes allows no less than ten minutes, and may shorten it.
    pub certificate_lifetime: Duration,
    /// The limits of the service.
    pub limits: Limits,
    /// Calls to other clusters at once.
    pub calls: usize,
    /// The clock.
    pub clock: Clock,
}

impl Settings {
    /// The usual settings.
    pub fn new(namespace: NamespaceName, pod: impl Into<String>) -> Self {
        Self {
            namespace,
            pod: pod.into(),
            api_server: None,
            public_api_server: false,
            tokens_required: true,
            autojoin: true,
            certificate_lifetime: CERTIFICATE_LIFETIME,
            limits: Limits::default(),
            calls: CALLS,
            clock: Clock::system(),
        }
    }
}
