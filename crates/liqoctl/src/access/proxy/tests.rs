use super::*;

fn uri(text: &str) -> Uri {
    text.parse().unwrap()
}

#[test]
fn exceptions_are_hosts_domains_addresses_and_networks() {
    for (rule, server, excepted) in [
        ("*", "https://api.example.com", true),
        ("api.example.com", "https://api.example.com:6443", true),
        ("example.com", "https://api.example.com", true),
        (".example.com", "https://api.example.com", true),
        (".example.com", "https://example.com", false),
        ("*.example.com", "https://api.example.com", true),
        ("ample.com", "https://example.com", false),
        ("API.example.com", "https://api.example.com", true),
        ("api.example.com:6443", "https://api.example.com:6443", true),
        ("api.example.com:443", "https://api.example.com:6443", false),
        ("api.example.com:443", "https://api.example.com", true),
        ("10.0.0.1", "https://10.0.0.1:6443", true),
        ("10.0.0.1:6443", "https://10.0.0.1:6443", true),
        ("10.0.0.0/8", "https://10.1.2.3", true),
        ("10.0.0.0/8", "https://11.1.2.3", false),
        ("fd00::/8", "https://[fd00::1]:6443", true),
        ("", "https://example.com", false),
    ] {
        assert_eq!(excepts(rule, &uri(server)), excepted, "{rule:?} {server}");
    }
}

#[test]
fn the_kubeconfig_s_own_proxy_knows_no_exceptions() {
    let variables = Variables {
        https: Some("http://corporate:3128".into()),
        exceptions: Some("localhost, 10.0.0.0/8".into()),
        ..Variables::default()
    };
    let server = uri("https://10.0.0.1:6443");
    assert_eq!(variables.choose(Some(uri("http://corporate:3128")), &server), None);
    assert_eq!(variables.choose(Some(uri("http://own:8118")), &server), Some(uri("http://own:8118")));
    let outside = uri("https://example.com");
    assert_eq!(
        variables.choose(Some(uri("http://corporate:3128")), &outside),
        Some(uri("http://corporate:3128"))
    );
}
