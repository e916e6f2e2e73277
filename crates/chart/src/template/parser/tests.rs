use proptest::prelude::*;

use super::{Parsed, parse};
use crate::template::lexer::SyntaxError;

fn error(text: &str) -> SyntaxError {
    parse("t", text).err().unwrap_or_else(|| panic!("{text} is read without an error"))
}

#[test]
fn a_file_gives_its_own_template_and_those_it_defines() {
    let parsed: Parsed = parse("t", r#"x{{ define "a" }}A{{ end }}{{ block "b" . }}B{{ end }}"#).unwrap();
    assert_eq!(parsed.keys().collect::<Vec<_>>(), ["a", "b", "t"]);
}

#[test]
fn errors_say_what_is_wrong_and_in_which_line() {
    for (template, line, message) in [
        ("\n{{ }}", 2, "a value is missing here"),
        ("{{ if }}x{{ end }}", 1, "a value is missing here"),
        ("{{ 1 | }}", 1, "a value is missing here"),
        ("{{ 5 | 6 }}", 1, "what follows | must be a function"),
        ("a\nb\n{{ nope 1 }}", 3, "function \"nope\" is not known"),
        ("{{ $x }}", 1, "undefined variable $x"),
        ("{{ $x = 5 }}", 1, "undefined variable $x"),
        ("{{ if true }}{{ $x := 1 }}{{ end }}{{ $x }}", 1, "undefined variable $x"),
        ("{{ range $i, $v := . }}{{ end }}{{ $v }}", 1, "undefined variable $v"),
        ("{{ $x := 1 }}{{ define \"a\" }}{{ $x }}{{ end }}", 1, "undefined variable $x"),
        ("{{ $x, $y := 5 }}", 1, "undefined variable $x"),
        ("\n{{ if true }}\nx", 2, "{{end}} is missing for this if"),
        ("{{ with . }}{{ else }}", 1, "{{end}} is missing for this with"),
        ("{{ define \"a\" }}", 1, "{{end}} is missing for this define"),
        ("x\n{{ end }}", 2, "unexpected {{end}}"),
        ("{{ else }}", 1, "unexpected {{else}}"),
        ("{{ if 1 }}\n{{ else }}\n{{ else }}{{ end }}", 3, "a second else in one if"),
        ("{{ with 1 }}{{ else if 2 }}{{ end }}", 1, "unexpected if after else"),
        ("{{ define \"a\" }}{{ else }}{{ end }}", 1, "unexpected else in define \"a\""),
        ("{{ end 5 }}", 1, "unexpected {{end}}"),
        ("{{ if 1 }}{{ end 5 }}", 1, "unexpected \"5\""),
        ("{{ range $a, $b, $c := . }}{{ end }}", 1, "too many variables in this range"),
        ("{{ (1 }}", 1, "unclosed left parenthesis"),
        ("{{ 1) }}", 1, "unexpected \")\""),
        ("{{ break }}", 1, "{{break}} outside of a range"),
        ("{{ range . }}{{ define \"a\" }}{{ end }}{{ end }}", 1, "define must not be inside another block"),
        (
            "{{ range . }}{{ block \"a\" . }}{{ continue }}{{ end }}{{ end }}",
            1,
            "{{continue}} outside of a range",
        ),
        (
            "{{ define \"z\" }}a{{ end }}\n{{ define \"z\" }}b{{ end }}",
            2,
            "template \"z\" is defined twice in this file",
        ),
        ("{{ template foo }}", 1, "a quoted name must follow template"),
        ("{{ define }}{{ end }}", 1, "a quoted name must follow define"),
        ("{{ \"a\"\"b\" }}", 1, "white space is missing before this operand"),
        ("{{ print if }}", 1, "unexpected \"if\" in an expression"),
        ("{{ print = }}", 1, "unexpected \"=\""),
    ] {
        assert_eq!(error(template), SyntaxError::new(line, message), "{template}");
    }
}

#[test]
fn an_empty_definition_is_in_nobodys_way() {
    for template in [
        "{{ define \"z\" }} {{ end }}{{ define \"z\" }}b{{ end }}",
        "{{ define \"z\" }}b{{ end }}{{ define \"z\" }}{{ end }}",
    ] {
        assert!(!parse("t", template).unwrap()["z"].is_empty(), "{template}");
    }
}

#[test]
fn what_is_too_deep_is_an_error_and_no_overflow() {
    let blocks = "{{ if 1 }}".repeat(10_000);
    let parens = format!("{{{{ {} }}}}", "(".repeat(10_000));
    let chain = format!("{{{{ if 1 }}}}{}{{{{ end }}}}", "{{ else if 1 }}".repeat(10_000));
    let templates = "{{ block \"a\" . }}".repeat(10_000);
    for template in [blocks, parens, chain, templates] {
        assert!(error(&template).message.contains("inside each other"), "{}", &template[..40]);
    }
}

/// Pieces of templates, so that random texts get further than to the first wrong character.
fn piece() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec![
        "{{", "}}", "{{-", "-}}", " ", "\n", "if", "else", "end", "range", "with", "define", "block",
        "template", "include", "tpl", "break", "continue", "\"a\"", "`r`", "'c'", ".", ".a", "$", "$x", ":=",
        "=", "|", "(", ")", ",", "1", "-1", "1.5", "0x", "true", "nil", "print", "/*", "*/", "\\", "\"", "é",
        "text", "and", "dict",
    ])
}

proptest! {
    #[test]
    fn no_text_makes_it_panic(text in any::<String>()) {
        let _ = parse("t", &text);
    }

    #[test]
    fn no_order_of_pieces_makes_it_panic(pieces in prop::collection::vec(piece(), 0..40)) {
        let _ = parse("t", &pieces.concat());
        let _ = crate::template::testing::render(&pieces.join(" "), "{}");
    }
}
