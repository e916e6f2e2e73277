//! What a cluster may do at its peer, by the certificate that it was given there.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test can do nothing else about it")]

use k8s_openapi::api::authorization::v1::SelfSubjectRulesReview;
use k8s_openapi::api::core::v1::{Pod, Secret};
use kube::api::{ListParams, PostParams};
use kube::{Api, Client};
use liqo_kit::ClientSource as _;
use liqo_kit::clusters::{ClientConfig, Clusters, Credentials};
use serde_json::json;

/// Everybody who is authenticated may ask about themselves.
const OF_ALL: [&str; 2] = ["authorization.k8s.io", "authentication.k8s.io"];

/// A client with the one certificate that a consumer has at a provider.
pub(crate) async fn client_at_the_provider(consumer: &Client) -> Client {
    let secrets: Api<Secret> = Api::all(consumer.clone());
    let selected = ListParams::default().labels("discovery.liqo.io/local-identity=true");
    let found = secrets.list(&selected).await.unwrap().items;
    assert_eq!(found.len(), 1, "{:?}", found.iter().map(|secret| &secret.metadata.name).collect::<Vec<_>>());
    let kept = found[0].data.as_ref().unwrap();
    let credentials = Credentials::certificate(
        std::str::from_utf8(&kept["apiServerUrl"].0).unwrap(),
        &kept["apiServerCa"].0,
        &kept["certificate"].0,
        &kept["private-key"].0,
    );
    let clusters = Clusters::new(ClientConfig::default());
    clusters.set("provider", credentials.unwrap()).unwrap().0.client()
}

/// What it may do with objects in a namespace, as the API server itself says.
pub(crate) async fn rights(client: &Client, namespace: &str) -> Result<Vec<String>, kube::Error> {
    let reviews: Api<SelfSubjectRulesReview> = Api::all(client.clone());
    let review = serde_json::from_value(json!({ "spec": { "namespace": namespace } })).unwrap();
    let status = reviews.create(&PostParams::default(), &review).await?.status.unwrap();
    let rules = status.resource_rules.into_iter().map(|rule| {
        let (groups, resources) = (rule.api_groups.unwrap_or_default(), rule.resources.unwrap_or_default());
        (groups, resources, rule.verbs)
    });
    let own = rules.filter(|(groups, _, _)| !groups.iter().all(|group| OF_ALL.contains(&group.as_str())));
    Ok(own.map(|(groups, resources, verbs)| format!("{verbs:?} {groups:?} {resources:?}")).collect())
}

/// Where it is let through to the pods; a request that is made rather than asked about.
pub(crate) async fn may_list_pods_anywhere(client: &Client, namespaces: &[&str]) -> Vec<String> {
    let mut open = Vec::new();
    for namespace in namespaces {
        let pods: Api<Pod> = Api::namespaced(client.clone(), namespace);
        match pods.list(&ListParams::default()).await {
            Err(kube::Error::Api(status)) if status.code == 403 => {}
            other => open.push(format!("{namespace}: {:?}", other.map(|pods| pods.items.len()))),
        }
    }
    open
}
