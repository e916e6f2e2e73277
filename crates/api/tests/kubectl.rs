//! The kinds as a person meets them: through kubectl.

#![allow(clippy::expect_used, clippy::panic, reason = "a test that cannot go on has failed")]

#[path = "support/cases.rs"]
#[expect(dead_code, reason = "only the tables' first objects are needed here")]
mod cases;
#[path = "support/install.rs"]
mod install;

use std::process::Output;
use std::time::Duration;

use install::{NAMESPACE, install};
use liqo_sandbox::{ClusterSpec, TestCluster, TestSandbox};
use serde_json::Value;
use tokio::time::Instant;

/// Examples of documentation for the original, letter by letter.
const FOREIGN_CLUSTER: &str = include_str!("seeds/foreigncluster.json");
const NAMESPACE_OFFLOADING: &str = include_str!("seeds/namespaceoffloading.as-printed");

#[tokio::test(flavor = "multi_thread")]
async fn kubectl_shows_columns_short_names_and_category_and_applies_the_known_examples() {
    let sandbox = TestSandbox::start([ClusterSpec::api_only("a")]).await;
    let cluster = sandbox.cluster("a");
    install(&cluster.client().await).await;
    wait_until_listed(cluster);

    examples_apply_unchanged(cluster);
    every_kind_has_its_columns(cluster);
    the_category_lists_every_kind(cluster);
    fields_left_empty_are_as_if_left_out(cluster);
    explain_explains(cluster);
}

/// Waits until the server lists every kind: it does so a while after it serves them, and kubectl goes by that.
fn wait_until_listed(cluster: TestCluster<'_>) {
    let deadline = Instant::now() + Duration::from_secs(60);
    let names: Vec<String> = liqo_api::crds().into_iter().filter_map(|crd| crd.metadata.name).collect();
    loop {
        let listed = stdout(cluster.kubectl(["api-resources", "-o", "name"]));
        let missing: Vec<_> = names.iter().filter(|name| !listed.lines().any(|it| it == *name)).collect();
        if missing.is_empty() {
            return;
        }
        assert!(Instant::now() < deadline, "not listed: {missing:?}");
    }
}

