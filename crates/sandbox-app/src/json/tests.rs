use super::Json;

#[test]
fn values_print_as_json() {
    let nested = Json::object([
        ("none", Json::from(None::<String>)),
        ("some", Some("x").into()),
        ("yes", true.into()),
        ("count", 18_446_744_073_709_551_615_u64.into()),
        ("inner", Json::object([])),
    ]);
    assert_eq!(
        nested.to_string(),
        r#"{"none":null,"some":"x","yes":true,"count":18446744073709551615,"inner":{}}"#
    );
}

#[test]
fn text_cannot_break_out_of_its_quotes_nor_drive_a_terminal() {
    let cases = [
        ("plain", r#""plain""#),
        ("\"},{\"", r#""\"},{\"""#),
        ("back\\slash", r#""back\\slash""#),
        ("a\nb\rc\td", r#""a\nb\rc\td""#),
        ("\0\u{1b}[31m\u{7f}\u{9b}", r#""\u0000\u001b[31m\u007f\u009b""#),
        ("żółć 🦀", r#""żółć 🦀""#),
    ];
    for (text, expected) in cases {
        assert_eq!(Json::from(text).to_string(), expected, "for {text:?}");
    }
}
