use liqo_api::names::Identity;
use liqo_authentication::client::InvalidBundle;

use super::*;
use crate::peering::testing::authority;

#[test]
fn a_url_is_one_of_an_authentication_service() {
    for fine in [
        "https://203.0.113.7:31520",
        "https://milan.example.com",
        "https://[2001:db8::1]:443",
        "https://h/liqo",
    ] {
        assert_eq!(parse_url(fine).as_deref(), Ok(fine));
    }
    assert_eq!(parse_url("https://h/").as_deref(), Ok("https://h"));
    for wrong in [
        "",
        "h",
        "http://h",
        "https://",
        "https://u:p@h",
        "https://h?x=1",
        "https://h#x",
        "https://h y",
        "ftp://h",
    ] {
        let error = parse_url(wrong).unwrap_err();
        assert!(error.contains("https://203.0.113.7:31520"), "{wrong}: {error}");
    }
}

#[test]
fn another_cluster_is_not_taken_for_the_one_that_is_meant() {
    let identity = Identity { id: "id-2".parse().unwrap(), name: "rome".parse().unwrap() };
    let found = PeerIdentity { identity, public_key: None, fingerprint: None };
    let error = check(&found, "https://h", &"id-1".parse().unwrap()).unwrap_err().to_string();
    assert!(error.contains("expected the ID id-1") && error.contains("named rome"), "{error}");
    check(&found, "https://h", &"id-2".parse().unwrap()).unwrap();
}

#[test]
fn every_failure_says_what_to_do_next() {
    let (url, reason) = (|| "https://h".to_owned(), || "why".to_owned());
    for (error, advice) in [
        (CallError::Unreachable { url: url(), reason: reason() }, "--no-check"),
        (CallError::Untrusted { url: url(), reason: reason() }, "--fingerprint"),
        (CallError::Untrusted { url: url(), reason: reason() }, "--ca-file"),
        (CallError::Bundle(InvalidBundle::Empty), "--ca-file"),
        (CallError::Refused { url: url(), status: 404, words: reason() }, "generate-add-command"),
        (CallError::Nonsense { url: url(), reason: reason() }, "--auth-url"),
        (CallError::Busy { url: url(), status: 503, words: reason(), retry_after: None }, "Try again"),
    ] {
        let text = explain(&error);
        assert!(text.contains(advice) && text.contains("Nothing was changed"), "{text}");
    }
}

#[test]
fn a_fingerprint_counts_before_authorities_and_those_before_no_proof() {
    let fingerprint = Fingerprint::of_certificate(b"x");
    let authorities = CaBundle::parse(authority("ours").as_bytes()).unwrap();
    let mut all = Recognition {
        fingerprint: Some(fingerprint),
        authorities: Some(authorities.clone()),
        insecure: true,
    };
    assert!(matches!(all.trust(), Trust::Fingerprint(found) if found == fingerprint));
    all.fingerprint = None;
    assert!(matches!(all.trust(), Trust::Bundle(found) if found == authorities));
    all.authorities = None;
    assert!(matches!(all.trust(), Trust::Anyone));
    assert!(matches!(Recognition::default().trust(), Trust::Authorities(_)));
}

#[test]
fn a_file_without_usable_authorities_is_refused_and_says_what_belongs_there() {
    let file = std::env::temp_dir().join(format!("liqoctl-authorities-{}", std::process::id()));
    let read = |text: &str| {
        std::fs::write(&file, text).unwrap();
        read_authorities(&file).map_err(|error| format!("{error:#}"))
    };
    let ours = authority("ours");
    assert_eq!(read(&format!("# ours\n{ours}")).unwrap().to_pem(), ours);
    for (text, says) in [
        (String::new(), "there is no certificate in it"),
        ("hello".to_owned(), "there is no certificate in it"),
        (ours.replace("MII", "%%%"), "it is no PEM"),
        (ours.repeat(100), "Give only the one that signs"),
    ] {
        let error = read(&text).unwrap_err();
        let next = error.contains("--ca-file takes") || error.contains("Give only");
        assert!(error.contains(says) && error.contains("Nothing was changed") && next, "{error}");
    }
    std::fs::remove_file(&file).unwrap();
    let error = format!("{:#}", read_authorities(&file).unwrap_err());
    assert!(error.contains("cannot read") && error.contains("--ca-file takes"), "{error}");
}

#[test]
fn one_that_is_known_by_an_authority_stays_known_by_it() {
    let fingerprint = Fingerprint::of_certificate(b"x");
    let by_fingerprint = Recognition::by_fingerprint(fingerprint);
    let mut spec = ForeignClusterSpec::new("https://h");
    assert_eq!(Recognition::kept(None, fingerprint), by_fingerprint);
    assert_eq!(Recognition::kept(Some(&spec), fingerprint), by_fingerprint);
    spec.auth_ca_bundle = Some("nonsense".to_owned());
    assert_eq!(Recognition::kept(Some(&spec), fingerprint), by_fingerprint);
    let ours = authority("ours");
    spec.auth_ca_bundle = Some(ours.clone());
    let kept = Recognition::kept(Some(&spec), fingerprint);
    assert_eq!((kept.fingerprint, kept.authorities.unwrap().to_pem()), (None, ours));
    spec.auth_fingerprint = Some(Fingerprint::of_certificate(b"old").to_string());
    assert_eq!(Recognition::kept(Some(&spec), fingerprint), by_fingerprint);
}
