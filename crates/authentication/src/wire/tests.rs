use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::testing::milan;

fn body() -> serde_json::Value {
    json!({
        "cluster": { "clusterID": "edge-7", "clusterName": "edge" },
        "destinationClusterToken": "secret-token",
        "certificateSigningRequest": to_base64("-----BEGIN CERTIFICATE REQUEST-----"),
    })
}

fn parsed(body: &serde_json::Value) -> Result<Request, String> {
    parse(body.to_string().as_bytes())
}

#[test]
fn a_request_of_liqo_reads() {
    let mut body = body();
    body["originClusterToken"] = json!("ignored");
    let request = parsed(&body).unwrap();
    assert_eq!(request.caller.id.as_str(), "edge-7");
    assert_eq!(request.token.reveal(), "secret-token");
    assert!(request.proof.is_none());
    body.as_object_mut().unwrap().remove("destinationClusterToken");
    assert!(parsed(&body).unwrap().token.is_empty());
}

#[test]
fn what_is_not_as_it_should_be_is_told_without_repeating_it() {
    let key = key_to_base64(&milan().public_key());
    let with = |change: serde_json::Value| {
        let mut body = body();
        body.as_object_mut().unwrap().extend(change.as_object().unwrap().clone());
        body
    };
    let cases = [
        ("no ID", with(json!({ "cluster": { "clusterName": "edge" } })), "line 1"),
        (
            "a bad ID",
            with(json!({ "cluster": { "clusterID": "SECRET token", "clusterName": "x" } })),
            "DNS labels",
        ),
        ("an empty name", with(json!({ "cluster": { "clusterID": "x", "clusterName": "" } })), "DNS labels"),
        ("a token where the cluster should be", with(json!({ "cluster": "secret-token" })), "line 1"),
        ("a number as token", with(json!({ "destinationClusterToken": 5 })), "line 1"),
        ("a huge token", with(json!({ "destinationClusterToken": "x".repeat(2000) })), "token is too long"),
        ("a CSR that is no base64", with(json!({ "certificateSigningRequest": "%" })), "encoded in base64"),
        (
            "a huge CSR",
            with(json!({ "certificateSigningRequest": "A".repeat(30_000) })),
            "certificate signing request is too long",
        ),
        ("a key without proof", with(json!({ "publicKey": key })), "given together"),
        ("a proof without key", with(json!({ "proof": "AAAA" })), "given together"),
        ("no key", with(json!({ "publicKey": "AAAA", "proof": "AAAA" })), "Ed25519"),
        ("a huge key", with(json!({ "publicKey": "A".repeat(300), "proof": "AAAA" })), "too long"),
        ("a proof that is no base64", with(json!({ "publicKey": key, "proof": "%" })), "proof must be"),
    ];
    for (why, body, says) in cases {
        let error = parsed(&body).unwrap_err();
        assert!(error.contains(says), "{why}: {error}");
        assert!(!error.to_lowercase().contains("secret"), "{why}: {error}");
    }
    for text in ["", "null", "[]", "{", "\u{0}", "{\"cluster\":{}}"] {
        assert!(parse(text.as_bytes()).is_err(), "{text:?}");
    }
    assert_eq!(parse(&vec![b' '; MAX_BODY + 1]).unwrap_err(), "the body is too long");
    // Nesting must not overflow the stack.
    assert!(parse("[".repeat(MAX_BODY).as_bytes()).is_err());
}

#[test]
fn a_key_reads_back_and_is_its_spki_in_base64() {
    let key = milan().public_key();
    assert_eq!(key_from_base64(&key_to_base64(&key)).unwrap(), key);
    assert!(key_to_base64(&key).starts_with("MCowBQYDK2VwAyEA"));
}

#[test]
fn ids_without_our_fields_read_and_nonsense_does_not() {
    let ids = |value| serde_json::from_value::<Ids>(value).unwrap().parse();
    let old = ids(json!({ "clusterId": "edge-7", "clusterName": "edge" })).unwrap();
    assert_eq!((old.public_key, old.fingerprint), (None, None));
    assert!(ids(json!({ "clusterId": "Edge", "clusterName": "edge" })).is_err());
    assert!(ids(json!({ "clusterId": "edge", "clusterName": "edge", "fingerprint": "x" })).is_err());
    assert!(ids(json!({ "clusterId": "edge", "clusterName": "edge", "publicKey": "x" })).is_err());
}

#[test]
fn an_answer_is_written_as_liqo_writes_it() {
    let answer = Answer {
        namespace: "liqo-tenant-edge".to_owned(),
        certificate: "Y2VydA==".to_owned(),
        api_server_url: "https://203.0.113.7:6443".to_owned(),
        api_server_ca: Some("Y2E=".to_owned()),
    };
    assert_eq!(
        serde_json::to_value(&answer).unwrap(),
        json!({
            "namespace": "liqo-tenant-edge", "certificate": "Y2VydA==",
            "apiServerUrl": "https://203.0.113.7:6443", "apiServerCA": "Y2E=",
        })
    );
    let without = Answer { api_server_ca: None, ..answer };
    assert!(!serde_json::to_string(&without).unwrap().contains("apiServerCA"));
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_body_whatever_makes_the_parser_panic(body in proptest::collection::vec(any::<u8>(), 0..2000)) {
        let _ = parse(&body);
    }

    #[test]
    fn a_body_with_hostile_texts_is_read_or_refused_in_few_words(
        id in ".{0,80}", name in ".{0,80}", token in ".{0,200}", csr in ".{0,200}", key in ".{0,80}", proof in ".{0,80}",
    ) {
        let body = json!({
            "cluster": { "clusterID": id, "clusterName": name },
            "destinationClusterToken": token, "certificateSigningRequest": csr, "publicKey": key, "proof": proof,
        });
        if let Err(error) = parsed(&body) {
            prop_assert!(error.len() < 200);
        }
    }

    #[test]
    fn a_request_that_is_cut_off_anywhere_is_refused(at in 0_usize..200) {
        let text = body().to_string();
        let cut = text.floor_char_boundary(at.min(text.len() - 1));
        prop_assert!(parse(&text.as_bytes()[..cut]).is_err());
    }
}
