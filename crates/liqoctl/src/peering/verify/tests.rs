use liqo_api::names::Identity;

use super::*;

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
        (CallError::Refused { url: url(), status: 404, words: reason() }, "generate-add-command"),
        (CallError::Nonsense { url: url(), reason: reason() }, "--auth-url"),
        (CallError::Busy { url: url(), status: 503, words: reason(), retry_after: None }, "Try again"),
    ] {
        let text = explain(&error);
        assert!(text.contains(advice) && text.contains("Nothing was changed"), "{text}");
    }
}

#[test]
fn a_fingerprint_counts_before_everything_else() {
    let fingerprint = Fingerprint::of_certificate(b"x");
    assert!(matches!(trust(Some(fingerprint), true), Trust::Fingerprint(found) if found == fingerprint));
    assert!(matches!(trust(None, true), Trust::Anyone));
    assert!(matches!(trust(None, false), Trust::Authorities(_)));
}