/// The output, or a panic with what kubectl said.
fn stdout(output: Output) -> String {
    assert!(output.status.success(), "kubectl failed: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("kubectl speaks UTF-8")
}

/// What kubectl said when it refused.
fn refusal(output: &Output) -> String {
    assert!(!output.status.success(), "accepted: {}", String::from_utf8_lossy(&output.stdout));
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn examples_apply_unchanged(cluster: TestCluster<'_>) {
    let applied = stdout(cluster.kubectl_apply(FOREIGN_CLUSTER));
    assert_eq!(applied.trim(), "foreigncluster.discovery.liqo.io/polito-labs-79eba8 created");
    let stored = stdout(cluster.kubectl(["get", "fc", "polito-labs-79eba8", "-o", "json"]));
    let (stored, written): (Value, Value) =
        (serde_json::from_str(&stored).expect("JSON"), serde_json::from_str(FOREIGN_CLUSTER).expect("JSON"));
    assert_eq!(stored["spec"], written["spec"]);
    assert_eq!(stored["metadata"]["labels"], written["metadata"]["labels"]);

    // As printed, this one is no YAML: no server ever sees it. Two spaces before one line are what is missing.
    let error = refusal(&cluster.kubectl_apply(NAMESPACE_OFFLOADING));
    assert!(error.contains("mapping values are not allowed in this context"), "{error}");
    let readable = NAMESPACE_OFFLOADING.replace("- key: liqo.io/type", "  - key: liqo.io/type");
    stdout(cluster.kubectl(["create", "namespace", "liqo"]));
    let applied = stdout(cluster.kubectl_apply(&readable));
    assert_eq!(applied.trim(), "namespaceoffloading.offloading.liqo.io/offloading created");
    let key = "-o=jsonpath={.spec.clusterSelector.nodeSelectorTerms[0].matchExpressions[0].values[0]}";
    assert_eq!(stdout(cluster.kubectl(["get", "nsof", "offloading", "-n", "liqo", key])), "virtual-node");

    // Who repairs it the other way, so that it is YAML, is told what is wrong with it.
    let other =
        NAMESPACE_OFFLOADING.replace("    operator:", "  operator:").replace("    values:", "  values:");
    let other = other.replace("                - virtual-node", "              - virtual-node");
    let error = refusal(&cluster.kubectl_apply(&other));
    assert!(error.contains(r#"unknown field "spec.clusterSelector.nodeSelectorTerms[1].key""#), "{error}");
}

/// What `kubectl get <short name> -o wide` shows of a kind's first object with a status.
struct Shown {
    plural: &'static str,
    short: &'static str,
    /// Header and value of each column but NAME and AGE.
    columns: &'static [(&'static str, &'static str)],
    /// The same of the columns that only `-o wide` shows.
    wide: &'static [(&'static str, &'static str)],
    status: &'static str,
}

const SHOWN: &[Shown] = &[
    Shown {
        plural: "clusterconfigs",
        short: "lcc",
        columns: &[
            ("CLUSTER NAME", "provider"),
            ("MODE", "Autonomous"),
            ("VERSION", "0.1.0"),
            ("READY", "True"),
        ],
        wide: &[("CLUSTER ID", "32f0b45b-5c06-4cc4-84b6-03a323ffc93d")],
        status: r#"{"clusterIdentity": {"clusterID": "32f0b45b-5c06-4cc4-84b6-03a323ffc93d", "clusterName": "provider"},
            "workingMode": "Autonomous", "version": "0.1.0", "conditions": [{"type": "Ready", "status": "True",
            "reason": "Operating", "message": "", "lastTransitionTime": "2026-01-02T03:04:05Z"}]}"#,
    },
    Shown {
        plural: "foreignclusters",
        short: "fc",
        columns: &[
            ("OUTGOING PEERING PHASE", "Established"),
            ("INCOMING PEERING PHASE", "None"),
            ("NETWORKING STATUS", "Pending"),
            ("AUTHENTICATION STATUS", "Denied"),
        ],
        wide: &[("CLUSTERID", "32f0b45b-5c06-4cc4-84b6-03a323ffc93d"), ("CLUSTERNAME", "provider")],
        status: r#"{"peeringConditions": [
            {"type": "IncomingPeering", "status": "None"}, {"type": "OutgoingPeering", "status": "Established"},
            {"type": "AuthenticationStatus", "status": "Denied"}, {"type": "NetworkStatus", "status": "Pending"}]}"#,
    },
    Shown {
        plural: "sharingpolicies",
        short: "spol",
        columns: &[
            ("ACTION", "Allow"),
            ("PERCENTAGE", "50"),
            ("PEERS", r#"["silver","tin"]"#),
            ("VALID", "True"),
        ],
        wide: &[("APPROVAL", "Automatic"), ("CURRENCY", "EUR")],
        status: r#"{"peers": ["silver", "tin"], "conditions": [{"type": "Valid", "status": "True", "reason": "Valid",
            "message": "", "lastTransitionTime": "2026-01-02T03:04:05Z"}]}"#,
    },
    Shown {
        plural: "contracts",
        short: "lct",
        columns: &[
            ("PROVIDER", "32f0b45b-5c06-4cc4-84b6-03a323ffc93d"),
            ("CONSUMER", "3d3ae3bf-5e4a-4c5a-b8b5-f0a1e0fbcd5c"),
            ("PHASE", "Active"),
            ("CPU", "3500m"),
            ("MEMORY", "6Gi"),
            ("UNTIL", "2036-01-02T03:04:05Z"),
        ],
        wide: &[("PRICE", "EUR")],
        status: r#"{"phase": "Active", "resources": {"cpu": "3500m", "memory": "6Gi"},
            "validUntil": "2036-01-02T03:04:05Z", "price": "EUR 73 per month"}"#,
    },
    Shown {
        plural: "resourcerequests",
        short: "rr",
        columns: &[("LOCAL", "true")],
        wide: &[],
        status: r#"{"offerState": "Created"}"#,
    },
    Shown {
        plural: "searchdomains",
        short: "sd",
        columns: &[("DOMAIN", "liqo.example.com"), ("AUTOJOIN", "false")],
        wide: &[],
        status: r#"{"found": 1}"#,
    },
    Shown {
        plural: "resourceoffers",
        short: "offer",
        columns: &[("STATUS", "Accepted"), ("VIRTUALKUBELETSTATUS", "Created"), ("LOCAL", "true")],
        wide: &[],
        status: r#"{"phase": "Accepted", "virtualKubeletStatus": "Created"}"#,
    },
    Shown {
        plural: "namespaceoffloadings",
        short: "nsof",
        columns: &[
            ("NAMESPACEMAPPINGSTRATEGY", "DefaultName"),
            ("PODOFFLOADINGSTRATEGY", "LocalAndRemote"),
            ("OFFLOADINGPHASE", "Ready"),
        ],
        wide: &[("REMOTENAMESPACENAME", "shop-consumer-0a1b2c")],
        status: r#"{"offloadingPhase": "Ready", "remoteNamespaceName": "shop-consumer-0a1b2c"}"#,
    },
    Shown {
        plural: "namespacemaps",
        short: "nsmap",
        columns: &[("LOCAL", "true")],
        wide: &[],
        status: r#"{"currentMapping": {}}"#,
    },
    Shown {
        plural: "shadowpods",
        short: "shpod",
        columns: &[("PHASE", "Running")],
        wide: &[],
        status: r#"{"phase": "Running"}"#,
    },
    Shown {
        plural: "networkconfigs",
        short: "netcfg",
        columns: &[("PEERING CLUSTER", "provider"), ("PROCESSED", "true"), ("LOCAL", "true")],
        wide: &[("ENDPOINT IP", "203.0.113.7"), ("VPN BACKEND", "wireguard")],
        status: r#"{"processed": true}"#,
    },
    Shown {
        plural: "tunnelendpoints",
        short: "tep",
        columns: &[
            ("PEERING CLUSTER ID", "32f0b45b-5c06-4cc4-84b6-03a323ffc93d"),
            ("BACKEND TYPE", "wireguard"),
            ("CONNECTION STATUS", "connected"),
        ],
        wide: &[("ENDPOINT IP", "203.0.113.7")],
        status: r#"{"connection": {"status": "connected"}}"#,
    },
];

