use super::Glob;

#[test]
fn patterns_match_as_a_shell_would() {
    for (pattern, path, expected) in [
        ("conf/*", "conf/a.txt", true),
        ("conf/*", "conf/deep/a.txt", false),
        ("conf/**", "conf/deep/a.txt", true),
        ("**.json", "a/b.json", true),
        ("*.json", "a/b.json", false),
        ("?.txt", "a.txt", true),
        ("?.txt", "ab.txt", false),
        ("[a-c].txt", "b.txt", true),
        ("[!a-c].txt", "b.txt", false),
        ("[^a-c].txt", "x.txt", true),
        ("{a,b}.txt", "b.txt", true),
        ("{a,b}.txt", "c.txt", false),
        ("a\\*", "a*", true),
        ("a\\*", "ab", false),
        ("a+b.txt", "a+b.txt", true),
        ("a.txt", "abtxt", false),
        ("a,b}", "a,b}", true),
        ("[.^]", "^", true),
    ] {
        assert_eq!(Glob::new(pattern).unwrap().matches(path), expected, "{pattern} on {path}");
    }
}

#[test]
fn a_broken_pattern_is_an_error_and_no_panic() {
    for pattern in ["[", "{a", "[]", "[z-a]"] {
        assert!(Glob::new(pattern).is_err(), "{pattern}");
    }
    assert!(Glob::new("\\").is_ok());
}
