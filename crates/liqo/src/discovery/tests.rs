use clap::{ArgMatches, FromArgMatches};
use k8s_openapi::api::core::v1::Service;
use serde_json::{Value, json};

use super::arguments::Family;
use super::place::{Place, place};
use super::*;
use crate::values::{Host, Port};

fn matches(given: &[&str]) -> Result<ArgMatches, clap::Error> {
    let arguments = ["liqo", "discovery"].iter().chain(given);
    let mut matches = crate::command().try_get_matches_from(arguments)?;
    let (_, matches) = matches.remove_subcommand().unwrap();
    Arguments::from_arg_matches(&matches)?;
    Ok(matches)
}

fn parsed(given: &[&str]) -> Arguments {
    Arguments::from_arg_matches(&matches(given).unwrap_or_else(|error| panic!("{error}"))).unwrap()
}

fn service(spec: &Value, balancers: &[&str]) -> Service {
    let ingress: Vec<_> = balancers.iter().map(|ip| json!({ "ip": ip })).collect();
    serde_json::from_value(json!({ "spec": spec, "status": { "loadBalancer": { "ingress": ingress } } }))
        .unwrap()
}

#[test]
fn interfaces_are_chosen_by_name_or_network() {
    let arguments = parsed(&[
        "--mdns-enable-discovery",
        "--mdns-interfaces=eth0,192.168.0.0/16",
        "--mdns-interfaces=fd00::/8",
        "--mdns-exclude-interfaces=docker0",
        "--cluster-networks=10.244.0.0/16,10.96.0.0/12",
        "--mdns-ip-families=ipv6",
    ]);
    let choice = arguments.lan.interfaces();
    let shown: Vec<_> = choice.include.iter().chain(&choice.exclude).map(ToString::to_string).collect();
    assert_eq!(shown, ["eth0", "192.168.0.0/16", "fd00::/8", "docker0"]);
    assert_eq!(choice.pod_networks.len(), 2);
    assert_eq!(arguments.lan.mdns_ip_families, [Family::Ipv6]);
    assert_eq!(parsed(&["--mdns-enable-discovery"]).lan.mdns_ip_families, [Family::Ipv4, Family::Ipv6]);
}

#[test]
fn nonsense_is_refused_in_words_that_help() {
    for (given, says) in [
        (vec![], "nothing is to be done"),
        (vec!["--mdns-enable-discovery", "--mdns-ttl=0"], "a second at least"),
    ] {
        let said = parsed(&given).check().unwrap_err();
        assert!(said.contains(says), "{given:?}: {said}");
    }
    for (given, says) in [
        ("--mdns-interfaces=a name", "expected the name of an interface, such as eth0"),
        ("--mdns-ip-families=ipv5", "[possible values: ipv4, ipv6]"),
        ("--cluster-networks=10.0.0.0", "invalid IP address syntax"),
        ("--mdns-ttl=soon", "expected a duration such as 30s"),
    ] {
        let said = matches(&[given]).map(|_| given).unwrap_err().to_string();
        assert!(said.contains(says), "{given}: {said}");
    }
    assert!(parsed(&["--mdns-enable-advertisement=true"]).check().is_ok());
}

#[test]
fn every_flag_has_a_fallback_in_the_environment() {
    for argument in crate::command().find_subcommand("discovery").unwrap().get_arguments() {
        let name = argument.get_long().unwrap();
        let expected = match name {
            "liqo-namespace" => "POD_NAMESPACE".to_owned(),
            "pod-name" => "POD_NAME".to_owned(),
            "help" => continue,
            _ => format!("LIQO_{}", name.replace('-', "_").to_uppercase()),
        };
        assert_eq!(argument.get_env().unwrap().to_str().unwrap(), expected);
    }
}

#[test]
fn the_port_of_the_nodes_is_advertised_unless_somebody_says_better() {
    let node_port = json!({ "type": "NodePort", "ports": [{ "port": 443, "nodePort": 31520 }] });
    let inside = json!({ "type": "ClusterIP", "ports": [{ "port": 443 }] });
    let (port, address) = (Port(8443), Host("192.0.2.7".to_owned()));
    let (ipv6, name) = (Host("[2001:db8::7]".to_owned()), Host("liqo.example.com".to_owned()));
    let at = |port, addresses: &[&str]| {
        Ok(Place { port, addresses: addresses.iter().map(|text| text.parse().unwrap()).collect() })
    };
    type Case<'a> = (&'a str, Service, Option<&'a Host>, Option<&'a Port>, Result<Place, &'a str>);
    let cases: [Case<'_>; 8] = [
        ("node port", service(&node_port, &[]), None, None, at(31520, &[])),
        ("a balancer besides", service(&node_port, &["192.0.2.9"]), None, None, at(31520, &[])),
        ("a port is forwarded", service(&node_port, &[]), None, Some(&port), at(8443, &[])),
        ("an address is given", service(&node_port, &[]), Some(&address), None, at(443, &["192.0.2.7"])),
        ("both are", service(&inside, &[]), Some(&ipv6), Some(&port), at(8443, &["2001:db8::7"])),
        ("only a balancer", service(&inside, &["192.0.2.9"]), None, None, at(443, &["192.0.2.9"])),
        ("a name", service(&node_port, &[]), Some(&name), Some(&port), at(31520, &[])),
        ("inside only", service(&inside, &[]), None, None, Err("auth.service.type")),
    ];
    for (case, service, address, port, expected) in cases {
        match (place(&service, address, port), expected) {
            (Ok(found), Ok(expected)) => assert_eq!(found, expected, "{case}"),
            (Err(said), Err(says)) => assert!(said.contains(says), "{case}: {said}"),
            (found, expected) => panic!("{case}: {found:?}, expected {expected:?}"),
        }
    }
    assert!(place(&Service::default(), None, None).is_err());
}

#[test]
fn it_may_read_no_secret_and_nothing_beyond_what_it_tells() {
    for rule in rules() {
        assert!(!rule.resources.contains(&"secrets"), "{}", rule.why);
        let of_liqo = rule.groups == ["discovery.liqo.io"] || rule.groups == ["events.k8s.io"];
        assert!(of_liqo || !rule.names.is_empty(), "{}", rule.why);
    }
}
