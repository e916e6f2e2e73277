//! Whether the way to an API server leads through a proxy.

use std::net::IpAddr;

use clap::Args;
use http::Uri;
use ipnet::IpNet;

/// What the environment says of proxies, in both spellings that are in use.
#[derive(Debug, Clone, Default, Args)]
pub(super) struct Variables {
    #[arg(id = "env-https-proxy", long = "env-https-proxy", env = "HTTPS_PROXY", hide = true)]
    https: Option<String>,
    #[arg(id = "env-https-proxy-lower", long = "env-https-proxy-lower", env = "https_proxy", hide = true)]
    https_lower: Option<String>,
    #[arg(id = "env-no-proxy", long = "env-no-proxy", env = "NO_PROXY", hide = true)]
    exceptions: Option<String>,
    #[arg(id = "env-no-proxy-lower", long = "env-no-proxy-lower", env = "no_proxy", hide = true)]
    exceptions_lower: Option<String>,
}

impl Variables {
    /// The proxy for `server`: one that the kubeconfig names always, one of the environment unless excepted.
    pub(super) fn choose(&self, found: Option<Uri>, server: &Uri) -> Option<Uri> {
        let found = found?;
        let ours = self
            .https
            .iter()
            .chain(&self.https_lower)
            .any(|text| text.parse::<Uri>().ok().as_ref() == Some(&found));
        let exceptions = self.exceptions.iter().chain(&self.exceptions_lower);
        let excepted = exceptions.flat_map(|list| list.split(',')).any(|rule| excepts(rule.trim(), server));
        (!(ours && excepted)).then_some(found)
    }
}

/// Whether a rule of `NO_PROXY` is about this server: `*`, a host, a domain, an address, a network; with a port or not.
fn excepts(rule: &str, server: &Uri) -> bool {
    let Some(host) = server.host().map(|host| host.trim_matches(['[', ']']).to_lowercase()) else {
        return false;
    };
    let rule = rule.to_lowercase();
    if rule == "*" {
        return true;
    }
    if let Ok(address) = host.parse::<IpAddr>() {
        let network = rule.parse::<IpNet>().ok().or_else(|| rule.parse::<IpAddr>().ok().map(IpNet::from));
        if let Some(network) = network {
            return network.contains(&address);
        }
    }
    let (name, port) = match rule.rsplit_once(':') {
        Some((name, port)) if port.parse::<u16>().is_ok() => (name, port.parse().ok()),
        _ => (rule.as_str(), None),
    };
    if port.is_some() && port != Some(server.port_u16().unwrap_or(443)) {
        return false;
    }
    let name = name.trim_start_matches("*").trim_matches(['[', ']']);
    let domain = name.trim_start_matches('.');
    !domain.is_empty() && ((name == domain && host == domain) || host.ends_with(&format!(".{domain}")))
}

#[cfg(test)]
mod tests;
