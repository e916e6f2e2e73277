use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::*;

/// What must never come out. None of them is known to the redactor.
const HUNTER: &str = "hunter2";
const KEY_BODY: &str = "MC4CAQAwBQYDK2VwBCIEIMru0cOzJfAI3uyuHN8HZiHugZQPygHyGLhh";
const JWT: &str = "eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJzeXN0ZW06c2VydmljZWFjY291bnQifQ.c2lnbmF0dXJl";

fn plain() -> Redactor {
    Redactor::new(&[])
}

fn assert_gone(text: &str, secret: &str) {
    let out = plain().text(text);
    assert!(!out.contains(secret), "{text:?} became {out:?}");
    assert!(out.contains("<removed"), "{text:?} became {out:?}");
    assert_eq!(plain().text(&out), out, "a second time changes nothing");
}

#[test]
fn a_value_goes_wherever_its_name_says_that_it_is_secret() {
    for text in [
        "password=hunter2",
        "password: hunter2",
        "PASSWORD = 'hunter2'",
        "db.password=\"hunter2\"",
        "DB_PASSWD=hunter2;next",
        "postgres_pwd := hunter2",
        "\"api_key\": \"hunter2\"",
        "{\\\"apiKey\\\":\\\"hunter2\\\"}",
        "?access_token=hunter2&x=1",
        "password%3Dhunter2",
        "token => hunter2",
        "--token=hunter2",
        "--token hunter2",
        "curl --proxy-password 'hunter2' https://x",
        "client-key-data: hunter2",
        "Authorization: hunter2",
        "Set-Cookie: hunter2",
        "X-Amz-Signature=hunter2",
        "\"auth\": \"hunter2\"",
        "wg-key=hunter2",
        "refreshToken:hunter2",
        "my-secret-thing: hunter2",
        "password: |\n  hunter2\nuser: me",
        "  password: >-\n\n    hunter2\n    hunter2\n  user: me",
        "- token:\n    - hunter2\nuser: me",
        "password=\"a \\\" hunter2\"",
        "password=\"hunter2",
        "Bearer hunter2",
        "bearer: hunter2",
        "https://user:hunter2@registry.example.com/v2",
        "postgres://user:p@ss/hunter2@db:5432/x",
        "https://hunter2@git.example.com",
        "socks5://me:hunter2@10.0.0.1",
    ] {
        assert_gone(text, HUNTER);
    }
}

#[test]
fn what_follows_a_secret_stays() {
    let cases = [
        ("password=hunter2 user=me", "password=<removed> user=me"),
        ("{\"token\":\"hunter2\",\"user\":\"me\"}", "{\"token\":\"<removed>\",\"user\":\"me\"}"),
        ("?token=hunter2&page=2", "?token=<removed>&page=2"),
        ("password: |\n  hunter2\nuser: me\n", "password: <removed>\nuser: me\n"),
        ("https://user:hunter2@host/path", "https://<removed>@host/path"),
    ];
    for (text, expected) in cases {
        assert_eq!(plain().text(text), expected);
    }
}

