use super::*;
use crate::csr::new_key;
use crate::testing::{home, now};

/// What a peer's signer would make of a request; valid from an hour ago.
fn certificate(name: &str, key: &rcgen::KeyPair, hours: i64) -> String {
    let seconds =
        |hours: i64| time::OffsetDateTime::from_unix_timestamp(now().as_second() + hours * 3600).unwrap();
    let mut params = rcgen::CertificateParams::default();
    params.distinguished_name = rcgen::DistinguishedName::new();
    params.distinguished_name.push(rcgen::DnType::CommonName, name);
    params.not_before = seconds(-1);
    params.not_after = seconds(hours);
    params.self_signed(key).unwrap().pem()
}

fn key_and_certificate(hours: i64) -> (NewKey, String) {
    let key = new_key(&home().id).unwrap();
    let pair = rcgen::KeyPair::from_pem(&key.private_key).unwrap();
    let pem = certificate(home().id.as_str(), &pair, hours);
    (key, pem)
}

fn answer(certificate: &str) -> Answer {
    Answer {
        namespace: "liqo-tenant-home".to_owned(),
        certificate: to_base64(certificate),
        api_server_url: "https://203.0.113.7:6443".to_owned(),
        api_server_ca: Some(to_base64(certificate)),
    }
}

#[test]
fn a_good_answer_is_taken() {
    let (key, pem) = key_and_certificate(24);
    let obtained = check_answer(&answer(&pem), key, home(), now()).unwrap();
    assert_eq!(obtained.namespace.as_str(), "liqo-tenant-home");
    assert_eq!(obtained.certified.common_name, home().id.as_str());
    assert!(!format!("{obtained:?}").contains("PRIVATE"));
    let (key, pem) = key_and_certificate(24);
    let public = Answer { api_server_ca: None, ..answer(&pem) };
    assert!(check_answer(&public, key, home(), now()).unwrap().api_server_ca.is_none());
}

#[test]
fn a_hostile_answer_is_not() {
    let (_, pem) = key_and_certificate(24);
    let another = rcgen::KeyPair::generate_for(&rcgen::PKCS_ED25519).unwrap();
    let good = answer(&pem);
    let cases: [(&str, Answer, &str); 8] = [
        ("for another key", answer(&certificate("home-id", &another, 24)), "another key"),
        ("no certificate", Answer { certificate: to_base64("x"), ..good.clone() }, "cannot be read"),
        ("no base64", Answer { certificate: "%".to_owned(), ..good.clone() }, "base64"),
        ("no namespace", Answer { namespace: "../kube-system".to_owned(), ..good.clone() }, "namespace"),
        ("plain http", Answer { api_server_url: "http://h".to_owned(), ..good.clone() }, "https"),
        ("no URL", Answer { api_server_url: "\u{0}".to_owned(), ..good.clone() }, "URL"),
        ("no authority", Answer { api_server_ca: Some(to_base64("x")), ..good.clone() }, "authority"),
        ("authority no base64", Answer { api_server_ca: Some("%".to_owned()), ..good }, "base64"),
    ];
    for (why, answer, says) in cases {
        let key = new_key(&home().id).unwrap();
        let error = match why {
            "for another key" => check_answer(&answer, key, home(), now()).unwrap_err(),
            _ => {
                // With the key that the certificate is for, so that only one thing is wrong.
                let (key, pem) = key_and_certificate(24);
                let certificate = match why {
                    "no certificate" | "no base64" => answer.certificate.clone(),
                    _ => to_base64(&pem),
                };
                check_answer(&Answer { certificate, ..answer }, key, home(), now()).unwrap_err()
            }
        };
        assert!(error.contains(says), "{why}: {error}");
    }
    let key = new_key(&home().id).unwrap();
    let pair = rcgen::KeyPair::from_pem(&key.private_key).unwrap();
    let other_name = answer_for(&certificate("other", &pair, 24), key);
    assert!(other_name.contains("another name"), "{other_name}");
    let (key, expired) = key_and_certificate(0);
    assert!(answer_for(&expired, key).contains("clocks"));
}

fn answer_for(pem: &str, key: NewKey) -> String {
    check_answer(&answer(pem), key, home(), now()).unwrap_err()
}

#[test]
fn a_peers_words_are_short_one_line_and_without_our_token() {
    let token = Token::new("my-token");
    let text = format!("wrong token my-token\n\u{1b}[31m{}", "x".repeat(1000));
    let words = words(text.as_bytes(), &token);
    assert!(
        words.len() <= 256 && !words.contains("my-token") && !words.contains(char::is_control),
        "{words}"
    );
    assert!(words.starts_with("wrong token [token]"));
    assert_eq!(super::words(&[0xff, 0xfe], &Token::default()), "\u{fffd}\u{fffd}");
}

#[test]
fn urls_are_those_that_the_api_allows() {
    for url in
        ["https://b", "https://203.0.113.7:31520", "https://[2001:db8::7]:31520/liqo/", "https://a.b/x"]
    {
        assert!(Endpoint::parse(url).is_ok(), "{url}");
    }
    for url in ["", "b", "http://b", "https://", "https://u:p@b", "https://b/?q=1", "https://b c"] {
        assert!(matches!(Endpoint::parse(url), Err(CallError::Url { .. })), "{url}");
    }
}

#[test]
fn a_fingerprint_counts_before_authorities_and_both_before_the_wish_to_verify_nothing() {
    let mut spec = liqo_api::ForeignClusterSpec::new("https://b");
    let trust = |spec: &liqo_api::ForeignClusterSpec| Trust::of(spec, &Authorities::default()).unwrap();
    assert!(matches!(trust(&spec), Trust::Authorities(_)));
    spec.insecure_skip_tls_verify = true;
    assert!(!trust(&spec).is_verified());
    let key = rcgen::KeyPair::generate_for(&rcgen::PKCS_ED25519).unwrap();
    spec.auth_ca_bundle = Some(certificate("authority", &key, 24));
    assert!(matches!(trust(&spec), Trust::Bundle(_)));
    spec.auth_fingerprint = Some(format!("sha256:{}", "0".repeat(64)));
    assert!(matches!(trust(&spec), Trust::Fingerprint(_)));
}

#[test]
fn what_cannot_be_read_opens_no_door() {
    let mut spec = liqo_api::ForeignClusterSpec::new("https://b");
    spec.insecure_skip_tls_verify = true;
    spec.auth_fingerprint = Some("nonsense".to_owned());
    assert!(matches!(Trust::of(&spec, &Authorities::default()), Ok(Trust::Authorities(_))));
    for text in ["", "nonsense", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----"] {
        spec.auth_ca_bundle = Some(text.to_owned());
        let error = Trust::of(&spec, &Authorities::default()).unwrap_err();
        assert!(matches!(error, CallError::Bundle(_)), "{error}");
        assert!(error.to_string().contains("--ca-file"), "{error}");
    }
}
