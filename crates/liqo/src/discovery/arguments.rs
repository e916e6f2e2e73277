//! The flags. Where Liqo's discovery has one, the name and the default are its.

use std::time::Duration;

use clap::{ArgAction, Args, ValueEnum};
use ipnet::IpNet;
use liqo_api::names::NamespaceName;
use liqo_discovery::{InterfaceChoice, InterfaceRule};

use crate::process::Process;
use crate::values::{Host, Maybe, Port, Span, parse_bool};

/// Arguments of `liqo discovery`.
///
/// A flag that is given twice counts as given last, unless it is a list.
#[derive(Debug, Args)]
#[command(args_override_self = true)]
pub struct Arguments {
    /// The namespace that Liqo is installed in
    #[arg(long, env = "POD_NAMESPACE", default_value = "liqo", value_name = "NAMESPACE")]
    pub(super) liqo_namespace: NamespaceName,

    #[command(flatten)]
    pub(super) lan: Lan,
    #[command(flatten)]
    pub(super) process: Process,
}

/// What to do on the local network.
#[derive(Debug, Args)]
#[command(next_help_heading = "Local network")]
pub(super) struct Lan {
    /// Look for clusters
    #[arg(long, env = "LIQO_MDNS_ENABLE_DISCOVERY", default_value = "false", default_missing_value = "true", num_args = 0..=1, require_equals = true, value_parser = parse_bool, action = ArgAction::Set, value_name = "BOOL")]
    pub(super) mdns_enable_discovery: bool,

    /// Let other clusters find this one
    #[arg(long, env = "LIQO_MDNS_ENABLE_ADVERTISEMENT", default_value = "false", default_missing_value = "true", num_args = 0..=1, require_equals = true, value_parser = parse_bool, action = ArgAction::Set, value_name = "BOOL")]
    pub(super) mdns_enable_advertisement: bool,

    /// For how long others remember this cluster without hearing of it
    #[arg(long, env = "LIQO_MDNS_TTL", default_value = "90s", value_name = "DURATION")]
    pub(super) mdns_ttl: Span,

    /// Speak on these interfaces alone: names such as eth0, or networks such as 192.168.0.0/16 [default: all that can
    /// multicast and are not the pods']
    #[arg(long, env = "LIQO_MDNS_INTERFACES", value_delimiter = ',', value_name = "LIST")]
    pub(super) mdns_interfaces: Vec<InterfaceRule>,

    /// Do not speak on these interfaces, whatever else says so
    #[arg(long, env = "LIQO_MDNS_EXCLUDE_INTERFACES", value_delimiter = ',', value_name = "LIST")]
    pub(super) mdns_exclude_interfaces: Vec<InterfaceRule>,

    /// In which versions of IP to speak
    #[arg(
        long,
        env = "LIQO_MDNS_IP_FAMILIES",
        value_enum,
        value_delimiter = ',',
        default_value = "ipv4,ipv6",
        value_name = "LIST"
    )]
    pub(super) mdns_ip_families: Vec<Family>,

    /// The networks of this cluster's pods and Services: not spoken from, and nobody there is asked who it is
    #[arg(long, env = "LIQO_CLUSTER_NETWORKS", value_delimiter = ',', value_name = "LIST")]
    pub(super) cluster_networks: Vec<IpNet>,

    /// The address at which others reach the authentication service; a name is left to those who are far away [default:
    /// each interface's own]
    #[arg(
        long,
        env = "LIQO_AUTH_SERVICE_ADDRESS_OVERRIDE",
        default_value = "",
        hide_default_value = true,
        value_name = "HOST"
    )]
    pub(super) auth_service_address_override: Maybe<Host>,

    /// The port at which others reach it [default: the Service's port on the nodes]
    #[arg(
        long,
        env = "LIQO_AUTH_SERVICE_PORT_OVERRIDE",
        default_value = "",
        hide_default_value = true,
        value_name = "PORT"
    )]
    pub(super) auth_service_port_override: Maybe<Port>,
}

/// A version of IP.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Family {
    /// IPv4.
    Ipv4,
    /// IPv6.
    Ipv6,
}

/// Others hear of us twice in this time, so shorter ones would be a storm.
const SHORTEST_TTL: Duration = Duration::from_secs(1);

impl Arguments {
    /// Whether the flags make sense together; the error says which do not.
    pub(crate) fn check(&self) -> Result<(), String> {
        let Lan { mdns_enable_discovery, mdns_enable_advertisement, mdns_ttl, mdns_ip_families, .. } =
            &self.lan;
        if !mdns_enable_discovery && !mdns_enable_advertisement {
            return Err(
                "nothing is to be done: give --mdns-enable-discovery, --mdns-enable-advertisement, or both"
                    .to_owned(),
            );
        }
        if mdns_ttl.0 < SHORTEST_TTL {
            return Err("--mdns-ttl must be a second at least".to_owned());
        }
        if mdns_ip_families.is_empty() {
            return Err("--mdns-ip-families must name one at least: ipv4, ipv6".to_owned());
        }
        Ok(())
    }

    /// Sets up logging, unless its filter is nonsense.
    pub(crate) fn start_logging(&self) -> Result<(), String> {
        self.process.start_logging()
    }
}

impl Lan {
    pub(super) fn interfaces(&self) -> InterfaceChoice {
        InterfaceChoice {
            include: self.mdns_interfaces.clone(),
            exclude: self.mdns_exclude_interfaces.clone(),
            pod_networks: self.cluster_networks.clone(),
        }
    }
}
