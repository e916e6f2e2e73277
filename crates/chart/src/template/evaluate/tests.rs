use crate::template::testing::{check, check_errors, render};

#[test]
fn fields_and_variables() {
    check(&[
        ("{{ .Values.text }}", "words"),
        ("{{ .Values.map.deep.z }}", "end"),
        ("{{ $.Values.text }}", "words"),
        ("{{ $x := .Values.map }}{{ $x.deep.z }}", "end"),
        ("{{ $x := 1 }}{{ $x = 2 }}{{ $x }}", "2"),
        ("{{ $x := 1 }}{{ if true }}{{ $x := 2 }}{{ $x }}{{ end }}{{ $x }}", "21"),
        ("{{ $x := 1 }}{{ if true }}{{ $x = 2 }}{{ end }}{{ $x }}", "2"),
        ("{{ $x := $.Values.text | upper }}{{ $x }}", "WORDS"),
        ("{{ $ := \"mine\" }}{{ $ }}", "mine"),
        ("{{ (dict \"a\" (dict \"b\" 5)).a.b }}", "5"),
        ("{{ (index .Values.list 0) }}", "a"),
    ]);
}

#[test]
fn what_is_missing_prints_as_nothing() {
    check(&[
        ("[{{ .Values.missing }}{{ .Values.nothing }}]", "[]"),
        ("[{{ (.Values.missing).deeper }}{{ ((.Values.missing).deeper).still }}]", "[]"),
        ("[{{ $x := .Values.missing }}{{ $x.deeper.still }}]", "[]"),
        ("[{{ with .Values.missing }}x{{ end }}]", "[]"),
        ("{{ print .Values.missing }} {{ list nil }}", "<nil> [<nil>]"),
    ]);
    check_errors(&[
        ("{{ .Values.missing.deeper }}", ".Values.missing is not set, so it has no field \"deeper\""),
        ("{{ .Values.text.length }}", ".Values.text is a text, so it has no field \"length\""),
        ("{{ $x := .Values }}{{ $x.list.first }}", "$x.list is a list, so it has no field \"first\""),
    ]);
}

#[test]
fn numbers_of_the_values_stay_whole() {
    check(&[
        ("{{ .Values.num }} {{ .Values.big }} {{ .Values.float }}", "2 1000000 1.5"),
        (
            "{{ toString .Values.big }} {{ quote .Values.big }} {{ toJson .Values.big }}",
            "1000000 \"1000000\" 1000000",
        ),
        ("{{ toYaml (dict \"replicas\" .Values.num) }}", "replicas: 2"),
        ("{{ printf \"%d\" .Values.num }} {{ add .Values.num 1 }} {{ mul .Values.big 2 }}", "2 3 2000000"),
        ("{{ eq .Values.num 2 }} {{ gt .Values.num 1 }} {{ eq .Values.num 2.0 }}", "true true true"),
        ("{{ kindOf .Values.num }} {{ kindOf 2 }}", "float64 int"),
    ]);
    let large = render("{{ .Values.a }} {{ .Values.b }}", "a: 9007199254740993\nb: 1e6");
    assert_eq!(large.as_deref(), Ok("9007199254740993 1000000"));
}

#[test]
fn branches() {
    check(&[
        ("{{ if .Values.yes1 }}a{{ else }}b{{ end }}", "a"),
        ("{{ if .Values.no1 }}a{{ else if .Values.num }}b{{ else }}c{{ end }}", "b"),
        ("{{ if .Values.no1 }}a{{ else if .Values.no1 }}b{{ else }}c{{ end }}", "c"),
        (
            "{{ if .Values.emptyList }}a{{ end }}{{ if .Values.emptyMap }}b{{ end }}{{ if 0 }}c{{ end }}{{ if 0.0 }}d{{ end }}",
            "",
        ),
        ("{{ if \"\" }}a{{ end }}{{ if not nil }}b{{ end }}{{ if \"0\" }}c{{ end }}", "bc"),
        ("{{ if $x := .Values.text }}{{ $x }}{{ end }}", "words"),
        ("{{ with .Values.map }}{{ .x }}{{ $.Values.text }}{{ end }}", "1words"),
        ("{{ with .Values.missing }}a{{ else }}{{ .Values.text }}{{ end }}", "words"),
        ("{{ with .Values.missing }}a{{ else with .Values.text }}{{ . }}{{ end }}", "words"),
        ("{{ with $x := .Values.text }}{{ $x }}{{ . }}{{ end }}", "wordswords"),
    ]);
}

