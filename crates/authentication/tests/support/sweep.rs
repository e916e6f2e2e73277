//! A peer's certificate, tried on everything that the API server has.

use std::collections::BTreeSet;

use futures::StreamExt;
use k8s_openapi::api::authorization::v1::{
    NonResourceAttributes, ResourceAttributes, SelfSubjectAccessReview, SelfSubjectAccessReviewSpec,
    SubjectAccessReview, SubjectAccessReviewSpec,
};
use k8s_openapi::api::core::v1::Namespace;
use k8s_openapi::api::rbac::v1::RoleBinding;
use kube::api::{Patch, PatchParams, PostParams};
use kube::{Api, ResourceExt};
use liqo_authentication::PEER_RULES;
use liqo_kit::clusters::{ClientConfig, Credentials};
use liqo_kit::{ClientSource, Clusters};
use serde_json::json;

use crate::world::{House, eventually, value};

/// Every verb that Kubernetes knows, also where no resource has it.
const VERBS: [&str; 14] = [
    "get",
    "list",
    "watch",
    "create",
    "update",
    "patch",
    "delete",
    "deletecollection",
    "impersonate",
    "bind",
    "escalate",
    "approve",
    "sign",
    "use",
];

/// What the API server answers at beside its resources; those that are for nobody but administrators among them.
const PATHS: [&str; 14] = [
    "/",
    "/api",
    "/apis",
    "/openapi/v2",
    "/version",
    "/healthz",
    "/readyz",
    "/livez",
    "/metrics",
    "/logs",
    "/configz",
    "/debug/pprof",
    "/flagz",
    "/*",
];

/// The places of another peer: its tenant namespace, and a namespace that is hosted for it.
const OTHERS_TENANT: &str = "liqo-tenant-other-0000";
const OTHERS_HOSTED: &str = "shop-of-other";

/// A client with the certificate that `a` got from `b`.
pub(crate) async fn peer_client(a: &House<'_>, b: &House<'_>) -> kube::Client {
    let secret = a.identity_secret(b).await.unwrap();
    let credentials = Credentials::certificate(
        &value(&secret, "apiServerUrl"),
        value(&secret, "apiServerCa").as_bytes(),
        value(&secret, "certificate").as_bytes(),
        value(&secret, "private-key").as_bytes(),
    )
    .unwrap();
    let (cluster, _) = Clusters::new(ClientConfig::default()).set("b", credentials).unwrap();
    cluster.client()
}

/// Group, resource (with a subresource), of all that the server has; and what it may have one day.
async fn resources(client: &kube::Client) -> BTreeSet<(String, String)> {
    let mut found = BTreeSet::new();
    let core = client.list_core_api_resources("v1").await.unwrap();
    found.extend(core.resources.into_iter().map(|resource| (String::new(), resource.name)));
    for group in client.list_api_groups().await.unwrap().groups {
        for version in group.versions {
            let list = client.list_api_group_resources(&version.group_version).await.unwrap();
            found.extend(list.resources.into_iter().map(|resource| (group.name.clone(), resource.name)));
        }
    }
    for (group, resource) in
        [("sharing.liqo.io", "contracts"), ("sharing.liqo.io", "contracts/status"), ("*", "*")]
    {
        found.insert((group.to_owned(), resource.to_owned()));
    }
    for (group, resource) in [("", "users"), ("", "groups"), ("certificates.k8s.io", "signers")] {
        found.insert((group.to_owned(), resource.to_owned()));
    }
    found
}

