use super::*;

#[test]
fn names_are_those_of_liqo_and_differ_between_clusters_of_equal_name() {
    let peer = |id: &str| Identity { id: id.parse().unwrap(), name: "milan".parse().unwrap() };
    let (a, b) = (peer("32f0b45b-5c06-4cc4-84b6-03a323ffc93d"), peer("edge-7"));
    assert_eq!(remote_token_secret(&a.id), "remote-token-32f0b45b-5c06-4cc4-84b6-03a323ffc93d");
    assert!(identity_secret(&a).starts_with("liqo-identity-milan-"));
    assert_ne!(identity_secret(&a), identity_secret(&b));
}