#[test]
fn keys_and_tokens_go_by_their_looks() {
    let pem = format!("-----BEGIN PRIVATE KEY-----\n{KEY_BODY}\n-----END PRIVATE KEY-----");
    for (text, secret) in [
        (pem.as_str(), KEY_BODY),
        (&pem.replace('\n', "\\n"), KEY_BODY),
        (&pem.replace('\n', "\r\n"), KEY_BODY),
        (&pem.replace("PRIVATE KEY", "OPENSSH PRIVATE KEY"), KEY_BODY),
        (&format!("-----BEGIN RSA PRIVATE KEY-----\nshort\n{KEY_BODY}"), "short"),
        (&format!("the end of one: {KEY_BODY}\n-----END PRIVATE KEY-----"), KEY_BODY),
        ("-----BEGIN CERTIFICATE-----\nabc\n-----END CERTIFICATE-----", "abc"),
        ("data LS0tLS1CRUdJTiBQUklWQVRFIEtFWS0tLS0tCk1DNENB== end", "QUklWQVRF"),
        (JWT, "c2lnbmF0dXJl"),
        (&format!("x{JWT}"), "eyJzdWIi"),
        ("Authorization: Basic dXNlcjpodW50ZXIy", "dXNlcjpodW50ZXIy"),
        ("using Basic dXNlcg== now", "dXNlcg"),
        ("join with abcdef.0123456789abcdef now", "0123456789abcdef"),
        ("K10a3a43a43a43a43a43a43a43a43a43a43a4::server:hunter2", HUNTER),
        ("key AKIAIOSFODNN7EXAMPLE.", "AKIAIOSFODNN7EXAMPLE"),
        ("ghp_16C7e42F292c6912E7710c838347Ae178B4a", "16C7e42F292c6912E7710c838347Ae178B4a"),
        ("glpat-aaaaBBBB1111ccccDDDD", "aaaaBBBB1111ccccDDDD"),
        ("wireguard yAnz5TF+lXXJte14tji3zlMNq+hd2rYUIgJBgB3fBmk= here", "yAnz5TF"),
    ] {
        assert_gone(text, secret);
    }
}

#[test]
fn what_is_no_secret_stays_word_for_word() {
    for text in [
        "image liqo@sha256:5edf17463346b793f4f74382200a963441649d95902546e302884f931c2506b1",
        "0b1c6f3e-7a52-4c8d-9a53-2f9f3d3f6a10",
        "secretName: liqo-identity",
        "imagePullSecrets: registry",
        "tokenExpirationSeconds: 3600",
        "Pulling image \"registry.example.com/team/liqo-controller-manager-with-a-long-name:0.1.0\"",
        "GET https://10.0.0.1:6443/apis/config.liqo.io/v1alpha1/clusterconfigs?limit=500",
        "secrets \"liqo-identity\" not found",
        "mailto me@example.com",
        "this cluster uses basic networking and a token bucket",
        "-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEA6swHIhwnZGzxAhA9j1oyFzRAwwP6UtjiPFJ1qG1ft/g=\n-----END PUBLIC KEY-----\n",
        "level=info msg=\"lease renewed\" holder=liqo-controller-manager-7d9f8-x2k4q",
    ] {
        assert_eq!(plain().text(text), text);
    }
}

fn secret(data: &Value) -> k8s_openapi::api::core::v1::Secret {
    serde_json::from_value(
        json!({"metadata": {"name": "s"}, "type": "Opaque", "stringData": {}, "data": data}),
    )
    .unwrap()
}

#[test]
fn the_values_of_secrets_go_wherever_they_turn_up_plain_or_in_base64() {
    let public = BTreeSet::from(["provider-a".to_owned()]);
    let values = secret_values(
        &[secret(&json!({"a": "c3dvcmRmaXNo", "b": "cHJvdmlkZXItYQ==", "c": "dHJ1ZQ=="}))],
        &public,
    );
    let redactor = Redactor::new(&values);
    assert_eq!(redactor.text("logging in as swordfish"), "logging in as <removed>");
    assert_eq!(redactor.text("c3dvcmRmaXNo"), "<removed>");
    assert_eq!(redactor.text("provider-a is true"), "provider-a is true", "names and small words stay");
    let mut object = json!({"kind": "Event", "message": "swordfish!", "swordfish": 1});
    redactor.object(&mut object);
    assert_eq!(object, json!({"kind": "Event", "message": "<removed>!", "<removed>": 1}));
}

