//! API-server-only clusters: quick, apart from each other, and gone without a trace.

use k8s_openapi::api::core::v1::Namespace;
use kube::Api;
use kube::api::ListParams;
use liqo_sandbox::{ClusterSpec, Component, TestSandbox};

#[tokio::test]
async fn two_api_servers_start_and_know_nothing_of_each_other() {
    let sandbox = TestSandbox::start([ClusterSpec::api_only("a"), ClusterSpec::api_only("b")]).await;
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
}
