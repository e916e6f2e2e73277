use crate::template::testing::{check, check_errors};

#[test]
fn printf_is_gos() {
    check(&[
        (r#"{{ printf "%+v %+v %+v" 5 1.5 (list 1) }}"#, "5 1.5 [1]"),
        (r#"{{ printf "%d %s %v %q %t %%" 5 "s" 1.5 "q\"" true }}"#, r#"5 s 1.5 "q\"" true %"#),
        (
            r#"{{ printf "%5d|%-5d|%05d|%+d|% d|%.3d|%8.3d" 42 42 42 5 7 5 5 }}"#,
            "   42|42   |00042|+5| 7|005|     005",
        ),
        (
            r#"{{ printf "%08d|%+08d|%x|%X|%#x|%o|%b|%O" -42 42 255 255 255 8 5 8 }}"#,
            "-0000042|+0000042|ff|FF|0xff|10|101|0o10",
        ),
        (
            r#"{{ printf "%5s|%-5s|%.2s|%5.1s|%x|%X" "ab" "ab" "abcdef" "xyz" "hi" "hi" }}"#,
            "   ab|ab   |ab|    x|6869|6869",
        ),
        (
            r#"{{ printf "%f|%.2f|%08.3f|%6.2f|%-8.1f|%+.1f" 1.5 2.345 3.14159 -1.5 2.25 1.0 }}"#,
            "1.500000|2.35|0003.142| -1.50|2.2     |+1.0",
        ),
        (
            r#"{{ printf "%e|%.1e|%E|%g|%G|%.3g" 12345.678 12345.678 0.0 1e6 1e-10 1234.5678 }}"#,
            "1.234568e+04|1.2e+04|0.000000E+00|1e+06|1E-10|1.23e+03",
        ),
        (
            r#"{{ printf "%c|%3c|%q|%U|%T|%T|%T" 65 66 65 128512 "x" 1 nil }}"#,
            "A|  B|'A'|U+1F600|string|int|<nil>",
        ),
        (r#"{{ printf "%5t|%-7v|%6v|%+v|%#v" true false true "x" "y" }}"#, r#" true|false  |  true|x|"y""#),
        (r#"{{ printf "%10s|%-10s|" "é" "é" }}"#, "         é|é         |"),
        (
            r#"{{ printf "%v %s %q %d" (list 1 "a" nil) (list "a" "b") (list "a" "b") (list 1 2) }}"#,
            r#"[1 a <nil>] [a b] ["a" "b"] [1 2]"#,
        ),
        (r#"{{ printf "%v" (dict "b" (list 1) "a" 1) }}"#, "map[a:1 b:[1]]"),
        // Numbers of the values can be printed both ways.
        (
            r#"{{ printf "%d %05d %.1f %v" .Values.num .Values.num .Values.num .Values.big }}"#,
            "2 00002 2.0 1000000",
        ),
    ]);
}

#[test]
fn a_verb_that_does_not_suit_can_be_seen() {
    check(&[
        (
            r#"{{ printf "%s" 5 }} {{ printf "%d" "x" }} {{ printf "%t" "x" }} {{ printf "%s" true }}"#,
            "%!s(int=5) %!d(string=x) %!t(string=x) %!s(bool=true)",
        ),
        (
            r#"{{ printf "%s" nil }} {{ printf "%d" 1.5 }} {{ printf "%z" 3 }} {{ printf "%f" 3 }}"#,
            "%!s(<nil>) %!d(float64=1.5) %!z(int=3) %!f(int=3)",
        ),
        (
            r#"{{ printf "%d" }} {{ printf "%s %s" "a" }} {{ printf "x" 1 "a" }} {{ printf "%" }}"#,
            "%!d(MISSING) a %!s(MISSING) x%!(EXTRA int=1, string=a) %!(NOVERB)",
        ),
    ]);
    check_errors(&[
        (r#"{{ printf "%*d" 5 1 }}"#, "%* is not supported"),
        (r#"{{ printf "%[1]d" 1 }}"#, "%[ is not supported"),
    ]);
}

#[test]
fn numbers_with_a_fraction_look_as_in_go() {
    check(&[
        ("{{ 1.0 }} {{ 1.5 }} {{ 0.1 }} {{ 100000.5 }} {{ 123456.7 }}", "1 1.5 0.1 100000.5 123456.7"),
        (
            "{{ 1000000.0 }} {{ 1234567.8 }} {{ 123456789.0 }} {{ 1e20 }} {{ 1e21 }}",
            "1e+06 1.2345678e+06 1.23456789e+08 1e+20 1e+21",
        ),
        ("{{ 0.0001 }} {{ 0.00001 }} {{ 1e-7 }} {{ -1.5 }}", "0.0001 1e-05 1e-07 -1.5"),
    ]);
}
