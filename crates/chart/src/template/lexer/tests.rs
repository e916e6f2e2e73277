use proptest::prelude::*;

use super::{Kind, SyntaxError, lex};

fn kinds(text: &str) -> Vec<Kind> {
    lex(text).unwrap().into_iter().map(|token| token.kind).collect()
}

fn word(word: &str) -> Kind {
    Kind::Word(word.into())
}

fn text(text: &str) -> Kind {
    Kind::Text(text.into())
}

#[test]
fn text_and_actions_are_told_apart() {
    assert_eq!(kinds(""), []);
    assert_eq!(kinds("only { text } }}"), [text("only { text } }}")]);
    assert_eq!(kinds("a{{x}}b"), [text("a"), Kind::Open, word("x"), Kind::Close, text("b")]);
    assert_eq!(kinds("{{x}}{{y}}"), [Kind::Open, word("x"), Kind::Close, Kind::Open, word("y"), Kind::Close]);
}

#[test]
fn a_hyphen_beside_white_space_trims_the_text() {
    for (template, before, after) in [
        ("a \n{{- x }} b", "a", " b"),
        ("a \n{{ x -}}\t\r\n b", "a \n", "b"),
        ("a\n\n{{- x -}}\n\nb", "a", "b"),
        ("a {{-\nx\n-}} b", "a", "b"),
    ] {
        assert_eq!(
            kinds(template),
            [text(before), Kind::Open, word("x"), Kind::Close, text(after)],
            "{template}"
        );
    }
    // Without white space it is a sign.
    assert_eq!(kinds("a {{-3}} b"), [text("a "), Kind::Open, Kind::Int(-3), Kind::Close, text(" b")]);
    assert_eq!(kinds("a {{- 3 -}} b"), [text("a"), Kind::Open, Kind::Int(3), Kind::Close, text("b")]);
}

#[test]
fn comments_leave_nothing() {
    for (template, expected) in [
        ("a{{/* c */}}b", vec![text("a"), text("b")]),
        ("a {{- /* c\n}} */ -}} b", vec![text("a"), text("b")]),
        ("{{- /* c */}}", vec![]),
    ] {
        assert_eq!(kinds(template), expected, "{template}");
    }
}

#[test]
fn all_tokens_of_an_action_are_known() {
    let tokens = kinds(r#"{{ $x, $ := .a.b . | print (1 1.5 'a' "q" `r`) = }}"#);
    let expected = [
        Kind::Open,
        Kind::Variable("x".into()),
        Kind::Comma,
        Kind::Variable(String::new()),
        Kind::Declare,
        Kind::Field("a".into()),
        Kind::Field("b".into()),
        Kind::Dot,
        Kind::Pipe,
        word("print"),
        Kind::LeftParen,
        Kind::Int(1),
        Kind::Float(1.5),
        Kind::Int(97),
        Kind::String("q".into()),
        Kind::String("r".into()),
        Kind::RightParen,
        Kind::Assign,
        Kind::Close,
    ];
    assert_eq!(tokens, expected);
}

#[test]
fn literals_are_gos() {
    for (literal, expected) in [
        ("0x1F", Kind::Int(31)),
        ("010", Kind::Int(8)),
        ("0o17", Kind::Int(15)),
        ("0b11", Kind::Int(3)),
        ("1_000", Kind::Int(1000)),
        ("-5", Kind::Int(-5)),
        ("+5", Kind::Int(5)),
        ("9223372036854775807", Kind::Int(i64::MAX)),
        ("-9223372036854775808", Kind::Int(i64::MIN)),
        (".5", Kind::Float(0.5)),
        ("5.", Kind::Float(5.0)),
        ("1e3", Kind::Float(1000.0)),
        ("1.5e-3", Kind::Float(0.0015)),
        (r"'\n'", Kind::Int(10)),
        (r"'\''", Kind::Int(39)),
        (r"'é'", Kind::Int(233)),
        (r#""a\tb\u00e9\x41\101\U0001F600\"\\""#, Kind::String("a\tbéAA😀\"\\".into())),
        (r#""}}""#, Kind::String("}}".into())),
        ("`raw\\n\n}}`", Kind::String("raw\\n\n}}".into())),
    ] {
        assert_eq!(kinds(&format!("{{{{ {literal} }}}}")), [Kind::Open, expected, Kind::Close], "{literal}");
    }
}

#[test]
fn white_space_before_a_token_is_remembered() {
    let spaced: Vec<bool> = lex("{{$x.y .z}}").unwrap().into_iter().map(|token| token.spaced).collect();
    assert_eq!(spaced, [false, false, false, true, false]);
}

#[test]
fn errors_name_the_line() {
    for (template, line, message) in [
        ("a\n{{ x", 2, "unclosed action: }} is missing"),
        ("{{ x\n\n\"abc }}", 3, "unterminated quoted string"),
        ("{{ `abc }}", 1, "unterminated raw string"),
        ("{{ 'ab' }}", 1, "unterminated character constant"),
        ("{{ '' }}", 1, "malformed character constant"),
        ("{{ \"\\q\" }}", 1, "unknown escape sequence in a string"),
        ("{{ \"\\xff\" }}", 1, "unknown escape sequence in a string"),
        ("\n{{/* c", 2, "unclosed comment"),
        ("{{/* c */ x}}", 1, "only }} or -}} may follow the end of a comment"),
        ("{{ 5x }}", 1, "bad number syntax: \"5x\""),
        ("{{ 99999999999999999999 }}", 1, "bad number syntax: \"99999999999999999999\""),
        ("{{ - 5 }}", 1, "bad number syntax: \"-\""),
        ("{{ a & b }}", 1, "unexpected '&' in an action"),
        ("{{ : }}", 1, "unexpected ':' in an action"),
    ] {
        assert_eq!(lex(template), Err(SyntaxError::new(line, message)), "{template}");
    }
}

#[test]
fn lines_are_counted_through_text_comments_and_trims() {
    let tokens = lex("a\nb\n{{- /* c\nd */ -}}\n\n{{ x\ny }}").unwrap();
    let lines: Vec<(Kind, u32)> = tokens.into_iter().map(|token| (token.kind, token.line)).collect();
    let expected = [(text("a\nb"), 1), (Kind::Open, 6), (word("x"), 6), (word("y"), 7), (Kind::Close, 7)];
    assert_eq!(lines, expected);
}

proptest! {
    #[test]
    fn no_text_makes_it_panic(text in any::<String>()) {
        let _ = lex(&text);
        let _ = lex(&format!("{{{{{text}}}}}"));
    }
}
