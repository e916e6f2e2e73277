use super::*;
use crate::client::CallError;

/// The spec of a peer that an authority vouches for.
fn vouched_for(by: &str) -> Value {
    json!({ "foreignAuthUrl": "https://b", "authCaBundle": by, "clusterIdentity": whole() })
}

fn authority() -> String {
    let key = rcgen::KeyPair::generate_for(&rcgen::PKCS_ED25519).unwrap();
    rcgen::CertificateParams::default().self_signed(&key).unwrap().pem()
}

fn untrusted() -> Failure {
    let (url, reason) = ("https://b".to_owned(), "unknown issuer".to_owned());
    Failure::of(&CallError::Untrusted { url, reason }, true)
}

#[test]
fn a_peer_is_called_again_at_once_when_other_authorities_are_named() {
    let mut world = World::new(vouched_for(&authority()));
    world.answer = Err(untrusted());
    world.settle();
    assert_eq!(world.told(), "Error CertificateNotTrusted");
    assert_eq!(world.words(), Vec::<String>::new());
    world.answer = Ok(());
    world.change(&json!({ "spec": { "authCaBundle": authority() } }));
    assert_eq!(world.words()[0], "obtain");
    world.settle();
    assert_eq!(world.told(), "Established Authenticated");
}

#[test]
fn a_peer_whose_authority_is_known_is_proven_even_where_somebody_wanted_no_proof() {
    let wishes = json!({ "insecureSkipTLSVerify": true });
    let mut world = World::new(merged(&vouched_for(&authority()), &wishes));
    world.settle();
    assert_eq!(world.told(), "Established Authenticated");
}

#[test]
fn authorities_that_cannot_be_read_are_told_before_the_next_renewal_fails_by_them() {
    let mut world = World::new(vouched_for(&authority()));
    world.settle();
    world.change(&json!({ "spec": { "authCaBundle": "-----BEGIN CERTIFICATE-----\nx" } }));
    world.settle();
    assert_eq!(world.told(), "Established RenewalFailing");
    let message = &world.cluster().status.as_ref().unwrap().peering_conditions[0].message;
    assert!(message.contains("until") && message.contains("spec.authCaBundle"), "{message}");
    world.change(&json!({ "spec": { "authCaBundle": authority() } }));
    world.settle();
    assert_eq!(world.told(), "Established Authenticated");
}
