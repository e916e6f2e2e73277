//! Small charts, rendered from the outside. What they give was compared with Helm 3.19.4.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use flate2::Compression;
use flate2::write::GzEncoder;
use liqo_chart::{Chart, Release, values};
use mini::{CONFIG, DEPLOYMENT, HELPERS, POLICY, TEST_POD, VALUES};
use serde_json::{Value, json};

#[path = "render/mini.rs"]
mod mini;

/// A directory that is removed at the end.
struct Directory(PathBuf);

impl Directory {
    fn new(name: &str) -> Self {
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}-{}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn write(&self, path: &str, text: impl AsRef<[u8]>) {
        let path = self.0.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.0).unwrap();
    }
}

const METADATA: &str = "
apiVersion: v2
name: mini
version: 1.2.3
appVersion: 0.9
description: A small chart
kubeVersion: '>=1.30.0-0'
maintainers: [{name: someone, email: someone@example.com}]
annotations: {a/b: c}
";

/// A chart in a directory of its own.
fn chart(name: &str, files: &[(&str, &str)]) -> (Directory, Chart) {
    let directory = Directory::new(name);
    directory.write("Chart.yaml", METADATA);
    for (path, text) in files {
        directory.write(path, text);
    }
    let chart = Chart::open(&directory.0).unwrap();
    (directory, chart)
}

fn release() -> Release {
    Release {
        name: "rel".into(),
        namespace: "ns".into(),
        service: "Helm".into(),
        is_upgrade: false,
        revision: 1,
        kubernetes_version: "v1.34.0".into(),
        api_versions: vec!["v1".into(), "policy/v1".into(), "policy/v1/PodDisruptionBudget".into()],
    }
}

fn mini(name: &str) -> (Directory, Chart) {
    chart(
        name,
        &[
            ("values.yaml", VALUES),
            ("templates/_helpers.tpl", HELPERS),
            ("templates/deployment.yaml", DEPLOYMENT),
            ("templates/config.yaml", CONFIG),
            ("templates/more/policy.yaml", POLICY),
            ("templates/tests/pod.yaml", TEST_POD),
            ("templates/empty.yaml", "{{- if .Values.never }}x{{ end }}\n# nothing\n"),
            (
                "templates/NOTES.txt",
                "{{ .Chart.Name }} {{ .Chart.Version }} is {{ tpl .Values.greeting . }}.\n",
            ),
            ("files/a.txt", "one\ntwo\n"),
            ("files/b.json", "{}"),
        ],
    )
}

#[test]
fn a_chart_gives_the_objects_that_helm_gives() {
    let (_directory, chart) = mini("objects");
    let given = values::load("removable: {drop: null}\nlabels: {more: \"null\"}\nname: my-name").unwrap();
    let objects = chart.render(&release(), &given).unwrap();
    let labels = json!({
        "app.kubernetes.io/name": "my-name",
        "app.kubernetes.io/version": "0.9",
        "helm.sh/chart": "mini-1.2.3",
        "more": "null",
        "team": "yes",
        "tier": "1e3",
    });
    let expected = [
        json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": "ns" } }),
        json!({ "apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": { "name": "my-name" } }),
        json!({
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": { "name": "my-name" },
            "data": {
                "log.level": "info",
                "script": "#!/bin/sh\necho \"{{ not a template }}\"\n",
                "greeting": "Hello rel in ns",
                "big": "12345678",
                "removable": "{\"keep\":1}",
                "files": "a.txt: |\n  one\n  two\n",
                "has": "true",
                "has-not": "false",
                "semver": "new",
                "about": "Helm/true/false/1",
                "template": "mini/templates/config.yaml",
                "maintainer": "someone",
            },
        }),
        json!({
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": { "name": "my-name", "labels": labels },
            "spec": {
                "replicas": 2,
                "template": {
                    "metadata": { "annotations": {
                        "checksum/config": "f336f094e53e420abe66ff2a39d7ad4b7e9c9162acda1b152c262010cde3c79e",
                        "checksum/values": "37a136b5",
                    } },
                    "spec": { "containers": [{
                        "name": "main",
                        "args": ["--flag=a b", "--quoted='x'", "0x1", "--number=8080"],
                        "ports": [{ "containerPort": 8080 }],
                        "env": [{ "name": "FEATURE_BETA", "value": "true" }, { "name": "FEATURE_GAMMA", "value": "true" }],
                    }] },
                },
            },
        }),
        json!({ "apiVersion": "example.com/v1", "kind": "Zebra", "metadata": { "name": "z" } }),
    ];
    assert_eq!(objects, expected);
}

