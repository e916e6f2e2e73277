use serde_json::json;

use super::*;

#[expect(clippy::needless_pass_by_value, reason = "json! makes values")]
fn node(name: &str, labels: serde_json::Value, addresses: &[(&str, &str)]) -> Node {
    let addresses: Vec<_> =
        addresses.iter().map(|(kind, text)| json!({ "type": kind, "address": text })).collect();
    serde_json::from_value(json!({
        "metadata": { "name": name, "labels": labels }, "status": { "addresses": addresses },
    }))
    .unwrap()
}

#[expect(clippy::needless_pass_by_value, reason = "json! makes values")]
fn service(kind: &str, ingress: serde_json::Value) -> Service {
    serde_json::from_value(json!({
        "metadata": { "name": "liqo-auth" },
        "spec": { "type": kind, "ports": [{ "port": 443, "nodePort": 31520 }] },
        "status": { "loadBalancer": { "ingress": ingress } },
    }))
    .unwrap()
}

#[test]
fn what_someone_configured_is_completed() {
    let cases = [
        ("203.0.113.7", "https://203.0.113.7:6443"),
        ("203.0.113.7:443", "https://203.0.113.7:443"),
        ("api.example.com", "https://api.example.com:6443"),
        ("[2001:db8::7]", "https://[2001:db8::7]:6443"),
        ("https://api.example.com", "https://api.example.com"),
        (" https://api.example.com/k8s/ ", "https://api.example.com/k8s"),
    ];
    for (setting, url) in cases {
        assert_eq!(api_server_from(setting).as_deref(), Ok(url), "{setting}");
    }
    for setting in ["", "http://203.0.113.7", "https://", "https://u@h", "https://h?x=y", "a b"] {
        assert!(api_server_from(setting).is_err(), "{setting}");
    }
}

#[test]
fn without_that_it_is_on_a_real_node() {
    let nodes = [
        node("liqo-peer", json!({ "liqo.io/type": "virtual-node" }), &[("InternalIP", "10.0.0.9")]),
        node(
            "b",
            json!({}),
            &[("Hostname", "b"), ("InternalIP", "10.0.0.2"), ("ExternalIP", "198.51.100.2")],
        ),
        node("a", json!({}), &[("InternalIP", "2001:db8::1")]),
    ];
    assert_eq!(api_server_of(&nodes).as_deref(), Some("https://[2001:db8::1]:6443"));
    assert_eq!(api_server_of(&nodes[..2]).as_deref(), Some("https://198.51.100.2:6443"));
    assert_eq!(api_server_of(&nodes[..1]), None);
}

#[test]
fn the_service_is_reached_by_its_balancer_or_on_a_node() {
    let nodes = [node("a", json!({}), &[("InternalIP", "10.0.0.1")])];
    let balanced = service("LoadBalancer", json!([{ "ip": "198.51.100.1" }]));
    assert_eq!(auth_url(&balanced, &nodes, None, None).as_deref(), Ok("https://198.51.100.1"));
    let named = service("LoadBalancer", json!([{ "hostname": "auth.example.com" }]));
    assert_eq!(auth_url(&named, &nodes, None, None).as_deref(), Ok("https://auth.example.com"));
    // A balancer that nobody provides.
    let pending = service("LoadBalancer", json!([]));
    assert_eq!(auth_url(&pending, &nodes, None, None).as_deref(), Ok("https://10.0.0.1:31520"));
    let on_nodes = service("NodePort", json!([]));
    assert_eq!(auth_url(&on_nodes, &nodes, None, None).as_deref(), Ok("https://10.0.0.1:31520"));
    assert!(auth_url(&on_nodes, &[], None, None).is_err());
    let inside = service("ClusterIP", json!([]));
    assert!(auth_url(&inside, &nodes, None, None).unwrap_err().contains("inside the cluster only"));
    assert_eq!(auth_url(&inside, &nodes, Some("a.example"), None).as_deref(), Ok("https://a.example"));
    assert_eq!(
        auth_url(&inside, &nodes, Some("2001:db8::1"), Some(8443)).as_deref(),
        Ok("https://[2001:db8::1]:8443")
    );
    assert_eq!(auth_url(&on_nodes, &nodes, None, Some(8443)).as_deref(), Ok("https://10.0.0.1:8443"));
}
