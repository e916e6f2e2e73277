use proptest::prelude::*;
use rcgen::{PKCS_ECDSA_P256_SHA256, PKCS_ECDSA_P384_SHA384, SignatureAlgorithm};

use super::*;

fn id() -> ClusterId {
    "edge-7".parse().unwrap()
}

/// A request as somebody else might make it.
fn made(algorithm: &'static SignatureAlgorithm, subject: &[(DnType, &str)], sans: &[&str]) -> String {
    let key = KeyPair::generate_for(algorithm).unwrap();
    let mut params =
        CertificateParams::new(sans.iter().map(|san| (*san).to_owned()).collect::<Vec<_>>()).unwrap();
    params.distinguished_name = DistinguishedName::new();
    for (kind, value) in subject {
        params.distinguished_name.push(kind.clone(), *value);
    }
    encode(params.serialize_request(&key).unwrap().der())
}

const CN: DnType = DnType::CommonName;
const O: DnType = DnType::OrganizationName;

#[test]
fn our_own_request_is_granted_and_written_anew() {
    let key = new_key(&id()).unwrap();
    let csr = check(key.csr.as_bytes(), &id()).unwrap();
    assert_eq!(csr.pem, key.csr);
    assert_eq!(csr.digest.len(), 64);
    assert!(key.private_key.starts_with("-----BEGIN PRIVATE KEY-----"));
    // Text around the block is not handed on.
    let around = format!("hello\n{}\nworld", key.csr);
    assert_eq!(check(around.as_bytes(), &id()).unwrap(), csr);
}

#[test]
fn a_p256_key_will_do_as_well() {
    let csr = made(&PKCS_ECDSA_P256_SHA256, &[(O, "liqo.io"), (CN, "edge-7")], &[]);
    assert!(check(csr.as_bytes(), &id()).is_ok());
}

#[test]
fn whatever_asks_for_more_than_the_callers_name_is_refused() {
    let good = [(O, "liqo.io"), (CN, "edge-7")];
    let cases = [
        ("another name", made(&PKCS_ED25519, &[(O, "liqo.io"), (CN, "edge-8")], &[]), "common name must be"),
        ("no name", made(&PKCS_ED25519, &[(O, "liqo.io")], &[]), "common name must be"),
        (
            "an administrator",
            made(&PKCS_ED25519, &[(O, "system:masters"), (CN, "edge-7")], &[]),
            "organisation liqo.io",
        ),
        ("no organisation", made(&PKCS_ED25519, &[(CN, "edge-7")], &[]), "organisation liqo.io"),
        (
            "a unit as well",
            made(
                &PKCS_ED25519,
                &[(O, "liqo.io"), (CN, "edge-7"), (DnType::OrganizationalUnitName, "x")],
                &[],
            ),
            "nothing else",
        ),
        ("another host", made(&PKCS_ED25519, &good, &["kubernetes.default"]), "asks for more"),
        ("another kind of key", made(&PKCS_ECDSA_P384_SHA384, &good, &[]), "neither an Ed25519 nor a P-256"),
    ];
    for (why, csr, says) in cases {
        match check(csr.as_bytes(), &id()) {
            Err(CsrError::Refused(reason)) => assert!(reason.contains(says), "{why}: {reason}"),
            other => panic!("{why}: {other:?}"),
        }
    }
}

/// Two organisations: Kubernetes would put the user into both groups.
#[test]
fn a_second_organisation_is_refused() {
    let key = KeyPair::generate_for(&PKCS_ED25519).unwrap();
    let mut params = CertificateParams::default();
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(O, "liqo.io");
    params.distinguished_name.push(CN, "edge-7");
    // rcgen writes an attribute once; a custom type with the same number makes the second.
    params.distinguished_name.push(DnType::CustomDnType(vec![2, 5, 4, 10]), "system:masters");
    let csr = encode(params.serialize_request(&key).unwrap().der());
    assert!(matches!(check(csr.as_bytes(), &id()), Err(CsrError::Refused(_))));
}

#[test]
fn what_is_no_request_is_told_so() {
    let key = new_key(&id()).unwrap();
    let der = pem::parse(&key.csr).unwrap().into_contents();
    let mut tampered = der.clone();
    *tampered.last_mut().unwrap() ^= 1;
    let mut longer = der.clone();
    longer.push(0);
    let cases = [
        ("nothing", String::new(), "no PEM"),
        ("a text", "hello".to_owned(), "no PEM"),
        ("a key", key.private_key.to_string(), "another type"),
        ("no DER", encode(b"hello"), "no PKCS#10"),
        ("half of it", encode(&der[..der.len() / 2]), "no PKCS#10"),
        ("more than it", encode(&longer), "something follows"),
        ("another signature", encode(&tampered), "not signed by its own key"),
    ];
    for (why, csr, says) in cases {
        match check(csr.as_bytes(), &id()) {
            Err(CsrError::Malformed(reason)) => assert!(reason.contains(says), "{why}: {reason}"),
            other => panic!("{why}: {other:?}"),
        }
    }
}

#[test]
fn a_request_whose_subject_was_changed_after_it_was_signed_is_no_request() {
    let csr = made(&PKCS_ED25519, &[(O, "liqo.io"), (CN, "edge-8")], &[]);
    let der = pem::parse(&csr).unwrap().into_contents();
    let at = der.windows(6).position(|window| window == b"edge-8").unwrap();
    let mut changed = der;
    changed[at + 5] = b'7';
    assert!(matches!(check(encode(&changed).as_bytes(), &id()), Err(CsrError::Malformed(_))));
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_bytes_make_it_panic(bytes in proptest::collection::vec(any::<u8>(), 0..600)) {
        let _ = check(&bytes, &id());
        let _ = check(encode(&bytes).as_bytes(), &id());
    }

    #[test]
    fn no_changed_byte_of_a_request_is_granted(at in 0_usize..400, flip in 1_u8..=255) {
        let key = new_key(&id()).unwrap();
        let mut der = pem::parse(&key.csr).unwrap().into_contents();
        let at = at % der.len();
        der[at] ^= flip;
        prop_assert!(check(encode(&der).as_bytes(), &id()).is_err());
    }
}