#[test]
fn values_change_what_is_rendered() {
    let (_directory, chart) = mini("values");
    let mut given = values::load("autoscaled: true\nfeatures: {beta: null, gamma: null}").unwrap();
    values::set(&mut given, "args={a,b\\,c},bigNumber=1000000000000,labels=null").unwrap();
    values::set_string(&mut given, "port=0080").unwrap();
    let mut upgrade = release();
    (upgrade.is_upgrade, upgrade.revision, upgrade.kubernetes_version) = (true, 7, "v1.31.4+k3s1".into());
    upgrade.api_versions.clear();
    let objects = chart.render(&upgrade, &given).unwrap();
    let kinds: Vec<_> = objects.iter().map(|object| object["kind"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["Namespace", "ConfigMap", "Deployment", "Zebra"]);
    let (config, deployment) = (&objects[1]["data"], &objects[2]);
    assert_eq!((&config["semver"], &config["about"]), (&json!("old"), &json!("Helm/false/true/7")));
    assert_eq!(config["big"], "1000000000000");
    assert_eq!(deployment["metadata"]["name"], "rel-mini");
    assert_eq!(deployment["metadata"]["labels"].as_object().unwrap().len(), 3);
    assert_eq!(deployment["spec"].get("replicas"), None);
    let container = &deployment["spec"]["template"]["spec"]["containers"][0];
    assert_eq!(container["args"], json!(["a", "b,c", "--number=0080"]));
    assert_eq!(container.get("env"), Some(&Value::Null));
}

#[test]
fn notes_are_rendered_for_the_user_and_are_no_object() {
    let (_directory, chart) = mini("notes");
    assert_eq!(chart.notes(&release(), &json!({})).unwrap(), "mini 1.2.3 is Hello rel in ns.\n");
}

#[test]
fn what_one_template_sets_the_next_one_sees() {
    // Files lower in the tree come first, then those later in the alphabet.
    let (_directory, chart) = chart(
        "shared",
        &[
            ("values.yaml", "seen: [start]"),
            ("templates/a.yaml", "apiVersion: v1\nkind: A\nseen: {{ .Values.seen | toJson }}"),
            ("templates/b.yaml", r#"{{ $_ := set .Values "seen" (append .Values.seen "b") }}"#),
            ("templates/deep/z.yaml", r#"{{ $_ := set .Values "seen" (append .Values.seen "z") }}"#),
        ],
    );
    assert_eq!(chart.render(&release(), &json!({})).unwrap()[0]["seen"], json!(["start", "z", "b"]));
}

#[test]
fn of_two_templates_with_one_name_the_one_higher_up_counts() {
    let (_directory, chart) = chart(
        "names",
        &[
            ("templates/_z.tpl", r#"{{ define "x" }}z{{ end }}{{ define "y" }}{{ end }}"#),
            ("templates/_a.tpl", r#"{{ define "x" }}a{{ end }}"#),
            ("templates/deep/_b.tpl", r#"{{ define "x" }}b{{ end }}{{ define "y" }}full{{ end }}"#),
            (
                "templates/o.yaml",
                "apiVersion: v1\nkind: O\nx: {{ include \"x\" . }}\ny1: {{ include \"y\" . }}",
            ),
        ],
    );
    let object = &chart.render(&release(), &json!({})).unwrap()[0];
    assert_eq!((&object["x"], &object["y1"]), (&json!("a"), &json!("full")));
}

#[test]
fn errors_name_the_template_and_the_line() {
    let helpers = "{{ define \"x\" }}\n{{ required \"please set a.b\" .Values.a }}\n{{ end }}";
    for (template, expected) in [
        ("a: {{ .Values.x.y }}", "mini/templates/t.yaml:1: .Values.x is not set, so it has no field \"y\""),
        ("\n\n{{ nope }}", "mini/templates/t.yaml:3: function \"nope\" is not known"),
        ("{{ if true }}", "mini/templates/t.yaml:1: {{end}} is missing for this if"),
        ("\n{{ fail \"this cannot be\" }}", "mini/templates/t.yaml:2: this cannot be"),
        (
            "\n\n\n{{ include \"x\" . }}",
            "mini/templates/_helpers.tpl:2: please set a.b (included at mini/templates/t.yaml:4)",
        ),
        (
            "kind: Pod",
            "mini/templates/t.yaml does not render to Kubernetes objects: document 1: it has no apiVersion or no kind",
        ),
        ("a: b: c", "mini/templates/t.yaml does not render to Kubernetes objects: document 1: "),
        (
            "apiVersion: v1\nkind: Job\nmetadata: {annotations: {\"helm.sh/hook\": \"pre-install, post-upgrade\"}}",
            "the chart mini has the hook pre-install, post-upgrade, which needs Helm itself: use `helm install` for it",
        ),
    ] {
        let (_directory, chart) =
            chart("errors", &[("templates/_helpers.tpl", helpers), ("templates/t.yaml", template)]);
        let error = chart.render(&release(), &json!({})).unwrap_err().to_string();
        assert!(error.starts_with(expected), "{template:?}: {error}");
    }
}

#[test]
fn values_that_the_schema_refuses_are_named() {
    let schema =
        r#"{"properties": {"a": {"properties": {"b": {"type": "integer"}}}, "c": {"pattern": "^x"}}}"#;
    let (_directory, chart) =
        chart("schema", &[("values.yaml", "a: {b: 1}"), ("values.schema.json", schema)]);
    assert!(chart.render(&release(), &json!({})).unwrap().is_empty());
    let refused = |given: Value| chart.render(&release(), &given).unwrap_err().to_string();
    assert_eq!(
        refused(json!({ "a": { "b": "two" } })),
        "the values do not fit the chart: a.b: \"two\" is not of type \"integer\""
    );
    let two = refused(json!({ "a": { "b": "two" }, "c": "y" }));
    assert!(two.starts_with("the values do not fit the chart:\n- a.b: ") && two.contains("\n- c: "), "{two}");
    assert_eq!(chart.values(&json!({ "c": "xy" })).unwrap(), json!({ "a": { "b": 1 }, "c": "xy" }));
    assert_eq!(chart.values(&Value::Null).unwrap(), json!({ "a": { "b": 1 } }));
    assert!(refused(json!([1])).contains("must be a map"));
}

#[test]
fn a_cluster_that_is_too_old_is_refused() {
    let (_directory, chart) = chart("old", &[]);
    let mut release = release();
    for (version, fits) in [("v1.29.9", false), ("v1.30.0", true), ("v1.33.1-gke.5", true), ("", true)] {
        release.kubernetes_version = version.into();
        assert_eq!(chart.render(&release, &json!({})).is_ok(), fits, "{version}");
    }
    release.kubernetes_version = "v1.29.9".into();
    assert_eq!(
        chart.render(&release, &json!({})).unwrap_err().to_string(),
        "the chart mini needs Kubernetes >=1.30.0-0, but this cluster has v1.29.9"
    );
}

#[test]
fn what_only_helm_can_do_is_refused() {
    for (path, text, expected) in [
        ("charts/sub/Chart.yaml", "", "the chart mini depends on other charts"),
        (
            "Chart.yaml",
            "apiVersion: v2\nname: mini\nversion: 1.0.0\ndependencies: [{name: x}]",
            "depends on other charts",
        ),
        (
            "Chart.yaml",
            "apiVersion: v2\nname: mini\nversion: 1.0.0\ntype: library",
            "is a library for other charts",
        ),
    ] {
        let (_directory, chart) = chart("refused", &[(path, text)]);
        let error = chart.render(&release(), &json!({})).unwrap_err().to_string();
        assert!(error.contains(expected) && error.contains("helm install"), "{error}");
    }
}

#[test]
fn an_archive_is_a_chart_as_well() {
    let (directory, chart) = mini("archive");
    let target = Directory::new("archives");
    let path = target.0.join("mini-1.2.3.tgz");
    let mut archive = tar::Builder::new(GzEncoder::new(File::create(&path).unwrap(), Compression::fast()));
    archive.append_dir_all("mini", &directory.0).unwrap();
    archive.into_inner().unwrap().finish().unwrap();
    let packed = Chart::open(&path).unwrap();
    let render = |chart: &Chart| chart.render(&release(), &json!({})).unwrap();
    assert_eq!(render(&packed), render(&chart));
}

#[test]
fn what_is_no_chart_is_refused_with_the_reason() {
    let directory = Directory::new("none");
    directory.write("words.txt", "no archive");
    directory.write("empty/x.txt", "");
    directory.write("large/Chart.yaml", METADATA);
    directory.write("large/dump", vec![0; 6 << 20]);
    let mut archive = tar::Builder::new(GzEncoder::new(Vec::new(), Compression::fast()));
    let mut header = tar::Header::new_gnu();
    // The library itself refuses to write such a path.
    header.as_old_mut().name[..14].copy_from_slice(b"x/../../escape");
    header.set_size(0);
    header.set_cksum();
    archive.append(&header, std::io::empty()).unwrap();
    directory.write("escape.tgz", archive.into_inner().unwrap().finish().unwrap());
    let archive = tar::Builder::new(GzEncoder::new(Vec::new(), Compression::fast()));
    directory.write("nothing.tgz", archive.into_inner().unwrap().finish().unwrap());
    for (path, expected) in [
        ("missing", "No such file or directory"),
        ("words.txt", "it is no directory and no archive of a chart"),
        ("empty", "there is no Chart.yaml in it"),
        ("large", "dump is larger than 5 MiB"),
        ("escape.tgz", "x/../../escape leads out of the archive"),
        ("nothing.tgz", "there is no Chart.yaml in the archive's directory"),
    ] {
        let path = directory.0.join(path);
        let error = Chart::open(&path).map(|chart| chart.name().to_owned()).unwrap_err().to_string();
        assert!(error.starts_with(&format!("cannot open the chart {}: ", path.display())), "{error}");
        assert!(error.contains(expected), "{error}");
    }
}

#[test]
fn the_embedded_chart_renders_with_its_defaults() {
    let objects = Chart::embedded().render(&release(), &json!({})).unwrap();
    assert!(objects.iter().any(|object| object["kind"] == "Deployment"), "{objects:#?}");
}
