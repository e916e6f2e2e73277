//! Hollow nodes: objects that schedule and "run" pods at almost no cost.

use std::time::Duration;

use liqo_sandbox::{ClusterSpec, TestSandbox};
use tokio::time::Instant;

const PODS: &str = "
apiVersion: apps/v1
kind: Deployment
metadata: {name: many}
spec:
  replicas: 200
  selector: {matchLabels: {app: many}}
  template:
    metadata: {labels: {app: many}}
    spec:
      containers: [{name: nothing, image: nothing}]
";

#[tokio::test]
async fn hollow_nodes_run_more_pods_than_this_machine_could() {
    let sandbox = TestSandbox::start([ClusterSpec::hollow("big", 30)]).await;
    let cluster = sandbox.cluster("big");
    let nodes = cluster.kubectl(["get", "nodes", "-o", "name"]);
    assert_eq!(String::from_utf8_lossy(&nodes.stdout).lines().count(), 30);
    assert!(cluster.kubectl_apply(PODS).status.success());
    let deadline = Instant::now() + Duration::from_secs(180);
    loop {
        let ready = cluster.kubectl(["get", "deployment", "many", "-o", "jsonpath={.status.readyReplicas}"]);
        let ready = String::from_utf8_lossy(&ready.stdout).into_owned();
        if ready == "200" {
            break;
        }
        assert!(Instant::now() < deadline, "{ready} of 200 pods are ready");
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}
