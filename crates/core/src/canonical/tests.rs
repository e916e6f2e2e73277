use proptest::prelude::*;
use serde_json::{Value, json};

use super::{Digest, NotCanonical, bytes, parse};

fn text(document: &Value) -> String {
    String::from_utf8(bytes(document).unwrap()).unwrap()
}

#[test]
fn documents_are_written_in_one_way() {
    for (document, expected) in [
        (json!(null), "null"),
        (json!([true, false, 0, -7, 9_007_199_254_740_991_u64]), "[true,false,0,-7,9007199254740991]"),
        (json!({"b": 1, "a": {"d": [], "c": {}}}), r#"{"a":{"c":{},"d":[]},"b":1}"#),
        (json!({"B": 1, "a": 2, "": 3, "1": 4}), r#"{"":3,"1":4,"B":1,"a":2}"#),
        (
            json!("q\" b\\ /\u{8}\t\n\u{c}\r\u{1f}\u{7f}é€😀"),
            "\"q\\\" b\\\\ /\\b\\t\\n\\f\\r\\u001f\u{7f}é€😀\"",
        ),
        // By UTF-16: the emoji's first half (D83D) comes before U+FB33.
        (json!({"\u{fb33}": 1, "😀": 2}), "{\"😀\":2,\"\u{fb33}\":1}"),
        // é as one character and as two are two different keys: nothing is normalised.
        (json!({"e\u{301}": 1, "\u{e9}": 2}), "{\"e\u{301}\":1,\"\u{e9}\":2}"),
    ] {
        assert_eq!(text(&document), expected);
        assert_eq!(parse(expected.as_bytes()).unwrap(), document);
    }
}

#[test]
fn what_is_written_otherwise_is_not_accepted() {
    for document in [
        r#"{"a":1 }"#,
        " 1",
        "1\n",
        r#"{"b":1,"a":2}"#,
        r#"{"a":1,"a":1}"#,
        r#"{"a":1,"a":2}"#,
        r#""\u0041""#,
        r#""\/""#,
        r#""\u001F""#,
        "01",
        "-0",
        "1.0",
        "1e2",
        "\u{feff}1",
    ] {
        assert!(parse(document.as_bytes()).is_err(), "{document}");
    }
    assert_eq!(parse(br#"{"a":1 }"#), Err(NotCanonical::Other(6)));
}

#[test]
fn hostile_documents_are_refused() {
    for number in ["9007199254740992", "-9007199254740992", "1.5", "1e300", "18446744073709551616"] {
        let document: Value = serde_json::from_str(number).unwrap();
        assert!(matches!(bytes(&document), Err(NotCanonical::Number(_))), "{number}");
    }
    let deep = (0..33).fold(json!(1), |inner, _| json!([inner]));
    assert_eq!(bytes(&deep), Err(NotCanonical::Deep));
    assert!(parse("[".repeat(100_000).as_bytes()).is_err());
    assert_eq!(parse(&vec![b' '; 5 << 20]), Err(NotCanonical::Long));
    assert_eq!(bytes(&json!(["x".repeat(3 << 20), "x".repeat(3 << 20)])), Err(NotCanonical::Long));
    assert!(parse(b"\"\xff\"").is_err());
}

#[test]
fn digests_keep_kinds_of_documents_apart() {
    let digest = Digest::of("a", b"x");
    assert_ne!(digest, Digest::of("b", b"x"));
    assert_ne!(Digest::of("a", b"b"), Digest::of("ab", b""));
    // printf 'a\0x' | sha256sum
    assert_eq!(digest.to_string(), "sha256:8b86bced10290476e3cbf7ec75ec99dc5afd02120997525be1c62db47aa5c524");
    assert_eq!(digest.to_string().parse(), Ok(digest));
    for text in [
        "",
        "sha256:",
        "sha256:00",
        &"0".repeat(64),
        &format!("sha256:{}", "G".repeat(64)),
        &format!("sha256:{}", "A".repeat(64)),
        &format!("sha256:{}", "é".repeat(32)),
    ] {
        assert!(text.parse::<Digest>().unwrap_err().to_string().contains("is not a digest"), "{text}");
    }
}

fn any_document() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (-9_007_199_254_740_991_i64..=9_007_199_254_740_991).prop_map(Value::from),
        any::<String>().prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 32, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            prop::collection::btree_map(any::<String>(), inner, 0..6)
                .prop_map(|fields| fields.into_iter().collect()),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_is_written_is_read_back(document in any_document()) {
        let written = bytes(&document).unwrap();
        prop_assert_eq!(&parse(&written).unwrap(), &document);
        // Our strings are what serde_json writes, which the whole world reads.
        if document.is_string() {
            prop_assert_eq!(written, serde_json::to_vec(&document).unwrap());
        }
    }

    #[test]
    fn two_documents_never_share_their_bytes(a in any_document(), b in any_document()) {
        prop_assert_eq!(a == b, bytes(&a).unwrap() == bytes(&b).unwrap());
    }

    #[test]
    fn no_bytes_panic(garbage in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = parse(&garbage);
    }
}