#[test]
fn the_public_part_of_an_identity_is_no_secret() {
    let mut identity = secret(&json!({"cluster-id": "MGIxYzZmM2U=", "private-key": "c3dvcmRmaXNo"}));
    identity.type_ = Some("liqo.io/identity".into());
    let values = secret_values(&[identity], &BTreeSet::new());
    assert!(
        values.contains(&"swordfish".to_owned()) && !values.contains(&"0b1c6f3e".to_owned()),
        "{values:?}"
    );
}

#[test]
fn liqoctl_s_own_notes_are_no_secret_but_the_values_are() {
    let mut notes = secret(&json!({"state": "aW5zdGFsbGVk", "values": "c3dvcmRmaXNo"}));
    notes.type_ = Some("liqo.io/installation".into());
    let values = secret_values(&[notes], &BTreeSet::new());
    assert!(
        values.contains(&"swordfish".to_owned()) && !values.contains(&"installed".to_owned()),
        "{values:?}"
    );
}

fn redacted(mut object: Value) -> Value {
    plain().object(&mut object);
    object
}

#[test]
fn of_a_secret_only_sizes_stay() {
    let out = redacted(json!({
        "kind": "Secret", "type": "Opaque",
        "metadata": {"name": "s", "managedFields": [{"x": 1}], "annotations": {
            "kubectl.kubernetes.io/last-applied-configuration": "{\"kind\":\"Secret\",\"data\":{\"a\":\"aHVudGVyMg==\"}}"
        }},
        "data": {"a": "aHVudGVyMg==", "tls.key": "not base64!"}, "stringData": {"b": "hunter2"},
    }));
    assert_eq!(out["data"], json!({"a": "<removed: 7 bytes>", "tls.key": "<removed: 11 bytes>"}));
    assert_eq!(out["stringData"]["b"], "<removed: 7 bytes>");
    assert_eq!(out["metadata"]["managedFields"], Value::Null);
    let text = out.to_string();
    assert!(!text.contains("aHVudGVyMg") && !text.contains(HUNTER), "{text}");
    let list =
        redacted(json!({"kind": "SecretList", "items": [{"kind": "Secret", "data": {"a": "aHVudGVyMg=="}}]}));
    assert!(!list.to_string().contains("aHVudGVyMg"), "{list}");
}

#[test]
fn config_maps_annotations_and_variables_lose_what_should_not_be_in_them() {
    let objects = [
        json!({"kind": "ConfigMap", "data": {"password": "hunter2"}}),
        json!({"kind": "ConfigMap", "data": {"app.conf": "user=me\npassword=hunter2\n"}}),
        json!({"kind": "ConfigMap", "data": {"app.json": "{\"db\": {\"password\": [\"hunter2\"]}}"}}),
        json!({"kind": "ConfigMap", "data": {"app.json": "{\"pass\\u0077ord\": \"hunter2\"}"}}),
        json!({"kind": "ConfigMap", "data": {"app.yaml": "db:\n  credentials:\n    user: me\n    word: hunter2\nport: 1\n"}}),
        json!({"kind": "ConfigMap", "data": {"c": "{\"auths\": {\"registry\": {\"auth\": \"hunter2\"}}}"}}),
        json!({"kind": "ConfigMap", "binaryData": {"x": "hunter2"}}),
        json!({"kind": "Pod", "metadata": {"annotations": {"example.com/token": "hunter2"}}}),
        json!({"kind": "Pod", "metadata": {"annotations": {"example.com/config": "{\"token\": {\"value\": \"hunter2\"}}"}}}),
        json!({"kind": "Pod", "metadata": {"annotations": {"note": "the password: hunter2"}}}),
        json!({"kind": "Pod", "spec": {"containers": [{"env": [{"name": "DB_PASSWORD", "value": "hunter2"}]}]}}),
        json!({"kind": "Pod", "spec": {"containers": [{"env": [{"name": "URL", "value": "https://a:hunter2@b"}]}]}}),
        json!({"kind": "Pod", "spec": {"containers": [{"args": ["--token", "hunter2"]}]}}),
        json!({"kind": "Pod", "spec": {"containers": [{"args": ["--api-key=hunter2"]}]}}),
        json!({"kind": "Pod", "spec": {"containers": [{"command": ["sh", "-c", "login --password hunter2"]}]}}),
        json!({"kind": "Pod", "spec": {"containers": [{"readinessProbe": {"httpGet": {"httpHeaders": [
            {"name": "Authorization", "value": "hunter2"}]}}}]}}),
        json!({"kind": "ForeignCluster", "spec": {"foreignProxyUrl": "https://u:hunter2@proxy"}}),
        json!({"kind": "Thing", "spec": {"token": {"value": "hunter2"}}}),
        json!({"kind": "Thing", "spec": {"tokens": ["hunter2"]}}),
        json!({"kind": "Event", "message": "cannot log in with token=hunter2"}),
    ];
    for object in objects {
        let out = redacted(object.clone()).to_string();
        assert!(!out.contains(HUNTER) && out.contains("<removed"), "{object} became {out}");
    }
}

