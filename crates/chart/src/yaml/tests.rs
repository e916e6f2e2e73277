use proptest::prelude::*;
use serde_json::{Value, json};

use super::{read, write};

/// Texts with everything that could be taken for something else.
const TRICKY: &[&str] = &[
    "",
    " ",
    "~",
    "null",
    "Null",
    "true",
    "True",
    "yes",
    "Yes",
    "on",
    "off",
    "y",
    "N",
    "no",
    "tRuE",
    "1",
    "-1",
    "+1",
    "0",
    "017",
    "0644",
    "0o17",
    "0x1",
    "0x1F",
    "0b11",
    "1_000",
    "1e3",
    "1E-3",
    "1.5",
    ".5",
    "5.",
    ".inf",
    "-.Inf",
    ".NaN",
    "1e400",
    "12:30:45",
    "2001-01-01",
    "2001-12-14t21:59:43.10Z",
    "<<",
    "=",
    "a: b",
    "a:b",
    "a:",
    "a #b",
    "#a",
    "- a",
    "-",
    "---",
    "--- a",
    "...",
    "? a",
    ": a",
    "@a",
    "`a",
    "%a",
    "&a",
    "*a",
    "!a",
    "|a",
    ">a",
    "'a",
    "\"a",
    "it's",
    "[a",
    "{a",
    "a]",
    ",a",
    " a",
    "a ",
    "a\nb",
    "a\n",
    "\na",
    "a\n\n",
    "\n",
    " a\nb",
    "a\n b",
    "a \nb",
    "a\tb",
    "\ta",
    "a\nb\t",
    "é",
    "日本",
    "😀",
    "\0",
    "\u{7f}",
    "\u{85}",
    "\u{a0}",
    "\u{feff}",
    "a\rb",
    "a\r\nb",
    "\u{2028}",
    "\\",
    "a\\b",
    "{{ x }}",
    "10Mi",
    "1.2.3",
    "key: |\n  x",
    "- x\n- y",
    "a: 1\nb: 2\n",
];

#[test]
fn texts_stay_the_texts_they_are() {
    for text in TRICKY {
        for value in [json!(text), json!([text]), json!({ "k": text }), json!({ *text: [{ "k": text }] })] {
            let written = write(&value);
            assert_eq!(read(&written), Ok(value), "{written}");
        }
    }
}

/// What Go's library writes.
#[test]
fn documents_are_written_letter_for_letter_as_in_go() {
    let long = "word ".repeat(20) + "end";
    for (value, expected) in [
        (json!(null), "null\n"),
        (json!({}), "{}\n"),
        (json!([]), "[]\n"),
        (
            json!({ "b": 1, "a": [1, "x", null, true, 1.5], "c": {} }),
            "a:\n- 1\n- x\n- null\n- true\n- 1.5\nb: 1\nc: {}\n",
        ),
        (json!([[1, 2], { "a": 1, "b": [3] }, []]), "- - 1\n  - 2\n- a: 1\n  b:\n  - 3\n- []\n"),
        (json!({ "a": { "b": { "c": "d" } } }), "a:\n  b:\n    c: d\n"),
        (json!({ "k": "true" }), "k: \"true\"\n"),
        (json!({ "k": "" }), "k: \"\"\n"),
        (json!({ "k": "a: b" }), "k: 'a: b'\n"),
        (json!({ "k": "it's" }), "k: it's\n"),
        (json!({ "k": "'a'" }), "k: '''a'''\n"),
        (json!({ "k": "a\tb" }), "k: \"a\\tb\"\n"),
        (json!({ "k": "😀" }), "k: \"\\U0001F600\"\n"),
        (json!({ "k": "a\nb" }), "k: |-\n  a\n  b\n"),
        (json!({ "k": "a\n\nb\n" }), "k: |\n  a\n\n  b\n"),
        (json!({ "k": "a\n\n" }), "k: |+\n  a\n\n"),
        (json!({ "k": " a\nb" }), "k: |2-\n   a\n  b\n"),
        (json!({ "k": "a \nb" }), "k: \"a \\nb\"\n"),
        (json!([{ "k": "a\nb" }]), "- k: |-\n    a\n    b\n"),
        (json!(["a\nb"]), "- |-\n  a\n  b\n"),
        (json!("a\nb"), "|-\n  a\n  b\n"),
        (json!({ "yes": 1, "8080": 2, "a.b/c": 3 }), "\"8080\": 2\na.b/c: 3\n\"yes\": 1\n"),
        (
            json!({ "a10": 1, "a2": 2, "a-b": 3, "aa": 4, "A": 5, "_": 6 }),
            "_: 6\nA: 5\na-b: 3\na2: 2\na10: 1\naa: 4\n",
        ),
        (
            json!({ "k100": 1, "k10": 2, "k1": 3, "k01": 4, "k1a": 5 }),
            "k1: 3\nk01: 4\nk10: 2\nk100: 1\nk1a: 5\n",
        ),
        (json!(1_234_567.25), "1.23456725e+06\n"),
        (json!(9_007_199_254_740_993_i64), "9007199254740993\n"),
        (
            json!({ "k": long }),
            "k: word word word word word word word word word word word word word word word word\n  word word word word end\n",
        ),
        (
            json!({ "k": format!("#{long}") }),
            "k: '#word word word word word word word word word word word word word word word word\n  word word word word end'\n",
        ),
        (
            json!({ "k": format!("\t{long}  x") }),
            "k: \"\\tword word word word word word word word word word word word word word word word\n  word word word word end  x\"\n",
        ),
    ] {
        assert_eq!(write(&value), expected);
        assert_eq!(read(expected), Ok(value));
    }
}

