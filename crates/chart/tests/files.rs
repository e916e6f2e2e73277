//! The files of the chart and of `k8s/` agree with each other and with the code.

#![allow(clippy::expect_used, clippy::panic, reason = "a test that cannot go on has failed")]

#[path = "support/helm.rs"]
#[expect(dead_code, reason = "Helm itself is asked elsewhere")]
mod support;

use std::collections::BTreeSet;

use liqo_kit::metrics;
use serde_json::Value;
use support::{documents, find, read};

const VERSION: &str = env!("CARGO_PKG_VERSION");

fn yaml(path: &str) -> Value {
    documents(&read(path)).pop().expect("a document")
}

fn schema() -> Value {
    serde_json::from_str(&read("deploy/helm/liqo/values.schema.json")).expect("the schema is JSON")
}

#[test]
fn the_chart_and_the_manifests_have_the_version_of_the_workspace() {
    let chart = yaml("deploy/helm/liqo/Chart.yaml");
    assert_eq!((chart["version"].as_str(), chart["appVersion"].as_str()), (Some(VERSION), Some(VERSION)));
    let image = format!("liqo:{VERSION}");
    let broker = documents(&read("k8s/pod.yml"));
    let pod = &find(&broker, "Deployment", "liqo-broker")["spec"]["template"]["spec"];
    assert_eq!(pod["containers"][0]["image"], image);
    assert!(read("deploy/helm/liqo/README.md").contains(&format!("`{image}`")));
}

/// Dotted paths of the values that have a meaning of their own, in a schema.
fn leaves(schema: &Value, path: &str, found: &mut BTreeSet<String>) {
    let Some(properties) = schema["properties"].as_object() else {
        found.insert(path.to_owned());
        return;
    };
    for (name, inner) in properties {
        let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
        leaves(inner, &path, found);
    }
}

/// Dotted paths of the keys of values.yaml, each with the comment directly above it.
fn commented_keys(text: &str) -> Vec<(String, String)> {
    let (mut above, mut comment, mut keys) = (Vec::<(usize, String)>::new(), String::new(), vec![]);
    for line in text.lines() {
        let content = line.trim_start();
        let indent = line.len() - content.len();
        if let Some(words) = content.strip_prefix('#') {
            comment.push_str(words);
        } else if let Some((name, _)) = content.split_once(':') {
            above.retain(|(outer, _)| *outer < indent);
            above.push((indent, name.to_owned()));
            let path = above.iter().map(|(_, name)| name.as_str()).collect::<Vec<_>>().join(".");
            keys.push((path, std::mem::take(&mut comment)));
        } else {
            comment.clear();
        }
    }
    keys
}

#[test]
fn every_value_is_documented_and_in_the_schema_and_nothing_else_is() {
    let keys = commented_keys(&read("deploy/helm/liqo/values.yaml"));
    let mut expected = BTreeSet::new();
    leaves(&schema(), "", &mut expected);
    // Belongs to Helm; there is no default to document.
    expected.remove("global");
    let present: BTreeSet<String> = keys.iter().map(|(path, _)| path.clone()).collect();
    let missing: Vec<_> = expected.difference(&present).collect();
    assert!(missing.is_empty(), "in the schema but not in values.yaml: {missing:?}");
    for (path, comment) in &keys {
        let inside = expected.iter().any(|leaf| path.starts_with(&format!("{leaf}.")));
        let group = expected.iter().any(|leaf| leaf.starts_with(&format!("{path}.")));
        assert!(inside || group || expected.contains(path), "in values.yaml but not in the schema: {path}");
        let documented = comment.starts_with(" -- ") && comment.ends_with(['.', ')']);
        assert!(documented == expected.contains(path), "{path}: the comment above it is {comment:?}");
    }
}

#[test]
fn every_property_of_the_schema_is_described_and_unknown_ones_are_refused() {
    fn check(schema: &Value, path: &str) {
        assert!(
            schema["description"].as_str().is_some_and(|text| text.ends_with('.')),
            "{path} has no description"
        );
        if let Some(properties) = schema["properties"].as_object() {
            assert_eq!(schema["additionalProperties"], false, "{path}");
            for (name, inner) in properties {
                check(inner, &format!("{path}/{name}"));
            }
        }
    }
    check(&schema(), "");
}

/// What the manager registers, by the files that do it.
const REGISTRATIONS: [&str; 12] = [
    "crates/kit/src/watch/metrics.rs",
    "crates/kit/src/write/metrics.rs",
    "crates/identity/src/metrics.rs",
    "crates/discovery/src/metrics.rs",
    "crates/authentication/src/metrics.rs",
    "crates/peering/src/metrics.rs",
    "crates/offloading/src/metrics.rs",
    "crates/hosting/src/metrics.rs",
    "crates/virtual-node/src/metrics.rs",
    "crates/reflection/src/metrics.rs",
    "crates/liqo/src/process.rs",
    "crates/liqo/src/manager/process.rs",
];

/// What a file registers, with its prefix.
///
/// Read from the source: a family without members, as all are before something happens, is not in what a registry
/// prints.
fn registered(file: &str) -> Vec<String> {
    let source: String = read(file).split_whitespace().collect();
    let named = |call: &str| -> Vec<String> {
        let after = source.split(call).skip(1);
        after.filter_map(|rest| Some(rest.split_once('"')?.0.to_owned())).collect()
    };
    let prefix = named("sub_registry_with_prefix(\"").pop().map(|prefix| prefix + "_").unwrap_or_default();
    let plain = named("registry.register(\"").into_iter().chain(named("encode_descriptor(\""));
    let timed = named("registry.register_with_unit(\"").into_iter().map(|name| name + "_seconds");
    plain.chain(timed).map(|name| format!("{prefix}{name}")).collect()
}

