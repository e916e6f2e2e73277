//! Addresses, networks and URLs.

use schemars::{Schema, SchemaGenerator};
use serde_json::Value;

use super::{
    limits::{
        MAX_ADDRESS, MAX_BACKEND_SETTING, MAX_BACKEND_SETTINGS, MAX_INTERFACE_NAME, MAX_SUBDOMAIN, MAX_URL,
    },
    map, rule, text,
};

/// What stands in the place of a network that is not remapped.
pub(crate) const NOT_REMAPPED: &str = "None";

const PORT: &str = "[1-9][0-9]{0,3}|[1-5][0-9]{4}|6[0-4][0-9]{3}|65[0-4][0-9]{2}|655[0-2][0-9]|6553[0-5]";
const OCTET: &str = "(25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])";
const HOST_LABEL: &str = "[a-zA-Z0-9]([-a-zA-Z0-9]*[a-zA-Z0-9])?";

/// The URL of a peer's authentication service.
pub(crate) fn https_url(_: &mut SchemaGenerator) -> Schema {
    url(
        "https",
        "must be an https URL such as https://203.0.113.7:31520: a host, optionally a port and a path",
    )
}

/// The URL of a proxy.
pub(crate) fn proxy_url(_: &mut SchemaGenerator) -> Schema {
    url(
        "https?",
        "must be an http or https URL such as http://203.0.113.7:8118: a host, optionally a port and a path",
    )
}

/// A URL without user, query and fragment, whose host is a DNS name or an IP address.
///
/// The parts that CEL's url() gives count as texts of unbounded length in the server's estimate of the costs, so they
/// are not used.
fn url(scheme: &str, message: &str) -> Schema {
    let host = format!("(\\\\[[0-9a-fA-F:.]+\\\\]|{HOST_LABEL}([.]{HOST_LABEL})*)");
    let shape = format!(
        "self.matches('^{scheme}://{host}(:({PORT}))?(/[-A-Za-z0-9._~/%+:,;=&$!*()]*)?$') && isURL(self)"
    );
    let ipv6 = "(!self.contains('[') || isIP(self.substring(self.indexOf('[') + 1, self.indexOf(']'))))";
    let ipv4 = format!(
        "(!self.matches('^{scheme}://[0-9.]+(:|/|$)') || self.matches('^{scheme}://({OCTET}[.]){{3}}{OCTET}(:|/|$)'))"
    );
    text(MAX_URL, [rule(format!("{shape} && {ipv6} && {ipv4}"), message)])
}

/// A network of pods.
pub(crate) fn cidr(_: &mut SchemaGenerator) -> Schema {
    text(MAX_ADDRESS, cidr_rules("true", "must be a network in CIDR notation, such as 10.244.0.0/16"))
}

/// A network of pods, or the word for "not remapped".
pub(crate) fn cidr_or_none(_: &mut SchemaGenerator) -> Schema {
    let message = "must be \"None\" (not remapped) or a network in CIDR notation, such as 10.244.0.0/16";
    text(MAX_ADDRESS, cidr_rules(&format!("self != '{NOT_REMAPPED}'"), message))
}

/// The rules for a network, which apply if `condition` holds.
///
/// The last one keeps a peer from claiming 0.0.0.0/0 and so every route of ours.
fn cidr_rules(condition: &str, not_a_cidr: &str) -> Vec<Value> {
    let (unless, and) = if condition == "true" {
        (String::new(), String::new())
    } else {
        (format!("!({condition}) || "), format!("{condition} && "))
    };
    vec![
        rule(format!("{unless}isCIDR(self)"), not_a_cidr),
        rule(
            format!("!({and}isCIDR(self)) || cidr(self) == cidr(self).masked()"),
            "must be the network itself, with no bits set behind the prefix: 10.244.0.0/16, not 10.244.3.7/16",
        ),
        rule(
            format!(
                "!({and}isCIDR(self)) || (cidr(self).prefixLength() >= 8 && cidr(self).ip().isGlobalUnicast())"
            ),
            "must be a unicast network of /8 or smaller, and not loopback or link-local",
        ),
    ]
}

/// An IP address.
pub(crate) fn ip(_: &mut SchemaGenerator) -> Schema {
    text(MAX_ADDRESS, [rule("isIP(self)", "must be an IP address, such as 203.0.113.7 or 2001:db8::7")])
}

/// Where a peer's gateway can be reached: an address, or a DNS name as some load balancers have.
pub(crate) fn endpoint(_: &mut SchemaGenerator) -> Schema {
    let address = "!ip(self).isUnspecified() && !ip(self).isLoopback()";
    let name = format!("self.matches('^{HOST_LABEL}([.]{HOST_LABEL})*$') && !self.matches('^[0-9.]+$')");
    let message = "must be an IP address or DNS name at which the gateway can be reached from elsewhere";
    text(MAX_SUBDOMAIN, [rule(format!("isIP(self) ? ({address}) : ({name})"), message)])
}

/// What one must know of a WireGuard gateway. The only backend there is, so the rules need not ask which one it is.
pub(crate) fn wireguard_settings(_: &mut SchemaGenerator) -> Schema {
    let key = rule(
        "'publicKey' in self && self['publicKey'].matches('^[A-Za-z0-9+/]{42}[AEIMQUYcgkosw048]=$')",
        "the wireguard backend needs publicKey, a WireGuard public key: 32 bytes in base64, 44 characters",
    );
    let port = rule(
        format!("'port' in self && self['port'].matches('^({PORT})$')"),
        "the wireguard backend needs port, a UDP port as text: \"1\" to \"65535\"",
    );
    map(MAX_BACKEND_SETTINGS, text(MAX_BACKEND_SETTING, []), [key, port])
}

/// What a tunnel's backend reports.
pub(crate) fn backend_report(_: &mut SchemaGenerator) -> Schema {
    map(MAX_BACKEND_SETTINGS, text(MAX_BACKEND_SETTING, []), [])
}

/// The name of a network interface.
pub(crate) fn interface_name(_: &mut SchemaGenerator) -> Schema {
    text(MAX_INTERFACE_NAME, [])
}
