//! Asking the other cluster who it is, before anything is written down.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, Result, anyhow, bail};
use http::Uri;
use liqo_api::foreign_cluster::MAX_AUTH_CA_BUNDLE;
use liqo_api::names::ClusterId;
use liqo_api::{Fingerprint, ForeignClusterSpec};
use liqo_authentication::PeerIdentity;
use liqo_authentication::client::{Authorities, CaBundle, CallError, Trust, identify};
use liqo_kit::backoff::Backoff;
use tokio::time::Instant;

/// How the other cluster's authentication service is recognised; if nothing is said, a public authority must vouch for it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Recognition {
    pub(crate) fingerprint: Option<Fingerprint>,
    pub(crate) authorities: Option<CaBundle>,
    pub(crate) insecure: bool,
}

impl Recognition {
    /// By this certificate and no other.
    pub(crate) fn by_fingerprint(fingerprint: Fingerprint) -> Self {
        Self { fingerprint: Some(fingerprint), ..Self::default() }
    }

    /// By the certificate that it has now, unless it is known by an authority: that counts also when the certificate is
    /// renewed.
    pub(crate) fn kept(known: Option<&ForeignClusterSpec>, now: Fingerprint) -> Self {
        let vouched = known.filter(|spec| spec.auth_fingerprint.is_none());
        let pem = vouched.and_then(|spec| spec.auth_ca_bundle.as_ref());
        match pem.and_then(|pem| CaBundle::parse(pem.as_bytes()).ok()) {
            Some(authorities) => Self { authorities: Some(authorities), ..Self::default() },
            None => Self::by_fingerprint(now),
        }
    }

    /// How its certificate is to be verified; the order is that of the ForeignCluster.
    pub(crate) fn trust(&self) -> Trust {
        match (self.fingerprint, &self.authorities) {
            (Some(fingerprint), _) => Trust::Fingerprint(fingerprint),
            (None, Some(authorities)) => Trust::Bundle(authorities.clone()),
            (None, None) if self.insecure => Trust::Anyone,
            (None, None) => Trust::Authorities(Authorities::default()),
        }
    }
}

/// What belongs into the file with authorities.
const CA_FILE: &str = "--ca-file takes, in PEM, the certificate of the authority that signed that of the other cluster's \
                       authentication service, such as ca.crt of the Secret that cert-manager keeps there";

/// The authorities in a file.
pub(crate) fn read_authorities(file: &Path) -> Result<CaBundle> {
    let name = file.display();
    let text = std::fs::read(file).with_context(|| {
        format!("cannot read the authorities from {name}. Nothing was changed. {CA_FILE}")
    })?;
    let authorities = CaBundle::parse(&text).map_err(|error| {
        anyhow!("{name} does not hold authorities: {error}. Nothing was changed. {CA_FILE}")
    })?;
    let length = authorities.to_pem().len();
    if length > MAX_AUTH_CA_BUNDLE {
        bail!(
            "the authorities in {name} are too many: {length} bytes, and at most {MAX_AUTH_CA_BUNDLE} are kept. Nothing \
             was changed. Give only the one that signs for that cluster"
        );
    }
    Ok(authorities)
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
            answer => break answer.map_err(|error| anyhow!(explain(&error)))?,
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
            "Give the fingerprint that liqoctl generate-add-command prints there (--fingerprint sha256:…), or the \
             authority that signed its certificate (--ca-file FILE); if that was given, somebody else answers there, or \
             the certificate was replaced: run that command again, or ask there for the authority"
        }
        CallError::Bundle(_) => CA_FILE,
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
