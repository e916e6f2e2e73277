use std::collections::BTreeMap;

use super::{Chart, ChartFiles};

fn chart(files: &[(&str, &str)]) -> Result<Chart, String> {
    let metadata = [("Chart.yaml", "apiVersion: v2\nname: mini\nversion: 1.2.3\n")];
    let files: ChartFiles = metadata
        .iter()
        .chain(files)
        .map(|(path, text)| ((*path).to_owned(), text.as_bytes().into()))
        .collect();
    Chart::read(files).map_err(|error| error.to_string())
}

#[test]
fn the_embedded_chart_is_a_chart() {
    let chart = Chart::embedded();
    assert_eq!(chart.name(), "liqo");
    assert_eq!(
        (chart.version(), chart.app_version()),
        (env!("CARGO_PKG_VERSION"), env!("CARGO_PKG_VERSION"))
    );
    assert!(chart.default_values().is_object() && chart.values_schema().is_some());
    assert!(chart.values_text().contains("\n#"), "{}", chart.values_text());
    let crds = chart.crds().unwrap();
    assert!(!crds.is_empty());
    for crd in crds {
        assert_eq!(crd["kind"], "CustomResourceDefinition");
    }
}

#[test]
fn a_chart_needs_little() {
    let chart = chart(&[]).unwrap();
    assert_eq!((chart.name(), chart.version(), chart.app_version()), ("mini", "1.2.3", ""));
    assert_eq!(chart.default_values(), &serde_json::json!({}));
    assert!(chart.values_schema().is_none() && chart.crds().unwrap().is_empty());
}

#[test]
fn a_wrong_file_is_named() {
    for (path, text, expected) in [
        ("Chart.yaml", "", "the chart's Chart.yaml cannot be used: it is not a map"),
        ("Chart.yaml", "name: x\nversion: 1", "it has no apiVersion"),
        ("Chart.yaml", "apiVersion: v2\nversion: 1.0.0", "it has no name"),
        ("Chart.yaml", "apiVersion: v3\nname: x\nversion: 1.0.0", "its apiVersion must be v2 or v1"),
        ("Chart.yaml", "apiVersion: v2\nname: [x]\nversion: 1.0.0", "name must be a text"),
        ("Chart.yaml", "apiVersion: v2\nname: ../x\nversion: 1.0.0", "its name must not be a path"),
        ("values.yaml", "- a", "the chart's values.yaml cannot be used: values must be a map"),
        ("values.yaml", "a: b: c", "the chart's values.yaml cannot be used: this is not YAML"),
        ("values.schema.json", "{", "the chart's values.schema.json cannot be used"),
        (".helmignore", "a/**/b", "the chart's .helmignore cannot be used"),
    ] {
        let error = chart(&[(path, text)]).map(|chart| chart.name().to_owned()).expect_err(text);
        assert!(error.contains(expected), "{text:?}: {error}");
    }
}

#[test]
fn crds_come_from_their_directory_alone() {
    let crd = "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: NAME}\n";
    let two = format!("{}---\n{}", crd.replace("NAME", "b"), crd.replace("NAME", "c"));
    let chart = chart(&[
        ("crds/z.yaml", &two),
        ("crds/a.yml", &crd.replace("NAME", "a")),
        ("crds/README.md", "words"),
        ("templates/x.yaml", &crd.replace("NAME", "x")),
    ])
    .unwrap();
    let crds = chart.crds().unwrap();
    let names: Vec<_> = crds.iter().map(|crd| crd["metadata"]["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["a", "b", "c"]);
}

#[test]
fn templates_do_not_see_the_charts_own_machinery_as_files() {
    let chart = chart(&[
        ("values.yaml", ""),
        ("values.schema.json", "{}"),
        ("templates/x.yaml", ""),
        ("crds/x.yaml", ""),
        ("conf/x.txt", ""),
        ("README.md", ""),
    ])
    .unwrap();
    assert_eq!(chart.other_files().keys().collect::<Vec<_>>(), ["README.md", "conf/x.txt", "crds/x.yaml"]);
}

#[test]
fn helmignore_leaves_files_out() {
    let ignore = "# a comment\n*.bak\n/top.txt\nci/\nconf/secret*\n\n";
    let paths = [
        ("a.bak", false),
        ("templates/b.bak", false),
        ("top.txt", false),
        ("conf/top.txt", true),
        ("ci/values.yaml", false),
        ("conf/ci/x.txt", false),
        ("ci.txt", true),
        ("conf/secret.txt", false),
        ("secret.txt", true),
        ("templates/.x.yaml.swp", false),
        ("templates/x.yaml", true),
    ];
    let files: BTreeMap<_, _> =
        paths.iter().map(|(path, _)| (*path, "")).chain([(".helmignore", ignore)]).collect();
    let chart = chart(&files.into_iter().collect::<Vec<_>>()).unwrap();
    for (path, kept) in paths {
        assert_eq!(chart.files.contains_key(path), kept, "{path}");
    }
}
