//! API-server-only clusters: quick, apart from each other, and gone without a trace.
#![allow(clippy::unwrap_used, reason = "a test can do nothing else about it")]

use k8s_openapi::api::core::v1::Namespace;
use kube::Api;
use kube::api::ListParams;
use liqo_sandbox::{ClusterSpec, Component, TestCluster, TestSandbox};

#[tokio::test]
async fn two_api_servers_start_and_know_nothing_of_each_other() {
    let sandbox =
        TestSandbox::start([ClusterSpec::api_only("a").audited(), ClusterSpec::api_only("b")]).await;
    let (a, b) = (sandbox.cluster("a"), sandbox.cluster("b"));
    let created = a.kubectl(["create", "namespace", "only-in-a"]);
    assert!(created.status.success(), "{created:?}");
    let names = async |client| -> Vec<String> {
        let list = Api::<Namespace>::all(client).list(&ListParams::default()).await.unwrap();
        list.items.into_iter().filter_map(|namespace| namespace.metadata.name).collect()
    };
    assert!(names(a.client().await).await.contains(&"only-in-a".to_owned()));
    assert!(!names(b.client().await).await.contains(&"only-in-a".to_owned()));
    a.compact_etcd().await;
    a.stop(Component::Apiserver).await;
    assert!(a.api_ready().await.is_err());
    a.start(Component::Apiserver).await;
    a.wait_ready().await;
    assert!(names(a.client().await).await.contains(&"only-in-a".to_owned()), "state survives a restart");
    requests_are_in_the_audit_log(a);
    assert!(!b.audit_log().exists(), "nobody asked for a log of b's requests");
}

/// One line per answered request, with who asked for what; also of those before the restart.
fn requests_are_in_the_audit_log(a: TestCluster<'_>) {
    let log = std::fs::read_to_string(a.audit_log()).unwrap();
    // The last line may be being written.
    let log = log.rsplit_once('\n').unwrap().0;
    let lines: Vec<serde_json::Value> = log.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let creations: Vec<_> = lines
        .iter()
        .filter(|line| line["verb"] == "create" && line["objectRef"]["name"] == "only-in-a")
        .collect();
    assert_eq!(creations.len(), 1, "{creations:?}");
    let creation = creations[0];
    assert_eq!(creation["objectRef"]["resource"], "namespaces", "{creation}");
    assert_eq!(creation["responseStatus"]["code"], 201, "{creation}");
    assert!(creation["user"]["username"].is_string(), "{creation}");
    assert!(creation["requestObject"].is_null(), "contents are nobody's business: {creation}");
    assert!(lines.iter().all(|line| line["stage"] != "RequestReceived"));
}
