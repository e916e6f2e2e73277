//! The kinds on a test's API server, and what is there.
#![allow(dead_code, reason = "each test file uses a part of it")]

use std::time::Duration;

use k8s_openapi::api::core::v1::ServiceAccount;
use k8s_openapi::api::rbac::v1::{ClusterRole, ClusterRoleBinding};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{ListParams, Patch, PatchParams, PostParams};
use kube::{Api, ResourceExt};
use liqo_api::ForeignCluster;
use liqo_kit::rbac::{Rule, Scope};
use liqo_sandbox::TestCluster;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::time::Instant;

/// Installs the kinds and waits until they are served.
pub(crate) async fn install(client: &kube::Client) {
    let api: Api<CustomResourceDefinition> = Api::all(client.clone());
    for crd in liqo_api::crds() {
        let applied =
            api.patch(&crd.name_any(), &PatchParams::apply("test").force(), &Patch::Apply(&crd)).await;
        applied.unwrap();
    }
    let served = |crd: &CustomResourceDefinition| {
        let conditions = crd.status.iter().flat_map(|status| status.conditions.iter().flatten());
        conditions.into_iter().any(|condition| condition.type_ == "Established" && condition.status == "True")
    };
    wait_for("the kinds are served", Duration::from_secs(60), async || {
        let all = api.list(&ListParams::default()).await.unwrap();
        let missing: Vec<_> = all.iter().filter(|crd| !served(crd)).map(ResourceExt::name_any).collect();
        if missing.is_empty() { Ok(()) } else { Err(missing.join(", ")) }
    })
    .await;
}

/// What somebody may use who is allowed what the rules say, and nothing else.
pub(crate) async fn restricted(cluster: &TestCluster<'_>, rules: &[Rule]) -> kube::Config {
    const NAME: &str = "discovery-under-test";
    let client = cluster.client().await;
    let rules: Vec<_> = rules
        .iter()
        .map(|rule| {
            assert_eq!(rule.scope, Scope::Cluster, "{rule:?}");
            json!({ "apiGroups": rule.groups, "resources": rule.resources, "verbs": rule.verbs, "resourceNames": rule.names })
        })
        .collect();
    let account = json!({ "metadata": { "name": NAME, "namespace": "default" } });
    let role = json!({ "metadata": { "name": NAME }, "rules": rules });
    let binding = json!({
        "metadata": { "name": NAME },
        "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": NAME },
        "subjects": [{ "kind": "ServiceAccount", "name": NAME, "namespace": "default" }],
    });
    let accounts: Api<ServiceAccount> = Api::namespaced(client.clone(), "default");
    create(&accounts, account).await;
    create::<ClusterRole>(&Api::all(client.clone()), role).await;
    create::<ClusterRoleBinding>(&Api::all(client), binding).await;
    let request = serde_json::from_value(json!({ "spec": { "audiences": [] } })).unwrap();
    let token = accounts.create_token_request(NAME, &PostParams::default(), &request).await.unwrap();
    let mut config = cluster.config().await;
    let token = serde_json::from_value(json!({ "token": token.status.unwrap().token })).unwrap();
    config.auth_info = token;
    config
}

async fn create<K>(api: &Api<K>, object: Value)
where
    K: kube::Resource + Clone + std::fmt::Debug + DeserializeOwned + Serialize,
{
    let object: K = serde_json::from_value(object).unwrap();
    api.create(&PostParams::default(), &object).await.unwrap();
}

/// Waits for a condition; when it does not come, shows what there was instead.
pub(crate) async fn wait_for<T>(
    what: &str,
    within: Duration,
    mut look: impl AsyncFnMut() -> Result<T, String>,
) -> T {
    let deadline = Instant::now() + within;
    loop {
        match look().await {
            Ok(found) => return found,
            Err(state) => {
                assert!(Instant::now() < deadline, "{what}: not within {within:?}. There is: {state}");
            }
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// What kubectl prints.
pub(crate) fn kubectl(cluster: &TestCluster<'_>, arguments: &[&str]) -> String {
    let output = cluster.kubectl(arguments);
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(output.status.success(), "kubectl {arguments:?}: {}", text(&output.stderr));
    text(&output.stdout)
}

/// The ForeignClusters, one a line.
pub(crate) async fn peers(client: &kube::Client) -> Vec<ForeignCluster> {
    Api::<ForeignCluster>::all(client.clone()).list(&ListParams::default()).await.unwrap().items
}

pub(crate) fn in_short(peers: &[ForeignCluster]) -> String {
    let line = |peer: &ForeignCluster| {
        format!("{} {:?} {:?} {:?}", peer.name_any(), peer.labels(), peer.annotations(), peer.spec)
    };
    peers.iter().map(line).collect::<Vec<_>>().join("\n")
}

/// Waits for the ForeignCluster of a cluster ID.
pub(crate) async fn found(client: &kube::Client, id: &str, within: Duration) -> ForeignCluster {
    wait_for(&format!("cluster {id} is found"), within, async || {
        let peers = peers(client).await;
        let of = |peer: &&ForeignCluster| {
            peer.labels().get("discovery.liqo.io/cluster-id").is_some_and(|it| it == id)
        };
        peers.iter().find(of).cloned().ok_or_else(|| in_short(&peers))
    })
    .await
}

/// Waits until there is none any more.
pub(crate) async fn gone(client: &kube::Client, id: &str, within: Duration) {
    wait_for(&format!("cluster {id} is gone"), within, async || {
        let peers = peers(client).await;
        let of = |peer: &ForeignCluster| {
            peer.labels().get("discovery.liqo.io/cluster-id").is_some_and(|it| it == id)
        };
        if peers.iter().any(of) { Err(in_short(&peers)) } else { Ok(()) }
    })
    .await;
}

/// How many changes the API server was asked for, of this resource.
pub(crate) fn changes_asked(cluster: &TestCluster<'_>, resource: &str) -> u64 {
    let metrics = kubectl(cluster, &["get", "--raw", "/metrics"]);
    let counts = metrics.lines().filter(|line| {
        let is = |part: &str| line.contains(part);
        is("apiserver_request_total{")
            && is(&format!("resource=\"{resource}\""))
            && !is("verb=\"GET\"")
            && !is("verb=\"LIST\"")
            && !is("verb=\"WATCH\"")
    });
    counts.filter_map(|line| line.rsplit_once(' ')?.1.parse::<f64>().ok()).sum::<f64>() as u64
}
