use super::*;

fn at(text: &str) -> SocketAddr {
    text.parse().unwrap()
}

#[test]
fn a_source_is_an_ipv4_address_or_an_ipv6_network() {
    let same = |a: &str, b: &str| source(at(a)) == source(at(b));
    assert!(same("192.0.2.1:1", "192.0.2.1:2"));
    assert!(same("192.0.2.1:1", "[::ffff:192.0.2.1]:2"));
    assert!(!same("192.0.2.1:1", "192.0.2.2:1"));
    assert!(same("[2001:db8::1]:1", "[2001:db8:0:0:ffff::2]:1"));
    assert!(!same("[2001:db8:0:1::1]:1", "[2001:db8:0:2::1]:1"));
}

#[test]
fn a_source_has_as_many_places_as_allowed_and_gets_them_back() {
    let sources = Sources::new(2);
    let first = sources.enter(at("192.0.2.1:1")).unwrap();
    let second = sources.enter(at("192.0.2.1:2"));
    assert!(second.is_some());
    assert!(sources.enter(at("192.0.2.1:3")).is_none());
    assert!(sources.enter(at("192.0.2.2:1")).is_some());
    drop(first);
    assert!(sources.enter(at("192.0.2.1:4")).is_some());
    drop(second);
    assert!(sources.open.lock().is_empty());
}
