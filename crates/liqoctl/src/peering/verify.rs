//! Asking the other cluster who it is, before anything is written down.

use std::time::Duration;

use anyhow::{Result, bail};
use http::Uri;
use liqo_api::Fingerprint;
use liqo_api::names::ClusterId;
use liqo_authentication::PeerIdentity;
use liqo_authentication::client::{Authorities, CallError, Trust, identify};
use liqo_kit::backoff::Backoff;
use tokio::time::Instant;

/// How the other cluster's certificate is to be verified.
pub(crate) fn trust(fingerprint: Option<Fingerprint>, insecure: bool) -> Trust {
    match fingerprint {
        Some(fingerprint) => Trust::Fingerprint(fingerprint),
        None if insecure => Trust::Anyone,
        None => Trust::Authorities(Authorities::default()),
    }
}

/// For how long one that does not answer is asked again: a Service that was just made takes a moment until all nodes know it.
const PATIENCE: Duration = Duration::from_secs(3);

/// Who answers there, if it is the one that is meant.
pub(crate) async fn verify(url: &str, trust: &Trust, expected: &ClusterId) -> Result<PeerIdentity> {
    let asked = Instant::now();
    let mut backoff = Backoff::default();
    let found = loop {
        match identify(url, trust).await {
            Err(CallError::Unreachable { .. } | CallError::Busy { .. }) if asked.elapsed() < PATIENCE => {
                tokio::time::sleep(backoff.next_delay()).await;
            }
            answer => break answer.map_err(|error| anyhow::anyhow!(explain(&error)))?,
        }
    };
    check(&found, url, expected)?;
    Ok(found)
}

/// Whether it is the one that is meant.
pub(crate) fn check(found: &PeerIdentity, url: &str, expected: &ClusterId) -> Result<()> {
    if found.identity.id != *expected {
        bail!(
            "another cluster answers at {url}: expected the ID {expected}, but it is {} (named {}). Nothing was \
             changed. Run liqoctl generate-add-command at the cluster that is meant, and use what it prints",
            found.identity.id,
            found.identity.name
        );
    }
    Ok(())
}

/// What went wrong and what to do about it.
pub(crate) fn explain(error: &CallError) -> String {
    let next = match error {
        CallError::Url { .. } => "Give it like --auth-url https://203.0.113.7:31520",
        CallError::Unreachable { .. } => {
            "Check the address and firewalls in between. If only the cluster can reach it, not this machine, say \
             --no-check"
        }
        CallError::Untrusted { .. } => {
            "Give the fingerprint that liqoctl generate-add-command prints there (--fingerprint sha256:…); if it was \
             given, somebody else answers there, or the certificate was replaced: run that command again"
        }
        CallError::Busy { .. } => "Try again in a moment",
        CallError::Refused { .. } | CallError::Nonsense { .. } => {
            "Check that --auth-url is that of an authentication service: liqoctl generate-add-command prints it there"
        }
        CallError::NoKey { .. } => "Check this machine",
    };
    format!("{error}. Nothing was changed. {next}")
}

/// The URL of an authentication service, as the flags take it.
pub(crate) fn parse_url(text: &str) -> Result<String, String> {
    let wrong = |why: &str| Err(format!("{why}; expected an https URL such as https://203.0.113.7:31520"));
    let Ok(uri) = text.parse::<Uri>() else { return wrong("it is no URL") };
    if uri.scheme_str() != Some("https") {
        return wrong("it does not begin with https://");
    }
    match uri.authority() {
        None => return wrong("it has no host"),
        Some(authority) if authority.as_str().contains('@') => return wrong("it has a user"),
        Some(authority) if authority.host().is_empty() => return wrong("it has no host"),
        Some(_) => {}
    }
    if uri.query().is_some() || text.contains('#') {
        return wrong("it has more than a host, a port and a path");
    }
    Ok(text.trim_end_matches('/').to_owned())
}

#[cfg(test)]
mod tests;
