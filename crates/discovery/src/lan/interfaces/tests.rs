use super::*;

fn interface(name: &str, networks: &[&str]) -> Interface {
    let networks = networks.iter().map(|network| network.parse().unwrap()).collect();
    Interface { name: name.to_owned(), index: 1, speaks: true, networks }
}

fn machine() -> Vec<Interface> {
    vec![
        Interface { speaks: false, ..interface("lo", &["127.0.0.1/8", "::1/128"]) },
        interface("eth0", &["192.168.1.7/24", "fd00::7/64", "fe80::7/64"]),
        interface("eth1", &["10.1.0.7/16"]),
        interface("cni0", &["10.244.0.1/24", "fe80::1/64"]),
        interface("veth12", &["fe80::2/64"]),
        Interface { speaks: false, ..interface("eth9", &["192.168.9.7/24"]) },
    ]
}

fn rules(texts: &[&str]) -> Vec<InterfaceRule> {
    texts.iter().map(|text| text.parse().unwrap()).collect()
}

fn chosen(include: &[&str], exclude: &[&str]) -> Vec<String> {
    let choice = InterfaceChoice {
        include: rules(include),
        exclude: rules(exclude),
        pod_networks: vec!["10.244.0.0/16".parse().unwrap()],
    };
    let text =
        |addresses: Vec<IpAddr>| addresses.iter().map(ToString::to_string).collect::<Vec<_>>().join(",");
    let chosen = choose(machine(), &choice).into_iter();
    chosen.map(|(interface, addresses)| format!("{} {}", interface.name, text(addresses))).collect()
}

#[test]
fn by_default_interfaces_speak_that_others_can_reach() {
    assert_eq!(chosen(&[], &[]), ["eth0 192.168.1.7,fd00::7", "eth1 10.1.0.7"]);
}

#[test]
fn interfaces_are_included_and_excluded_by_name_and_network() {
    assert_eq!(chosen(&["eth1"], &[]), ["eth1 10.1.0.7"]);
    assert_eq!(chosen(&["192.168.0.0/16"], &[]), ["eth0 192.168.1.7"]);
    assert_eq!(chosen(&["10.1.0.7"], &[]), ["eth1 10.1.0.7"]);
    assert_eq!(chosen(&[], &["eth0"]), ["eth1 10.1.0.7"]);
    assert_eq!(chosen(&[], &["fd00::/8", "10.0.0.0/8"]), ["eth0 192.168.1.7"]);
    assert_eq!(chosen(&["eth0", "eth1"], &["eth0"]), ["eth1 10.1.0.7"]);
    assert_eq!(chosen(&["cni0", "lo", "veth12", "eth9"], &[]), [""; 0]);
}

#[test]
fn of_hundreds_of_interfaces_a_few_are_used() {
    let many = (0..500).map(|index| interface(&format!("eth{index}"), &["10.0.0.1/8"])).collect();
    assert_eq!(choose(many, &InterfaceChoice::default()).len(), MAX_INTERFACES);
}

#[test]
fn a_rule_is_a_name_an_address_or_a_network() {
    assert_eq!("10.1.2.3/8".parse(), Ok(InterfaceRule::Network("10.0.0.0/8".parse().unwrap())));
    assert_eq!("fd00::1".parse(), Ok(InterfaceRule::Network("fd00::1/128".parse().unwrap())));
    assert_eq!("eth0.7".parse(), Ok(InterfaceRule::Name("eth0.7".to_owned())));
    for text in ["", "a name", "eth0/24", "eth0,eth1", "an-interface-name-too-long", "eth\n"] {
        assert_eq!(text.parse::<InterfaceRule>(), Err(InvalidRule), "{text:?}");
    }
}

#[test]
fn only_senders_of_the_same_network_are_near() {
    let interface = interface("eth0", &["192.168.1.7/24", "fd00::7/64"]);
    for (address, near) in [
        ("192.168.1.200", true),
        ("192.168.2.1", false),
        ("fd00::1", true),
        ("fd01::1", false),
        ("fe80::1234", true),
        ("8.8.8.8", false),
    ] {
        assert_eq!(interface.is_near(address.parse().unwrap()), near, "{address}");
    }
}

#[test]
fn this_machine_has_a_loopback_that_does_not_speak() {
    let all = read().unwrap();
    let loopback = all.iter().find(|interface| interface.name == "lo").expect("a loopback");
    assert!(!loopback.speaks && loopback.networks.contains(&"127.0.0.1/8".parse().unwrap()), "{all:?}");
}