#[test]
fn what_only_points_to_a_secret_stays() {
    let pod = json!({
        "kind": "Pod",
        "metadata": {"name": "p", "annotations": {"note": "fine", "checksum/config": "5edf17463346b793f4f74382200a9634"}},
        "spec": {
            "automountServiceAccountToken": true,
            "imagePullSecrets": [{"name": "registry"}],
            "volumes": [
                {"name": "key", "secret": {"secretName": "liqo-identity", "defaultMode": 420}},
                {"name": "api", "projected": {"sources": [{"serviceAccountToken": {"path": "token", "expirationSeconds": 3607}}]}},
            ],
            "containers": [{"name": "c", "env": [{"name": "API_TOKEN", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}}],
                            "args": ["manager", "--liqo-namespace=liqo"]}],
        },
    });
    assert_eq!(redacted(pod.clone()), pod);
    let role = json!({"kind": "Role", "rules": [{"apiGroups": [""], "resources": ["secrets"], "verbs": ["get"], "resourceNames": ["liqo-identity"]}]});
    assert_eq!(redacted(role.clone()), role);
}

#[test]
fn configuration_files_stay_as_they_are_unless_something_must_go() {
    let text = "# a comment\nb: 1\na: 2\n";
    let out = redacted(json!({"kind": "ConfigMap", "data": {"app.yaml": text}}));
    assert_eq!(out["data"]["app.yaml"], text);
}

#[test]
fn logs_lose_secrets_line_by_line_and_across_lines() {
    let log = format!(
        "{{\"msg\":\"start\",\"zeta\":1,\"alpha\":2}}\n{{\"secrets\":[\"{HUNTER}\"]}}\nplain token={HUNTER}\n\
         -----BEGIN PRIVATE KEY-----\n{KEY_BODY}\n-----END PRIVATE KEY-----\nend\n"
    );
    let out = plain().log(&log);
    assert!(!out.contains(HUNTER) && !out.contains(KEY_BODY), "{out}");
    assert!(out.starts_with("{\"msg\":\"start\",\"zeta\":1,\"alpha\":2}\n"), "{out}");
    assert!(out.ends_with("\nend\n"), "{out}");
    assert_eq!(plain().log("no end of line"), "no end of line");
}

#[test]
fn hostile_text_neither_panics_nor_takes_long() {
    let quotes = "password=\"".repeat(3_000);
    let open = "-----BEGIN ".repeat(3_000);
    let deep = "[".repeat(20_000);
    let slashes = "token=\\".repeat(3_000);
    for text in [
        quotes.as_str(),
        &open,
        &deep,
        &slashes,
        "\u{0}\u{feff}password=\u{1F600}",
        "пароль: hunter",
        "::::",
        "=:=",
    ] {
        plain().text(text);
        plain().log(text);
        redacted(json!({"kind": "ConfigMap", "data": {"x": text, text: "y"}}));
    }
}