fn every_kind_has_its_columns(cluster: TestCluster<'_>) {
    assert_eq!(SHOWN.len(), liqo_api::crds().len(), "a kind is not shown");
    for shown in SHOWN {
        let mut object = cases::table(shown.plural).cases().swap_remove(0).object;
        object["metadata"]["labels"]["liqo.io/replication"] = "true".into();
        object["metadata"]["namespace"] = NAMESPACE.into();
        let name = object["metadata"]["name"].as_str().expect("a name").to_owned();
        stdout(cluster.kubectl_apply(&object.to_string()));
        let patch = format!(r#"{{"status": {}}}"#, shown.status);
        let target = [
            "patch",
            shown.short,
            &name,
            "-n",
            NAMESPACE,
            "--subresource=status",
            "--type=merge",
            "-p",
            &patch,
        ];
        stdout(cluster.kubectl(target));

        let narrow = stdout(cluster.kubectl(["get", shown.short, &name, "-n", NAMESPACE]));
        let wide = stdout(cluster.kubectl(["get", shown.short, &name, "-n", NAMESPACE, "-o", "wide"]));
        for (header, value) in shown.columns {
            assert_eq!(column(&narrow, header).as_deref(), Some(*value), "{header} of\n{narrow}");
        }
        for (header, value) in shown.wide {
            assert_eq!(column(&wide, header).as_deref(), Some(*value), "{header} of\n{wide}");
            assert_eq!(column(&narrow, header), None, "{header} is for -o wide only:\n{narrow}");
        }
        assert!(column(&narrow, "AGE").is_some_and(|age| age.ends_with('s')), "{narrow}");
    }
}

/// The value in the first row under a header; headers stand exactly above their values.
fn column(table: &str, header: &str) -> Option<String> {
    let (headers, row) = (table.lines().next()?, table.lines().nth(1)?);
    let names: Vec<&str> = headers.split("   ").map(str::trim).filter(|name| !name.is_empty()).collect();
    let name = names.iter().find(|name| **name == header)?;
    let mut found = headers.match_indices(name).map(|(start, _)| start);
    let start = found.find(|start| *start == 0 || headers[..*start].ends_with("   "))?;
    row.get(start..).and_then(|rest| rest.split_whitespace().next()).map(str::to_owned)
}

fn the_category_lists_every_kind(cluster: TestCluster<'_>) {
    let all = stdout(cluster.kubectl(["get", "liqo", "-n", NAMESPACE, "-o", "name"]));
    for crd in liqo_api::crds() {
        let kind = crd.spec.names.kind.to_lowercase();
        assert!(all.contains(&format!("{kind}.{}/", crd.spec.group)), "no {kind} in\n{all}");
    }
}

fn fields_left_empty_are_as_if_left_out(cluster: TestCluster<'_>) {
    let yaml = "apiVersion: discovery.liqo.io/v1alpha1\nkind: ForeignCluster\nmetadata:\n  name: empty\nspec:\n  \
                clusterIdentity:\n  networkingEnabled:\n  foreignAuthUrl: https://auth.example.com\n  foreignProxyUrl:\n  ttl:\n";
    stdout(cluster.kubectl_apply(yaml));
    let spec = stdout(cluster.kubectl(["get", "fc", "empty", "-o", "jsonpath={.spec}"]));
    let spec: Value = serde_json::from_str(&spec).expect("JSON");
    let expected = serde_json::json!({
        "foreignAuthUrl": "https://auth.example.com",
        "incomingPeeringEnabled": "Auto",
        "insecureSkipTLSVerify": false,
        "networkingEnabled": "Yes",
        "outgoingPeeringEnabled": "Auto",
    });
    assert_eq!(spec, expected);
}

fn explain_explains(cluster: TestCluster<'_>) {
    let text = stdout(cluster.kubectl(["explain", "foreignclusters.spec.insecureSkipTLSVerify"]));
    assert!(text.contains("Whether to accept any certificate"), "{text}");
}