#[test]
fn loops() {
    check(&[
        ("{{ range .Values.list }}{{ . }},{{ end }}", "a,b,3,"),
        ("{{ range $v := .Values.list }}{{ $v }},{{ end }}", "a,b,3,"),
        ("{{ range $i, $v := .Values.list }}{{ $i }}{{ $v }},{{ end }}", "0a,1b,23,"),
        ("{{ range $k, $v := dict \"b\" 1 \"a\" 2 \"c\" 3 }}{{ $k }}{{ $v }}{{ end }}", "a2b1c3"),
        ("{{ range .Values.missing }}a{{ else }}none{{ end }}", "none"),
        ("{{ range .Values.emptyMap }}a{{ else }}none{{ end }}", "none"),
        ("{{ range 3 }}{{ . }}{{ end }}", "012"),
        ("{{ range until 3 }}{{ . }}{{ end }}", "012"),
        ("{{ range $i, $v := .Values.list }}{{ if eq $i 1 }}{{ break }}{{ end }}{{ $v }}{{ end }}!", "a!"),
        ("{{ range $i, $v := .Values.list }}{{ if eq $i 1 }}{{ continue }}{{ end }}{{ $v }}{{ end }}", "a3"),
        ("{{ range list 1 2 }}{{ range list 3 4 }}{{ . }}{{ break }}{{ end }}{{ . }}{{ end }}", "3132"),
        ("{{ $n := 0 }}{{ range .Values.list }}{{ $n = add $n 1 }}{{ end }}{{ $n }}", "3"),
        ("{{ $i := 9 }}{{ $v := 9 }}{{ range $i, $v = .Values.list }}{{ end }}{{ $i }}{{ $v }}", "23"),
        (
            "{{ $d := dict \"a\" 1 }}{{ range $k, $v := $d }}{{ $_ := set $d \"b\" 2 }}{{ end }}{{ $d }}",
            "map[a:1 b:2]",
        ),
        (
            "{{ range $p, $t := .Files.Glob \"conf/*\" }}{{ $p }}={{ len $t }};{{ end }}",
            "conf/a.txt=4;conf/b.json=2;",
        ),
        ("{{ range .Versions }}{{ . }},{{ end }}", "v1,apps/v1,"),
    ]);
    check_errors(&[
        ("{{ range .Values.text }}a{{ end }}", "range needs a list or a map, not a text"),
        ("{{ range .Values.num }}a{{ end }}", "range needs a list or a map, not a number"),
        ("{{ range $i, $v := 3 }}a{{ end }}", "range over a number has one variable"),
    ]);
}

#[test]
fn pipelines() {
    check(&[
        ("{{ .Values.missing | default \"d\" | upper | quote }}", "\"D\""),
        ("{{ .Values.map.deep.z | printf \"%s-%s\" \"a\" }}", "a-end"),
        ("{{ print (print 1 | print 2) 3 }}", "213"),
        ("{{ default list .Values.missing }}", "[]"),
        (
            "{{ and 1 0 2 }} {{ or 0 \"\" \"x\" \"y\" }} {{ and true \"a\" }} {{ or nil false }} {{ 5 | and true }}",
            "0 x a false 5",
        ),
        ("{{ and .Values.missing .Values.missing.x }}{{ or .Values.text .Values.missing.x }}", "words"),
        ("{{ not 1 }} {{ not nil }}", "false true"),
    ]);
    check_errors(&[
        ("{{ nil }}", "nil is not a command"),
        ("{{ 5 6 }}", "an argument is given to something that is no function"),
        ("{{ .Values.text \"x\" }}", ".Values.text is no function"),
        ("{{ \"x\" | .Values.text }}", ".Values.text is no function"),
        ("{{ and }}", "an argument is missing"),
        ("{{ upper \"a\" \"b\" }}", "upper: wrong number of arguments: wants 1, got 2"),
        ("{{ slice }}", "slice: wrong number of arguments: wants 1 to 3, got 0"),
        ("{{ eq 1 }}", "eq: wrong number of arguments: wants at least 2, got 1"),
    ]);
}