#[test]
fn documents_are_read_as_kubernetes_reads_them() {
    for (text, expected) in [
        ("x: yes", json!({ "x": true })),
        ("x: [on, Off, 'yes', \"no\"]", json!({ "x": [true, false, "yes", "no"] })),
        ("x: 0644", json!({ "x": 420 })),
        ("x: 0x1f", json!({ "x": 31 })),
        ("x: 1_000", json!({ "x": 1000 })),
        ("x: 1e3", json!({ "x": 1000.0 })),
        ("x: 12:30", json!({ "x": "12:30" })),
        ("x: 2001-01-01", json!({ "x": "2001-01-01" })),
        ("x: 1.2.3", json!({ "x": "1.2.3" })),
        ("x: 10Mi", json!({ "x": "10Mi" })),
        ("x: ~\ny1:\n", json!({ "x": null, "y1": null })),
        ("8080: a\ntrue: b", json!({ "8080": "a", "true": "b" })),
        ("a: &a {b: 1}\nc:\n  <<: *a\n  d: 2", json!({ "a": { "b": 1 }, "c": { "b": 1, "d": 2 } })),
        ("x: |\n  a\n   b\nz: >-\n  c\n  d\n", json!({ "x": "a\n b\n", "z": "c d" })),
        ("{\"x\": [1, {\"a\": null}]}", json!({ "x": [1, { "a": null }] })),
        ("# only a comment", Value::Null),
        ("", Value::Null),
    ] {
        assert_eq!(read(text), Ok(expected), "{text}");
    }
}

#[test]
fn many_comments_in_a_row_are_no_problem() {
    let text = format!("{}a:\n{}  b: 1\n", "# words\n".repeat(500), "  # words\n".repeat(500));
    assert_eq!(read(&text), Ok(json!({ "a": { "b": 1 } })));
}

#[test]
fn errors_name_line_and_column() {
    for (text, expected) in [
        ("a: 1\na: 2", "duplicate mapping key: a not allowed here at line 2, column 1"),
        ("a: [1", "at line"),
        ("a: .inf", "value `.inf` is not a finite number at line 1, column 4"),
        ("a: b: c", "at line 1"),
    ] {
        let error = read(text).unwrap_err().to_string();
        assert!(error.contains(expected), "{text}: {error}");
    }
}

#[test]
fn a_hostile_document_is_an_error() {
    let bomb = "a: &a [x,x,x,x,x,x,x,x,x,x]\n".to_owned()
        + &('b'..='k')
            .map(|to| {
                let from = char::from(to as u8 - 1);
                format!("{to}: &{to} [{}]\n", vec![format!("*{from}"); 10].join(","))
            })
            .collect::<String>();
    let deep = (0..5_000).map(|at| format!("{}a:\n", " ".repeat(at))).collect::<String>();
    for text in [bomb, "[".repeat(100_000), "- ".repeat(100_000), deep] {
        assert!(read(&text).is_err(), "{}", &text[..60]);
    }
}

fn value() -> impl Strategy<Value = Value> {
    let text =
        prop_oneof![any::<String>(), prop::sample::select(TRICKY).prop_map(str::to_owned), "[ -~\n]{0,12}"];
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        text.clone().prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 32, 4, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map(text.clone(), inner, 0..4).prop_map(|map| map.into_iter().collect()),
        ]
    })
}

proptest! {
    #[test]
    fn what_is_written_is_read_back(value in value()) {
        let written = write(&value);
        prop_assert_eq!(read(&written), Ok(value), "{}", written);
    }

    #[test]
    fn no_text_makes_reading_panic(text in any::<String>()) {
        let _ = read(&text);
    }
}
