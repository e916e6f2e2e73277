use super::*;

/// Made with `openssl genpkey -algorithm ed25519`, and its public key and fingerprint with openssl, too.
const OPENSSL_KEY: &str = "-----BEGIN PRIVATE KEY-----
MC4CAQAwBQYDK2VwBCIEIOGxZNZBJm8zZ3+LDNyb7FjXSkAB0xNU4xtMbpjC1EH4
-----END PRIVATE KEY-----
";
const OPENSSL_PUBLIC_KEY: &str = "-----BEGIN PUBLIC KEY-----
MCowBQYDK2VwAyEA+62jBuQzK6bkIN+sOxMDkr1kqUb3KnIHfs/udVmvVj0=
-----END PUBLIC KEY-----
";
const OPENSSL_FINGERPRINT: &str = "eda26552736f3c03a6e83b9954c7e56bbc8b9ac50da3a5feb861d7f481afe227";

#[test]
fn a_key_of_openssl_reads_and_writes_as_openssl_would() {
    let key = SigningKey::from_pem(OPENSSL_KEY.as_bytes()).unwrap();
    assert_eq!(key.to_pem().unwrap().as_str(), OPENSSL_KEY);
    assert_eq!(key.public_key().to_pem(), OPENSSL_PUBLIC_KEY);
    assert_eq!(key.public_key().fingerprint(), OPENSSL_FINGERPRINT);
    assert_eq!(PublicKey::from_pem(OPENSSL_PUBLIC_KEY.as_bytes()).unwrap(), key.public_key());
}

#[test]
fn a_new_key_survives_being_written_and_both_versions_of_the_format_are_read() {
    let key = SigningKey::generate().unwrap();
    let again = SigningKey::from_pem(key.to_pem().unwrap().as_bytes()).unwrap();
    assert_eq!(again.public_key(), key.public_key());
    let second = encode(PRIVATE_KEY, key.0.to_pkcs8().unwrap().as_ref());
    assert_eq!(SigningKey::from_pem(second.as_bytes()).unwrap().public_key(), key.public_key());
    assert_ne!(SigningKey::generate().unwrap().public_key(), key.public_key());
}

#[test]
fn a_public_key_is_its_32_bytes_in_whatever_form() {
    let key = SigningKey::generate().unwrap().public_key();
    assert_eq!(PublicKey::from_bytes(&key.to_bytes()), key);
    let openssl = PublicKey::from_pem(OPENSSL_PUBLIC_KEY.as_bytes()).unwrap();
    assert_eq!(openssl.to_bytes()[..4], [0xfb, 0xad, 0xa3, 0x06]);
}

#[test]
fn what_was_signed_is_recognised_and_nothing_else() {
    let key = SigningKey::generate().unwrap();
    let signature = key.sign(b"an offer");
    assert!(key.public_key().verify(b"an offer", &signature));
    assert!(!key.public_key().verify(b"another offer", &signature));
    assert!(!SigningKey::generate().unwrap().public_key().verify(b"an offer", &signature));
}

#[test]
fn what_is_no_key_is_refused_without_being_quoted() {
    let not_pem = KeyError::NotPem { expected: PRIVATE_KEY };
    let rsa = encode(PRIVATE_KEY, b"0\x82\x01");
    let cases: [(&str, KeyError); 5] = [
        ("", not_pem),
        ("MC4CAQAwBQYDK2VwBCIEIA", not_pem),
        (OPENSSL_PUBLIC_KEY, not_pem),
        (&rsa, KeyError::NotEd25519),
        (&OPENSSL_KEY.replacen("MC4C", "MC4D", 1), KeyError::NotEd25519),
    ];
    for (text, expected) in cases {
        assert_eq!(SigningKey::from_pem(text.as_bytes()).unwrap_err(), expected, "{text}");
    }
    assert_eq!(PublicKey::from_pem(b"x").unwrap_err(), KeyError::NotPem { expected: PUBLIC_KEY });
    assert_eq!(
        PublicKey::from_pem(encode(PUBLIC_KEY, b"short").as_bytes()).unwrap_err(),
        KeyError::NotEd25519
    );
}

#[test]
fn printing_a_key_for_debugging_shows_its_fingerprint_alone() {
    let key = SigningKey::generate().unwrap();
    let shown = format!("{key:?}");
    assert_eq!(shown, format!("SigningKey {{ fingerprint: {:?}, .. }}", key.public_key().fingerprint()));
}