#[test]
fn templates_in_templates() {
    check(&[
        (
            r#"{{ define "x" }}[{{ . }}]{{ end }}{{ template "x" 1 }}{{ include "x" 2 | quote }}{{ template "x" }}"#,
            "[1]\"[2]\"[]",
        ),
        (r#"{{ block "x" .Values.text }}<{{ . }}>{{ end }}{{ template "x" 1 }}"#, "<words><1>"),
        (r#"{{ define "x" }}{{ $.y }}{{ end }}{{ include "x" (dict "y" 5) }}"#, "5"),
        (
            r#"{{ define "x" }}{{ if gt . 0 }}{{ . }}{{ include "x" (sub . 1) }}{{ end }}{{ end }}{{ include "x" 5 }}"#,
            "54321",
        ),
        (r#"{{ tpl "{{ .Values.text }}{{ . | len }}" . }}"#, "words3"),
        (r#"{{ tpl "{{ define \"q\" }}Q{{ . }}{{ end }}{{ include \"q\" 1 }}" . }}"#, "Q1"),
        (r#"{{ define "x" }}X{{ end }}{{ tpl "{{ include \"x\" . }}" . }}"#, "X"),
        (r#"{{ tpl "" . }}{{ tpl "{{/* c */}}" . }}{{ tpl "{{ .missing }}|" . }}"#, "|"),
        (
            r#"{{ define "x" }}{{ $_ := set . "a" 2 }}{{ end }}{{ $d := dict "a" 1 }}{{ include "x" $d }}{{ $d.a }}"#,
            "2",
        ),
    ]);
    check_errors(&[
        ("{{ template \"nope\" }}", "there is no template \"nope\""),
        ("{{ include \"nope\" . }}", "there is no template \"nope\""),
        (
            "{{ tpl \"{{ define \\\"q\\\" }}{{ end }}\" . }}{{ include \"q\" . }}",
            "there is no template \"q\"",
        ),
        ("{{ tpl \"{{ .x\" . }}", "tpl: cannot read \"{{ .x\", line 1: unclosed action"),
        ("{{ tpl \"{{ fail \\\"no\\\" }}\" . }}", "no"),
    ]);
}

#[test]
fn methods_of_built_in_objects() {
    check(&[
        ("{{ .Files.Get \"conf/a.txt\" }}|{{ .Files.Get \"nope\" }}", "A\nB\n|"),
        ("{{ (.Files.Glob \"conf/*\").AsConfig }}", "a.txt: |\n  A\n  B\nb.json: '{}'"),
        ("{{ (.Files.Glob \"conf/*.txt\").AsSecrets }}", "a.txt: QQpCCg=="),
        ("{{ range .Files.Lines \"conf/a.txt\" }}<{{ . }}>{{ end }}", "<A><B>"),
        ("{{ with .Files.Glob \"nope/*\" }}x{{ end }}", ""),
        (
            "{{ .Versions.Has \"apps/v1\" }} {{ .Versions.Has \"batch/v1\" }} {{ \"v1\" | .Versions.Has }}",
            "true false true",
        ),
    ]);
    check_errors(&[
        ("{{ .Files.Get }}", "Get: there is no such method"),
        ("{{ .Files.Got \"x\" }}", "Got: there is no such method"),
    ]);
}

#[test]
fn an_error_names_its_line_and_who_included_it() {
    use crate::template::{Budget, Templates, Value, add, execute, parse};
    let mut templates = Templates::new();
    add(&mut templates, parse("helpers", "\n{{ define \"x\" }}\n{{ fail \"not so\" }}{{ end }}").unwrap());
    add(&mut templates, parse("main", "a\n\n\n{{ include \"x\" . }}").unwrap());
    let fault = execute(&templates, &templates["main"], &Value::Nil, &Budget::default()).unwrap_err();
    assert_eq!((fault.place.to_string().as_str(), fault.message.as_str()), ("helpers:3", "not so"));
    assert_eq!(fault.trail.iter().map(ToString::to_string).collect::<Vec<_>>(), ["main:4"]);
}

#[test]
fn a_template_that_includes_itself_is_an_error() {
    for template in [
        r#"{{ define "x" }}{{ include "x" . }}{{ end }}{{ include "x" . }}"#,
        r#"{{ define "x" }}{{ template "x" . }}{{ end }}{{ template "x" . }}"#,
        r#"{{ $t := "{{ tpl .t . }}" }}{{ tpl $t (dict "t" $t) }}"#,
    ] {
        check_errors(&[(template, "does a template include itself?")]);
    }
}

#[test]
fn a_chart_that_would_not_end_or_would_fill_the_memory_is_an_error() {
    let tree = r#"{{ $x := dict }}{{ range until 60 }}{{ $x = dict "a" $x "b" $x }}{{ end }}"#;
    for template in [
        "{{ range until 1000000000 }}{{ end }}",
        "{{ range 1000000000000 }}{{ end }}",
        "{{ range 1000000000000 }}x{{ end }}",
        r#"{{ repeat 1000000000000 "x" }}"#,
        r#"{{ indent 1000000000000 "x" }}"#,
        r#"{{ replace "" (repeat 100000 "x") (repeat 100000 "x") }}"#,
        r#"{{ regexReplaceAll "x" (repeat 100000 "x") (repeat 100000 "$0") }}"#,
        r#"{{ range 1000000 }}{{ $x := regexMatch "(a|b|ab)*c{1,100}" "ababab" }}{{ end }}"#,
        r#"{{ $x := "12345678" }}{{ range until 60 }}{{ $x = print $x $x }}{{ end }}"#,
        r#"{{ $x := "12345678" }}{{ range until 60 }}{{ $x = tpl "{{ . }}{{ . }}" $x }}{{ end }}"#,
        "{{ $x := list 1 2 }}{{ range until 60 }}{{ $x = concat $x $x }}{{ end }}",
        r#"{{ fromYaml (repeat 1000000 "- {a: b}\n") }}"#,
        r#"{{ fromJson (repeat 1000000 "{\"a\":") }}"#,
        &format!("{tree}{{{{ toYaml $x }}}}"),
        &format!("{tree}{{{{ print $x }}}}"),
        &format!("{tree}{{{{ deepCopy $x }}}}"),
        &format!("{tree}{{{{ has (dict \"a\" $x) (list (dict \"a\" $x)) }}}}"),
    ] {
        check_errors(&[(template, "more than it may")]);
    }
    check_errors(&[
        (r#"{{ printf "%1000000000d" 1 }}"#, "a width of more than"),
        (r#"{{ printf "%.1000000000f" 1.0 }}"#, "a width of more than"),
    ]);
}

#[test]
fn a_map_inside_itself_is_an_error_where_it_would_not_end() {
    for action in
        ["$x", "toJson $x", "toYaml $x", "deepCopy $x", "has $x (list $x)", "merge $x (dict \"x\" $x)"]
    {
        let template = format!("{{{{ $x := dict }}}}{{{{ $_ := set $x \"x\" $x }}}}{{{{ {action} }}}}");
        check_errors(&[(&template, "is a map inside itself?")]);
    }
}

#[test]
fn what_is_nested_very_deep_is_dropped_without_an_overflow() {
    check(&[
        ("{{ $x := list }}{{ range 30000 }}{{ $x = list $x }}{{ end }}done", "done"),
        ("{{ $x := dict }}{{ range 30000 }}{{ $x = dict \"x\" $x }}{{ end }}done", "done"),
    ]);
}

#[test]
fn the_depth_that_is_allowed_fits_into_the_stack_of_a_thread() {
    // Each level is a template, a condition and a parenthesis: what costs the most stack per level.
    let template =
        "{{ define \"x\" }}{{ if . }}{{ (print (include \"x\" .)) }}{{ end }}{{ end }}{{ include \"x\" 1 }}";
    let thread = std::thread::Builder::new().stack_size(2 << 20);
    let error = thread.spawn(|| render(template, "{}")).unwrap().join().unwrap().unwrap_err();
    assert!(error.contains("inside each other"), "{error}");
}
