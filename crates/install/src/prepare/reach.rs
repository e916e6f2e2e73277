//! Tries whether the API server answers at the address that peers will be told.

use std::time::Duration;

use kube::Client;

use crate::target::Target;
use crate::trouble;
use crate::values::Settings;

/// A peer would not wait longer either.
const PATIENCE: Duration = Duration::from_secs(3);

/// Why it does not answer there; `None` if it does, or if that is where we talk to it anyway.
pub(super) async fn unreachable(target: &Target, settings: &Settings, skip: bool) -> Option<String> {
    let address = settings.api_server.as_deref()?;
    if skip || same(address, &target.server) {
        return None;
    }
    let mut config = target.config.clone();
    config.cluster_url = address.parse().ok()?;
    config.tls_server_name = None;
    // Only whether somebody with the cluster's certificate is there; nothing of ours is shown to whoever it is.
    config.auth_info = kube::config::AuthInfo::default();
    config.connect_timeout = Some(PATIENCE);
    let client = match Client::try_from(config) {
        Ok(client) => client,
        Err(error) => return Some(trouble::text(&error)),
    };
    match tokio::time::timeout(PATIENCE, client.apiserver_version()).await {
        // Whoever refuses us is there.
        Ok(Ok(_) | Err(kube::Error::Api(_))) => None,
        Ok(Err(error)) => Some(trouble::text(&error)),
        Err(_) => Some(format!("no answer within {} s", PATIENCE.as_secs())),
    }
}

fn same(a: &str, b: &str) -> bool {
    a.trim_end_matches('/') == b.trim_end_matches('/')
}