/// The names of the manager's metrics, without what Prometheus' conventions add.
fn known_metrics() -> BTreeSet<String> {
    let mut text = String::new();
    prometheus_client::encoding::text::encode(&mut text, &metrics::registry())
        .expect("metrics can be encoded");
    let process =
        text.lines().filter_map(|line| Some(line.strip_prefix("# TYPE ")?.split_once(' ')?.0.to_owned()));
    process.chain(REGISTRATIONS.iter().flat_map(|file| registered(file))).collect()
}

/// Every text below `value` whose key is `name`.
fn texts<'a>(value: &'a Value, name: &str, found: &mut Vec<&'a str>) {
    match value {
        Value::Array(items) => items.iter().for_each(|item| texts(item, name, found)),
        Value::Object(fields) => {
            for (key, inner) in fields {
                match inner.as_str() {
                    Some(text) if key == name => found.push(text),
                    _ => texts(inner, name, found),
                }
            }
        }
        _ => {}
    }
}

#[test]
fn the_dashboard_shows_metrics_that_exist() {
    let dashboard: Value =
        serde_json::from_str(&read("deploy/helm/liqo/dashboards/liqo.json")).expect("the dashboard is JSON");
    let (known, mut expressions) = (known_metrics(), vec![]);
    texts(&dashboard["panels"], "expr", &mut expressions);
    texts(&dashboard["templating"], "definition", &mut expressions);
    assert!(expressions.len() >= 20, "too few queries: {expressions:?}");
    for expression in expressions {
        let words = expression.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_'));
        let metrics: Vec<&str> = words
            .filter(|word| {
                ["watch_", "write_", "process_", "liqo_"].iter().any(|room| word.starts_with(room))
            })
            .collect();
        assert!(!metrics.is_empty(), "no metric in {expression}");
        for metric in metrics {
            let registered =
                ["_total", "_bucket", "_info"].iter().fold(metric, |name, end| name.trim_end_matches(end));
            assert!(known.contains(registered), "{expression}: nobody tells {metric}; known are {known:?}");
        }
    }
}

/// The rooms all of whose numbers are on the dashboard.
const SHOWN: [&str; 7] = [
    "crates/discovery/src/metrics.rs",
    "crates/authentication/src/metrics.rs",
    "crates/peering/src/metrics.rs",
    "crates/offloading/src/metrics.rs",
    "crates/hosting/src/metrics.rs",
    "crates/virtual-node/src/metrics.rs",
    "crates/reflection/src/metrics.rs",
];

#[test]
fn the_dashboard_shows_all_that_is_known_of_peers_and_of_what_runs_elsewhere() {
    let dashboard: Value =
        serde_json::from_str(&read("deploy/helm/liqo/dashboards/liqo.json")).expect("the dashboard is JSON");
    let mut expressions = vec![];
    texts(&dashboard["panels"], "expr", &mut expressions);
    for metric in SHOWN.iter().flat_map(|file| registered(file)) {
        let ends = ["{", "_total{", "_bucket{"].map(|end| format!("{metric}{end}"));
        let shown = expressions.iter().any(|it| ends.iter().any(|end| it.contains(end.as_str())));
        assert!(shown, "no panel shows {metric}");
    }
}

#[test]
fn panels_of_the_dashboard_do_not_overlap_and_say_what_they_show() {
    let dashboard: Value =
        serde_json::from_str(&read("deploy/helm/liqo/dashboards/liqo.json")).expect("the dashboard is JSON");
    let mut taken = BTreeSet::new();
    for panel in dashboard["panels"].as_array().expect("panels") {
        let at = |name: &str| panel["gridPos"][name].as_u64().expect("a position");
        let title = panel["title"].as_str().expect("a title");
        assert!(panel["type"] == "row" || panel["description"].is_string(), "{title} has no description");
        for cell in
            (at("x")..at("x") + at("w")).flat_map(|x| (at("y")..at("y") + at("h")).map(move |y| (x, y)))
        {
            assert!(
                cell.0 < 24 && taken.insert(cell),
                "{title} lies over another panel, or outside, at {cell:?}"
            );
        }
    }
}

#[test]
fn the_brokers_service_reaches_the_broker() {
    let (broker, service) = (documents(&read("k8s/pod.yml")), yaml("k8s/http-svc.yml"));
    let template = &find(&broker, "Deployment", "liqo-broker")["spec"]["template"];
    let selector = service["spec"]["selector"].as_object().expect("a selector");
    for (key, value) in selector {
        assert_eq!(&template["metadata"]["labels"][key], value, "the Service selects nothing");
    }
    let container = &template["spec"]["containers"][0];
    let ports = container["ports"].as_array().expect("ports");
    let number =
        |name: &Value| ports.iter().find(|port| port["name"] == *name).map(|port| &port["containerPort"]);
    for port in service["spec"]["ports"].as_array().expect("ports") {
        assert_eq!(number(&port["targetPort"]), Some(&port["port"]));
    }
    for probe in ["startupProbe", "livenessProbe", "readinessProbe"] {
        assert!(
            number(&container[probe]["httpGet"]["port"]).is_some(),
            "{probe} asks a port that nobody serves"
        );
    }
    assert_eq!(find(&broker, "ServiceAccount", "liqo-broker")["metadata"]["namespace"], "liqo");
}
