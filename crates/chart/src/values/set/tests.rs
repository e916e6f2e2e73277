use proptest::prelude::*;
use serde_json::{Value, json};

use super::{set, set_string};

fn base() -> Value {
    json!({ "text": "words", "nothing": null, "map": { "a": 1, "list": ["x", { "k": "v" }] }, "list": ["a", "b"] })
}

/// The base with something laid over it.
fn with(over: &Value) -> Value {
    let mut values = base();
    crate::values::merge(&mut values, over);
    values
}

#[test]
fn the_grammar_is_helms() {
    for (argument, over) in [
        ("", json!({})),
        ("a=1", json!({ "a": 1 })),
        ("a=1,b=two,", json!({ "a": 1, "b": "two" })),
        ("a=", json!({ "a": "" })),
        ("a=,b=2", json!({ "a": "", "b": 2 })),
        ("a.b.c=x,a.b.d=y", json!({ "a": { "b": { "c": "x", "d": "y" } } })),
        ("map.b=2", json!({ "map": { "b": 2 } })),
        ("map.a=3", json!({ "map": { "a": 3 } })),
        ("map=null", json!({ "map": null })),
        ("nothing.x=1", json!({ "nothing": { "x": 1 } })),
        // Lists.
        ("a={x,y},b=1", json!({ "a": ["x", "y"], "b": 1 })),
        ("a={1,true,null}", json!({ "a": [1, true, null] })),
        ("a={}", json!({ "a": [""] })),
        ("a={x\\,y,z\\}}", json!({ "a": ["x,y", "z}"] })),
        ("a[0]=x", json!({ "a": ["x"] })),
        ("a[2]=x", json!({ "a": [null, null, "x"] })),
        ("a[0].b=c,a[1].b=d", json!({ "a": [{ "b": "c" }, { "b": "d" }] })),
        ("a[0][1]=z", json!({ "a": [[null, "z"]] })),
        ("a[0]={x,y}", json!({ "a": [["x", "y"]] })),
        ("a.b[0].c[1].d=e", json!({ "a": { "b": [{ "c": [null, { "d": "e" }] }] } })),
        ("list[1]=c", json!({ "list": ["a", "c"] })),
        ("list[3]=d", json!({ "list": ["a", "b", null, "d"] })),
        ("map.list[1].q=w", json!({ "map": { "list": ["x", { "k": "v", "q": "w" }] } })),
        // Escapes, and what needs none.
        ("a=x\\,y", json!({ "a": "x,y" })),
        ("a=x\\\\y", json!({ "a": "x\\y" })),
        ("a=x=y", json!({ "a": "x=y" })),
        ("a\\.b.c=1", json!({ "a.b": { "c": 1 } })),
        (
            "nodeSelector.kubernetes\\.io/role=master",
            json!({ "nodeSelector": { "kubernetes.io/role": "master" } }),
        ),
        ("a= x ", json!({ "a": " x " })),
        ("a=[x]", json!({ "a": "[x]" })),
        ("é=ü", json!({ "é": "ü" })),
        // What a value looks like is what it is.
        ("a=true,b=FALSE,c=Null", json!({ "a": true, "b": false, "c": null })),
        ("a=0,b=-5,c=+5,d=9223372036854775807", json!({ "a": 0, "b": -5, "c": 5, "d": i64::MAX })),
        (
            "a=01,b=1.5,c=1e3,d=9223372036854775808,e=yes",
            json!({ "a": "01", "b": "1.5", "c": "1e3", "d": "9223372036854775808", "e": "yes" }),
        ),
    ] {
        let mut values = base();
        set(&mut values, argument).unwrap();
        assert_eq!(values, with(&over), "{argument}");
    }
}

#[test]
fn set_string_leaves_all_as_text() {
    let mut values = base();
    set_string(&mut values, "a=1,b=true,c=null,d={1,x},e[0]=2").unwrap();
    assert_eq!(values, with(&json!({ "a": "1", "b": "true", "c": "null", "d": ["1", "x"], "e": ["2"] })));
}

#[test]
fn errors_say_what_is_wrong_and_where() {
    for (argument, expected) in [
        ("a", "cannot set \"a\": a has no value; a comma inside a value is written \\, (at character 1)"),
        ("a=1,b", "b has no value; a comma inside a value is written \\, (at character 5)"),
        ("a,b=1", "a has no value; a comma inside a value is written \\, (at character 2)"),
        ("a=1,,b=2", "a name is missing (at character 5)"),
        ("=1", "a name is missing (at character 1)"),
        ("a..b=1", "a name is missing (at character 3)"),
        ("a={x", "a list must end with } (at character 4)"),
        ("a={x}b=2", "unexpected 'b' after a list (at character 6)"),
        ("a[0", "] is missing (at character 3)"),
        ("a[0]", "a[0] has no value"),
        ("a[0]x=1", "unexpected 'x' after an index (at character 5)"),
        ("a[-1]=x", "\"-1\" is not an index of a list"),
        ("a[x]=1", "\"x\" is not an index of a list"),
        ("a[99999]=1", "the index 99999 is larger than 65536"),
        ("text.x=1", "text is not a map"),
        ("list.x=1", "list is not a map"),
        ("map[0]=1", "map is not a list"),
        ("map.list[0].x=1", "map.list[0] is not a map"),
        ("a.b.c.d.e.f.g.h.i.j.k.l.m.n.o.p.q.r.s.t.u.v.w.x.y.z.a.b.c.d.e.f=1", "more than 30 levels deep"),
    ] {
        let mut values = base();
        let error = set(&mut values, argument).expect_err(argument).to_string();
        assert!(error.contains(expected), "{argument}: {error}");
        assert_eq!(values, base(), "{argument} changes something nevertheless");
    }
}

proptest! {
    #[test]
    fn no_argument_makes_it_panic(argument in any::<String>(), likely in "[ab.,=\\[\\]{}0-9\\\\]{0,20}") {
        let _ = set(&mut base(), &argument);
        let _ = set_string(&mut base(), &likely);
    }
}