/// Asks as the peer, and as a user whom nobody knows: the difference must be what a peer may do, in its namespace.
pub(crate) async fn only_the_rights_of_a_peer(a: &House<'_>, b: &House<'_>) {
    let peer = peer_client(a, b).await;
    let tenant = b.tenant(a).await.unwrap().name_any();
    make_places_of_another(b).await;
    let mut questions = Vec::new();
    for (group, resource) in resources(&b.client).await {
        for verb in VERBS {
            for namespace in [tenant.as_str(), OTHERS_TENANT, OTHERS_HOSTED, "default", "liqo", ""] {
                let (resource, subresource) = resource.split_once('/').unwrap_or((&resource, ""));
                questions.push(ResourceAttributes {
                    group: Some(group.clone()),
                    resource: Some(resource.to_owned()),
                    subresource: Some(subresource.to_owned()),
                    namespace: Some(namespace.to_owned()),
                    verb: Some(verb.to_owned()),
                    ..ResourceAttributes::default()
                });
            }
        }
    }
    let asked = questions.len();
    assert!(asked > 5000, "{asked}");
    // The server watches roles and bindings: it may learn of those of the peer only now.
    eventually("the peer's rights are known", || async {
        let rule = PEER_RULES.iter().find(|rule| rule.names.is_empty()).ok_or("no rule")?;
        let first = |words: &[&str]| words.first().map(ToString::to_string);
        let question = ResourceAttributes {
            group: first(rule.groups),
            resource: first(rule.resources),
            verb: first(rule.verbs),
            namespace: Some(tenant.clone()),
            ..ResourceAttributes::default()
        };
        let asked = Asked { resource: Some(question), url: None };
        if asked.differs(&peer, &b.client).await { Ok(()) } else { Err("not yet".to_owned()) }
    })
    .await;
    let mut answers = futures::stream::iter(questions)
        .map(|question| async {
            let asked = Asked { resource: Some(question.clone()), url: None };
            (asked.differs(&peer, &b.client).await, question)
        })
        .buffer_unordered(32);
    let mut granted = BTreeSet::new();
    while let Some((differs, question)) = answers.next().await {
        if differs {
            let text = |text: Option<String>| text.unwrap_or_default();
            let resource = match text(question.subresource) {
                none if none.is_empty() => text(question.resource),
                sub => format!("{}/{sub}", text(question.resource)),
            };
            granted.insert((text(question.namespace), text(question.group), resource, text(question.verb)));
        }
    }
    let mut expected = BTreeSet::new();
    // What is bound to a name is not asked for here without one; that it is bound is tried with the admission policies.
    for rule in PEER_RULES.iter().filter(|rule| rule.names.is_empty()) {
        for (group, resource) in
            rule.groups.iter().flat_map(|group| rule.resources.iter().map(move |it| (group, it)))
        {
            for verb in rule.verbs {
                let words = [&tenant, *group, resource, verb].map(ToString::to_string);
                let [namespace, group, resource, verb] = words;
                expected.insert((namespace, group, resource, verb));
            }
        }
    }
    assert_eq!(granted, expected);
    for path in PATHS {
        for verb in ["get", "post", "put", "patch", "delete", "head"] {
            let (path, verb) = (Some(path.to_owned()), Some(verb.to_owned()));
            let asked = Asked { url: Some(NonResourceAttributes { path, verb }), ..Asked::default() };
            assert!(!asked.differs(&peer, &b.client).await, "{:?}", asked.url);
        }
    }
    println!("sweep: {asked} questions, {} rights", granted.len());
}

/// They look as the rooms make them, and somebody may do everything there.
async fn make_places_of_another(b: &House<'_>) {
    let tenant =
        json!({ "discovery.liqo.io/cluster-id": "other", "discovery.liqo.io/tenant-namespace": "true" });
    let hosted = json!({ "liqo.io/remote-cluster-id": "other" });
    let params = PatchParams::apply("test").force();
    for (name, labels, binding) in
        [(OTHERS_TENANT, tenant, "liqo-peer"), (OTHERS_HOSTED, hosted, "liqo-tenant")]
    {
        let namespaces: Api<Namespace> = Api::all(b.client.clone());
        let namespace = json!({
            "apiVersion": "v1", "kind": "Namespace",
            "metadata": { "name": name, "labels": labels,
                "annotations": { "authentication.liqo.io/admitted-by": "own",
                                 "liqo.io/managed-by-namespace-map": format!("{OTHERS_TENANT}/map") } },
        });
        namespaces.patch(name, &params, &Patch::Apply(&namespace)).await.unwrap();
        let bindings: Api<RoleBinding> = Api::namespaced(b.client.clone(), name);
        let group = "rbac.authorization.k8s.io";
        let rights = json!({
            "apiVersion": format!("{group}/v1"), "kind": "RoleBinding", "metadata": { "name": binding },
            "roleRef": { "apiGroup": group, "kind": "ClusterRole", "name": "cluster-admin" },
            "subjects": [{ "apiGroup": group, "kind": "User", "name": "other" }],
        });
        bindings.patch(binding, &params, &Patch::Apply(&rights)).await.unwrap();
    }
}

/// What is asked: about a resource, or about a path.
#[derive(Clone, Default)]
struct Asked {
    resource: Option<ResourceAttributes>,
    url: Option<NonResourceAttributes>,
}

impl Asked {
    /// Whether a peer may do it, and somebody whom nobody knows may not.
    async fn differs(&self, peer: &kube::Client, admin: &kube::Client) -> bool {
        let as_peer = SelfSubjectAccessReview {
            spec: SelfSubjectAccessReviewSpec {
                resource_attributes: self.resource.clone(),
                non_resource_attributes: self.url.clone(),
            },
            ..SelfSubjectAccessReview::default()
        };
        let reviews: Api<SelfSubjectAccessReview> = Api::all(peer.clone());
        let as_peer = reviews.create(&PostParams::default(), &as_peer).await.unwrap();
        if !as_peer.status.is_some_and(|status| status.allowed) {
            return false;
        }
        let as_nobody = SubjectAccessReview {
            spec: SubjectAccessReviewSpec {
                user: Some("nobody-knows-me".to_owned()),
                groups: Some(vec!["system:authenticated".to_owned()]),
                resource_attributes: self.resource.clone(),
                non_resource_attributes: self.url.clone(),
                ..SubjectAccessReviewSpec::default()
            },
            ..SubjectAccessReview::default()
        };
        let reviews: Api<SubjectAccessReview> = Api::all(admin.clone());
        let as_nobody = reviews.create(&PostParams::default(), &as_nobody).await.unwrap();
        !as_nobody.status.is_some_and(|status| status.allowed)
    }
}
