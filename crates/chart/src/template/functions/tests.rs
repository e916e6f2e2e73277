use super::{TABLES, find};
use crate::template::testing::{check, check_errors};

#[test]
fn every_function_has_a_name_of_its_own() {
    let mut names: Vec<&str> = TABLES.iter().copied().flatten().map(|function| function.name).collect();
    let count = names.len();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), count);
    assert!(find("quote").is_some() && find("randAlphaNum").is_none());
}

#[test]
fn defaults_and_choices() {
    check(&[
        (
            r#"{{ default "d" "" }} {{ default "d" 0 }} {{ default "d" false }} {{ default "d" nil }}"#,
            "d d d d",
        ),
        (
            r#"{{ default "d" (list) }} {{ default "d" (dict) }} {{ default "d" "x" }} {{ default "d" }}"#,
            "d d x d",
        ),
        (r#"{{ coalesce nil "" 0 "x" "y" }}|{{ coalesce }}|{{ coalesce nil "" }}"#, "x||"),
        (r#"{{ ternary "t" "f" true }} {{ false | ternary "t" "f" }}"#, "t f"),
        (
            r#"{{ empty "" }} {{ empty nil }} {{ empty 0 }} {{ empty .Values.float }} {{ empty (list) }}"#,
            "true true true false true",
        ),
        ("{{ any 0 1 }} {{ all 0 1 }} {{ all }} {{ any }}", "true false true false"),
        (r#"{{ required "need" "x" }} {{ required "need" 0 }} {{ required "need" false }}"#, "x 0 false"),
        (r#"{{ lookup "v1" "Pod" "" "" }} {{ (lookup "v1" "Pod" "ns" "x").metadata }}"#, "map[] "),
    ]);
    check_errors(&[
        (r#"{{ required "set it" .Values.missing }}"#, "1: set it"),
        (r#"{{ .Values.missing | required "set it" }}"#, "1: set it"),
        (r#"{{ required "set it" "" }}"#, "1: set it"),
        (r#"{{ fail "stop here" }}"#, "1: stop here"),
        (r#"{{ ternary "t" "f" "x" }}"#, "ternary: argument 3 must be true or false, but is a text"),
    ]);
}

#[test]
fn comparisons() {
    check(&[
        (r#"{{ eq 1 1 }} {{ eq "a" "b" }} {{ eq true true }} {{ eq 1.5 1.5 }}"#, "true false true true"),
        (r#"{{ eq .Values.text "a" "b" "words" }} {{ eq 3 1 2 }}"#, "true false"),
        (
            r#"{{ eq nil nil }} {{ eq .Values.missing "x" }} {{ eq "x" nil }} {{ ne .Values.missing nil }}"#,
            "true false false false",
        ),
        (r#"{{ ne 1 2 }} {{ lt 1 2 }} {{ le 2 2 }} {{ gt 1 2 }} {{ ge 2 2 }}"#, "true true true false true"),
        (r#"{{ lt "a" "b" }} {{ ge "b" "a" }} {{ gt 1.5 1 }} {{ lt 1 1.5 }}"#, "true true true true"),
    ]);
    check_errors(&[
        (r#"{{ eq "a" 1 }}"#, "a text cannot be compared with a number"),
        (r#"{{ eq true 1 }}"#, "cannot be compared"),
        (r#"{{ eq .Values.list .Values.list }}"#, "a list cannot be compared with a list"),
        (r#"{{ lt true false }}"#, "cannot be compared"),
        (r#"{{ gt .Values.missing 1 }}"#, "nothing cannot be compared with a number"),
    ]);
}

#[test]
fn texts() {
    check(&[
        (
            r#"{{ quote "a" 1 nil true 1.5 }}|{{ quote }}|{{ quote nil }}|{{ quote "" }}"#,
            r#""a" "1" "true" "1.5"|||"""#,
        ),
        (
            r#"{{ quote "é\n\t\"\\ \x01 \u200b" }} {{ quote (list "a" 1) }}"#,
            r#""é\n\t\"\\ \x01 \u200b" "[a 1]""#,
        ),
        (r#"{{ squote "a'b" 2 }}"#, "'a'b' '2'"),
        (
            r#"{{ upper "aé" }} {{ lower "AÉ" }} {{ title "hello wORLD foo-bar baz_qux it's" }}"#,
            "AÉ aé Hello WORLD Foo-Bar Baz_qux It'S",
        ),
        (
            r#"[{{ trim " \n a b \t" }}] {{ trimAll "$" "$5.00$" }} {{ trimSuffix "-" "a--" }} {{ trimPrefix "v" "v1" }}"#,
            "[a b] 5.00 a- 1",
        ),
        (
            r#"{{ trunc 3 "abcdef" }} {{ trunc -2 "abcdef" }} {{ trunc 9 "abc" }} {{ trunc 2 "éé" }} {{ trunc 1 "é" }}"#,
            "abc ef abc é ",
        ),
        (
            r#"{{ substr 1 3 "abcdef" }} {{ substr -1 3 "abcdef" }} {{ substr 2 -1 "abcdef" }} {{ substr 2 99 "abcdef" }}"#,
            "bc abc cdef cdef",
        ),
        (
            r#"{{ replace "a" "b" "banana" }} {{ replace "" "-" "ab" }} {{ nospace " a b\tc\n" }} {{ repeat 3 "ab" }}"#,
            "bbnbnb -a-b- abc ababab",
        ),
        (
            r#"{{ contains "an" "banana" }} {{ hasPrefix "b" "ban" }} {{ hasSuffix "x" "ban" }}"#,
            "true true false",
        ),
        (
            r#"{{ indent 2 "a\nb" }}|{{ nindent 2 "a\n\nb" }}|{{ nindent 4 "" }}"#,
            "  a\n  b|\n  a\n  \n  b|\n    ",
        ),
        (
            r#"{{ join "," .Values.list }} {{ join "-" (list 1 nil "a") }} {{ join "," "x" }}{{ join "," nil }}"#,
            "a,b,3 1-a x",
        ),
        (
            r#"{{ splitList "," "a,b,c" }} {{ splitList "" "ab" }} {{ splitList "," "" | len }}"#,
            "[a b c] [a b] 1",
        ),
        (r#"{{ (split "," "a,b")._1 }} {{ splitn "," 2 "a,b,c" }}"#, "b map[_0:a _1:b,c]"),
        (
            r#"{{ cat "a" 1 nil "b" }} {{ toString 1.5 }} {{ toString true }} {{ toString nil }} {{ toStrings (list 1 "a") }}"#,
            "a 1 b 1.5 true <nil> [1 a]",
        ),
        (r#"{{ urlquery "a b&c=é/~" }}"#, "a+b%26c%3D%C3%A9%2F~"),
        (
            r#"{{ print 1 2 "a" "b" 3 4 nil true }}|{{ println "a" 1 }}|{{ print }}"#,
            "1 2ab3 4 <nil> true|a 1\n|",
        ),
    ]);
    check_errors(&[
        ("{{ upper 5 }}", "upper: argument 1 must be a text, but is a number"),
        ("{{ trim .Values.missing }}", "trim: argument 1 must be a text, but is nothing"),
        (r#"{{ trunc "a" "b" }}"#, "trunc: argument 1 must be a whole number, but is a text"),
        (r#"{{ repeat -1 "ab" }}"#, "cannot repeat a text -1 times"),
        (r#"{{ substr 4 2 "abcdef" }}"#, "4 to 2 is no part of a text of 6 bytes"),
    ]);
}

#[test]
fn numbers() {
    check(&[
        ("{{ add 1 2 3 }} {{ add }} {{ add1 4 }} {{ sub 5 2 }} {{ mul 2 3 4 }}", "6 0 5 3 24"),
        (
            "{{ div 7 2 }} {{ div -7 2 }} {{ mod 7 3 }} {{ mod -7 3 }} {{ max 1 5 3 }} {{ max -1 -5 }} {{ min 4 2 }}",
            "3 -3 1 -1 5 -1 2",
        ),
        (
            r#"{{ add 1.9 "2" }} {{ add "x" 1 }} {{ floor 1.7 }} {{ ceil 1.2 }} {{ round 1.256 2 }}"#,
            "3 1 1 2 1.26",
        ),
        (
            r#"{{ int "08" }} {{ int "0x1f" }} {{ int "010" }} {{ int "-7" }} {{ int "1_000" }} {{ int "5.0" }} {{ int "5.1" }}"#,
            "0 31 8 -7 1000 5 0",
        ),
        (
            r#"{{ int 2.9 }} {{ int -2.9 }} {{ int true }} {{ int nil }} {{ int "abc" }} {{ int "" }} {{ int (list) }} {{ int64 "12" }}"#,
            "2 -2 1 0 0 0 0 12",
        ),
        (
            r#"{{ float64 "1.5" }} {{ float64 3 }} {{ float64 "x" }} {{ atoi "5" }} {{ atoi "x" }}"#,
            "1.5 3 0 5 0",
        ),
        (
            "{{ until 3 }} {{ until -3 }} {{ until 0 }} {{ untilStep 0 10 3 }} {{ untilStep 10 0 -4 }} {{ untilStep 0 5 -1 }} {{ untilStep 0 5 0 }}",
            "[0 1 2] [0 -1 -2] [] [0 3 6 9] [10 6 2] [] []",
        ),
        ("{{ untilStep 9223372036854775806 9223372036854775807 2 }}", "[9223372036854775806]"),
    ]);
    check_errors(&[
        ("{{ div 7 0 }}", "7 cannot be divided by 0"),
        ("{{ mod 7 0 }}", "7 cannot be divided by 0"),
        ("{{ div -9223372036854775808 -1 }}", "cannot be divided"),
    ]);
}

#[test]
fn lists() {
    check(&[
        (
            r#"{{ has 3 .Values.list }} {{ has 3.0 .Values.list }} {{ without .Values.list 3 "a" }}[{{ slice (list) 3 }}]"#,
            "false true [b 3][]",
        ),
        ("{{ list }} {{ list 1 \"a\" nil }} {{ tuple 1 2 }}", "[] [1 a <nil>] [1 2]"),
        (
            "{{ first (list 1 2) }} {{ last (list 1 2) }} {{ rest (list 1 2 3) }} {{ initial (list 1 2 3) }}",
            "1 2 [2 3] [1 2]",
        ),
        ("[{{ first (list) }}{{ last (list) }}] {{ rest (list) }} {{ initial (list) }}", "[] [] []"),
        (
            "{{ append (list 1) 2 }} {{ prepend (list 1) 0 }} {{ concat (list 1) (list 2 3) (list) }} {{ reverse (list 1 2 3) }}",
            "[1 2] [0 1] [1 2 3] [3 2 1]",
        ),
        (
            r#"{{ has 2 (list 1 2) }} {{ has "x" nil }} {{ has (dict "a" 1) (list (dict "a" 1)) }} {{ has (list 1) (list (list 2)) }}"#,
            "true false true false",
        ),
        (
            r#"{{ without (list 1 2 3) 2 3 }} {{ uniq (list 1 1 "a" "a" 2) }} {{ compact (list 0 1 "" "a" nil) }}"#,
            "[1] [1 a 2] [1 a]",
        ),
        (r#"{{ sortAlpha (list "b" "a" 3) }} {{ sortAlpha "x" }}"#, "[3 a b] [x]"),
        (r#"{{ len .Values.map }} {{ len "héé" }} {{ len .Values.list }} {{ len (list) }}"#, "2 5 3 0"),
        (
            r#"{{ index .Values "map" "deep" "z" }} {{ index .Values.list 1 }}[{{ index .Values "missing" }}] {{ index (list (list 1 2)) 0 1 }}"#,
            "end b[] 2",
        ),
        (
            r#"{{ slice (list 1 2 3) 1 }} {{ slice (list 1 2 3) 0 2 }} {{ slice (list 1 2) }} {{ slice "abc" 1 2 }}"#,
            "[2 3] [1 2] [1 2] b",
        ),
    ]);
    check_errors(&[
        ("{{ first nil }}", "first: argument 1 must be a list, but is nothing"),
        ("{{ index .Values.list 7 }}", "index out of range: 7 of 3 items"),
        ("{{ index .Values.list -1 }}", "index out of range"),
        (r#"{{ index .Values "missing" "x" }}"#, "what is not set cannot be indexed"),
        (r#"{{ index .Values.list "x" }}"#, "a list cannot be indexed with a text"),
        ("{{ len 5 }}", "a number has no length"),
        ("{{ len nil }}", "nothing has no length"),
        ("{{ slice (list 1) 0 2 }}", "0 to 2 is out of range: the length is 1"),
    ]);
}

#[test]
fn maps() {
    check(&[
        (
            r#"{{ merge (dict) (dict "a" nil "b" false) }} {{ mergeOverwrite (dict "a" 1) (dict "a" nil) }}"#,
            "map[b:false] map[a:<nil>]",
        ),
        (r#"{{ dict "a" 1 "b" }} {{ dict 1 2 }} {{ dict }}"#, "map[a:1 b:] map[1:2] map[]"),
        (r#"{{ $d := dict "a" 1 }}{{ $_ := set $d "b" 2 }}{{ $_ := unset $d "a" }}{{ $d }}"#, "map[b:2]"),
        (
            r#"{{ get .Values.map "x" }}[{{ get .Values.map "no" }}] {{ hasKey .Values "text" }} {{ hasKey .Values "no" }}"#,
            "1[] true false",
        ),
        (
            r#"{{ keys (dict "b" 1 "a" 2) }} {{ values (dict "b" 1 "a" 2) }} {{ pluck "a" (dict "a" 1) (dict "b" 2) (dict "a" 3) }}"#,
            "[a b] [2 1] [1 3]",
        ),
        (r#"{{ pick (dict "a" 1 "b" 2) "a" "q" }} {{ omit (dict "a" 1 "b" 2) "a" }}"#, "map[a:1] map[b:2]"),
        (
            r#"{{ dig "a" "b" "def" (dict "a" (dict "b" 5)) }} {{ dig "a" "c" "def" (dict "a" (dict "b" 5)) }}"#,
            "5 def",
        ),
        (
            r#"{{ merge (dict "a" 1 "m" (dict "x" 1)) (dict "a" 2 "b" 3 "m" (dict "x" 2 "y" 3)) | toJson }}"#,
            r#"{"a":1,"b":3,"m":{"x":1,"y":3}}"#,
        ),
        (
            r#"{{ merge (dict "a" false "b" "" "c" 0) (dict "a" true "b" "B" "c" 3) | toJson }}"#,
            r#"{"a":true,"b":"B","c":3}"#,
        ),
        (
            r#"{{ merge (dict "l" (list 1) "s" "s") (dict "l" (list 2 3) "s" (dict "x" 1)) | toJson }}"#,
            r#"{"l":[1],"s":"s"}"#,
        ),
        (
            r#"{{ mergeOverwrite (dict "a" true "m" (dict "x" 1 "y" 1)) (dict "a" false "m" (dict "x" 2)) | toJson }}"#,
            r#"{"a":false,"m":{"x":2,"y":1}}"#,
        ),
        (
            r#"{{ mergeOverwrite (dict "a" (dict "x" 1)) (dict "a" "s") | toJson }} {{ mergeOverwrite (dict "m" (dict "x" 1)) (dict "m" (dict)) | toJson }}"#,
            r#"{"a":"s"} {"m":{"x":1}}"#,
        ),
        (
            r#"{{ $a := dict "a" 1 }}{{ $_ := merge $a (dict "b" 2) }}{{ $a }} {{ $_ := merge $a $a }}{{ $a }}"#,
            "map[a:1 b:2] map[a:1 b:2]",
        ),
        (
            r#"{{ $a := dict "x" (dict "y" 1) }}{{ $b := deepCopy $a }}{{ $_ := set $b.x "y" 2 }}{{ $a.x.y }}{{ $b.x.y }}"#,
            "12",
        ),
    ]);
    check_errors(&[
        (r#"{{ get .Values.missing "x" }}"#, "get: argument 1 must be a map, but is nothing"),
        (r#"{{ set (list) "x" 1 }}"#, "set: argument 1 must be a map, but is a list"),
        (r#"{{ dig "a" "b" "def" (dict "a" 1) }}"#, "there is no map in which to look for \"b\""),
    ]);
}

#[test]
fn encodings() {
    check(&[
        (
            r#"{{ toYaml .Values.map }}|{{ toYaml nil }}|{{ toYaml "x" }}|{{ toYaml (list 1 "a") }}"#,
            "deep:\n  z: end\nx: 1|null|x|- 1\n- a",
        ),
        (
            r#"{{ toJson (dict "a" "<b>&" "c" nil) }} {{ toRawJson (dict "a" "<b>&") }} {{ toJson 1.0 }} {{ toJson 1.5 }}"#,
            r#"{"a":"\u003cb\u003e\u0026","c":null} {"a":"<b>&"} 1 1.5"#,
        ),
        (
            r#"{{ toPrettyJson (dict "a" (list 1 2) "b" (dict)) }}"#,
            "{\n  \"a\": [\n    1,\n    2\n  ],\n  \"b\": {}\n}",
        ),
        (
            r#"{{ (fromYaml "a: 1\nb: [x]").b }} {{ fromYaml "" }} {{ fromYamlArray "[1, a]" }} {{ (fromYaml "a: 1000000").a }}"#,
            "[x] map[] [1 a] 1000000",
        ),
        (
            r#"{{ (fromJson "{\"a\":{\"b\":1}}").a.b }} {{ fromJson "null" }} {{ fromJsonArray "[1]" }}"#,
            "1 map[] [1]",
        ),
        (
            r#"{{ hasKey (fromYaml "[1") "Error" }} {{ hasKey (fromYaml "x") "Error" }} {{ hasKey (fromJson "[") "Error" }} {{ len (fromYamlArray "x") }}"#,
            "true true true 1",
        ),
        (r#"{{ b64enc "hello" }} {{ b64dec "aGVsbG8=" }} {{ b64enc "" }}"#, "aGVsbG8= hello "),
        (r#"{{ sha256sum "x" }}"#, "2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881"),
    ]);
}

#[test]
fn regular_expressions() {
    check(&[
        (
            r#"{{ regexMatch "^a+$" "aaa" }} {{ regexMatch "b" "aaa" }} {{ regexFind "[0-9]+" "ab12c3" }}[{{ regexFind "x" "a" }}]"#,
            "true false 12[]",
        ),
        (
            r#"{{ regexReplaceAll "a(x*)b" "-ab-axxb-" "${1}W" }} {{ regexReplaceAll "a(x*)b" "-ab-axxb-" "$1W" }}"#,
            "-W-xxW- ---",
        ),
        (r#"{{ regexReplaceAllLiteral "a" "banana" "$1" }} {{ regexQuoteMeta "1.2" }}"#, r"b$1n$1n$1 1\.2"),
        (
            r#"{{ regexFindAll "[0-9]" "1a2b3" 2 }} {{ regexFindAll "[0-9]" "1a2b3" -1 }} {{ regexSplit "," "a,b,c" -1 }} {{ regexSplit "," "a,b,c" 2 }}"#,
            "[1 2] [1 2 3] [a b c] [a b,c]",
        ),
    ]);
    check_errors(&[(r#"{{ regexMatch "[" "x" }}"#, "unclosed character class")]);
}

#[test]
fn kinds_and_types() {
    check(&[
        (
            r#"{{ kindOf "a" }} {{ kindOf 1 }} {{ kindOf 1.5 }} {{ kindOf true }} {{ kindOf nil }} {{ kindOf (list) }} {{ kindOf (dict) }}"#,
            "string int float64 bool invalid slice map",
        ),
        (
            r#"{{ kindIs "string" "a" }} {{ kindIs "int64" (add 1 2) }} {{ kindIs "float64" .Values.num }} {{ kindIs "map" .Values }}"#,
            "true true true true",
        ),
        (
            r#"{{ typeOf (dict) }} {{ typeOf (list) }} {{ typeOf nil }} {{ typeIs "string" "a" }} {{ typeIsLike "string" 1 }}"#,
            "map[string]interface {} []interface {} <nil> true false",
        ),
    ]);
}

/// What the library that Helm uses answers; an empty answer stands for an error.
#[test]
fn version_constraints() {
    for (constraint, versions) in [
        (">=1.19-0", "1.19.0 v1.32.1 1.20.0-rc.1 v1.30.4+k3s1 !1.18.9"),
        (">=1.32.0-0", "v1.32.0 1.32.0-gke.1 1.33.1 !v1.31.9"),
        (">=1.19", "1.19.0 !1.20.0-rc.1 !1.18.0"),
        ("^1.2.3", "1.2.3 1.9.0 !2.0.0 !1.2.2 !1.2.3-beta"),
        ("^0.2.3", "0.2.3 0.2.9 !0.3.0"),
        ("^0.0.3", "0.0.3 !0.0.4"),
        ("^0.0", "0.0.9 !0.1.0"),
        ("^0", "0.9.9 !1.0.0"),
        ("~1.2.3", "1.2.9 !1.3.0"),
        ("~1", "1.9.0 !2.0.0"),
        ("1.2.3", "1.2.3 1.2.3+build !1.2.4"),
        ("1.2", "1.2.9 !1.3.0"),
        ("1.x", "1.9.9 !2.0.0"),
        ("*", "0.0.0 3.1.4"),
        (">1.2", "1.3.0 !1.2.9"),
        ("<=1.2", "1.2.9 1.1.0 !1.3.0"),
        ("<1.2", "1.1.9 !1.2.0"),
        ("!=1.2.x", "1.3.0 !1.2.3"),
        (">=1.2.3, <2", "1.9.0 !2.0.0"),
        (">= 1.2.3 <2.0.0", "1.9.0 !2.0.0"),
        ("1.2 - 1.4", "1.2.0 1.4.5 !1.5.0"),
        ("<1.0 || >=2.0", "0.9.0 2.0.0 !1.5.0"),
        ("^1.2.3-beta", "1.2.3-beta 1.2.3-beta.2 1.3.0 !1.2.3-alpha"),
    ] {
        for version in versions.split(' ') {
            let (expected, version) =
                version.strip_prefix('!').map_or((true, version), |version| (false, version));
            assert_eq!(super::satisfies(constraint, version), Ok(expected), "{version} for {constraint}");
        }
    }
    for (constraint, version) in [
        ("bad", "1.2.3"),
        (">>1", "1.2.3"),
        ("1.2.3.4", "1.2.3"),
        ("", "1.2.3"),
        (">=1", "nope"),
        (">=1", "1.2.3.4"),
        (">=1", ""),
    ] {
        assert!(super::satisfies(constraint, version).is_err(), "{version:?} for {constraint:?}");
    }
}
