//! Two real clusters behind one registry.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that cannot go on has failed"
)]

#[path = "support/recorder.rs"]
mod recorder;

use std::time::Duration;

use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use kube::Api;
use kube::api::{ListParams, PostParams};
use liqo_kit::clusters::{Change, ClientConfig, Credentials};
use liqo_kit::watch::{Scope, Watch};
use liqo_kit::{ClientSource, Cluster, Clusters};
use liqo_sandbox::{ClusterSpec, Component, TestCluster, TestSandbox};
use tokio::task::JoinSet;
use tokio::time::Instant;

use recorder::{Entry, Recorder, config_map, wait_for_names};

fn credentials(cluster: &TestCluster<'_>) -> Credentials {
    let text = std::fs::read(cluster.kubeconfig()).unwrap();
    Credentials::kubeconfig(&text)
        .unwrap_or_else(|error| panic!("{error}\n{}", String::from_utf8_lossy(&text)))
}

/// TCP connections of this machine to the cluster's API server.
fn connections(credentials: &Credentials) -> usize {
    let host: std::net::Ipv4Addr = credentials.server().host().unwrap().parse().unwrap();
    let port = credentials.server().port_u16().unwrap_or(443);
    let remote = format!("{:08X}:{port:04X}", u32::from_le_bytes(host.octets()));
    let established = "01";
    std::fs::read_to_string("/proc/self/net/tcp")
        .unwrap()
        .lines()
        .filter(|line| {
            let fields: Vec<_> = line.split_whitespace().collect();
            fields.get(2) == Some(&remote.as_str()) && fields.get(3) == Some(&established)
        })
        .count()
}

async fn namespaces(cluster: &Cluster) -> Result<usize, kube::Error> {
    let api: Api<Namespace> = Api::all(cluster.client());
    api.list(&ListParams::default()).await.map(|list| list.items.len())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_cluster_has_one_client_few_connections_and_an_end() {
    let sandbox = TestSandbox::start([ClusterSpec::api_only("a"), ClusterSpec::api_only("b")]).await;
    let (a, b) = (sandbox.cluster("a"), sandbox.cluster("b"));
    let clusters = Clusters::new(ClientConfig::default());
    let (in_a, change) = clusters.set("a", credentials(&a)).unwrap();
    assert_eq!(change, Change::Added);
    let (in_b, _) = clusters.set("b", credentials(&b)).unwrap();

    // Each client talks to its own cluster.
    let api: Api<ConfigMap> = Api::namespaced(in_a.client(), "default");
    api.create(&PostParams::default(), &config_map("only-in-a", "1")).await.unwrap();
    let elsewhere: Api<ConfigMap> = Api::namespaced(in_b.client(), "default");
    assert!(elsewhere.get_opt("only-in-a").await.unwrap().is_none());

    // A hundred watches and two hundred requests at once share a handful of connections.
    let before = connections(&credentials(&a));
    let mut tasks = JoinSet::new();
    let mut recorders = Vec::new();
    for number in 0..100 {
        let recorder = Recorder::default();
        let watch = Watch::<Entry>::new(in_a.clone(), Scope::namespaced::<ConfigMap>("default"))
            .named(format!("watch-{number}"))
            .feed(recorder.clone());
        tasks.spawn(watch.run(in_a.removed().child_token()));
        recorders.push(recorder);
    }
    let mut requests = JoinSet::new();
    for _ in 0..200 {
        let cluster = in_a.clone();
        requests.spawn(async move { namespaces(&cluster).await });
    }
    while let Some(answer) = requests.join_next().await {
        assert!(answer.unwrap().unwrap() >= 1);
    }
    for recorder in &recorders {
        wait_for_names(recorder, &["only-in-a".to_owned()], Duration::from_secs(30)).await;
    }
    let opened = connections(&credentials(&a)).saturating_sub(before);
    println!("100 watches and 200 requests used {opened} connections more than before");
    assert!(opened <= 6, "{opened} connections");

    // Other credentials replace the client; whoever holds the cluster uses them at once.
    let wrong = {
        let (ca, certificate, key) = foreign_pems();
        let url = credentials(&a).server().to_string();
        Credentials::certificate(&url, ca.as_bytes(), certificate.as_bytes(), key.as_bytes()).unwrap()
    };
    assert_eq!(clusters.set("a", wrong).unwrap().1, Change::Replaced);
    let error = namespaces(&in_a).await.unwrap_err();
    assert!(format!("{error:?}").contains("UnknownIssuer"), "a server of another CA was trusted: {error:?}");
    assert_eq!(clusters.set("a", credentials(&a)).unwrap().1, Change::Replaced);
    assert!(namespaces(&in_a).await.is_ok());
    assert_eq!(clusters.set("a", credentials(&a)).unwrap().1, Change::Unchanged);

    // A silent server costs its own requests their time-out, and nobody else anything.
    b.pause(Component::Apiserver).await;
    let hanging = in_b.clone();
    let mut silent = JoinSet::new();
    silent.spawn(async move { namespaces(&hanging).await });
    let started = Instant::now();
    assert!(namespaces(&in_a).await.is_ok());
    assert!(started.elapsed() < Duration::from_secs(2), "the other cluster waited: {:?}", started.elapsed());
    b.resume(Component::Apiserver).await;
    b.wait_ready().await;
    let _ = silent.join_next().await;
    assert!(namespaces(&in_b).await.is_ok());

    // Removing a cluster ends what runs under its token.
    assert!(clusters.remove("a"));
    let ended = async { while tasks.join_next().await.is_some() {} };
    tokio::time::timeout(Duration::from_secs(5), ended)
        .await
        .expect("the watches of a removed cluster go on");
}

fn foreign_pems() -> (String, String, String) {
    let key = rcgen::KeyPair::generate().unwrap();
    let mut params = rcgen::CertificateParams::new(vec!["somebody-else".into()]).unwrap();
    params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    let certificate = params.self_signed(&key).unwrap();
    (certificate.pem(), certificate.pem(), key.serialize_pem())
}
