//! What the chart installs, as far as these tests need it: kinds, rights, and what consumers may write.

use k8s_openapi::api::core::v1::Namespace;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{ApiResource, DynamicObject, GroupVersionKind, Patch, PatchParams, PostParams};
use kube::{Api, ResourceExt};
use liqo_chart::{Chart, Release};
use liqo_kit::rbac::{Rule, Scope};
use serde_json::{Value, json};

use crate::world::eventually;

pub(crate) const NAMESPACE: &str = "liqo";
/// Who the room is for the API server.
pub(crate) const ROOM: &str = "system:serviceaccount:liqo:liqo-controller-manager";
const ACCOUNT: &str = "liqo-controller-manager";
const RBAC: &str = "rbac.authorization.k8s.io";

/// Installs it.
pub(crate) async fn install(client: &kube::Client) {
    let definitions: Api<CustomResourceDefinition> = Api::all(client.clone());
    let params = PatchParams::apply("test").force();
    for definition in liqo_api::crds() {
        definitions.patch(&definition.name_any(), &params, &Patch::Apply(&definition)).await.unwrap();
    }
    create_namespace(client, NAMESPACE, &json!({})).await;
    for object in rights().into_iter().chain(rendered()) {
        put(client, &object).await;
    }
    for definition in liqo_api::crds() {
        eventually(&definition.name_any(), || async {
            let found = definitions.get(&definition.name_any()).await.map_err(|error| error.to_string())?;
            let conditions = found.status.and_then(|status| status.conditions).unwrap_or_default();
            let established = conditions.iter().any(|it| it.type_ == "Established" && it.status == "True");
            established.then_some(()).ok_or_else(|| "not established".to_owned())
        })
        .await;
    }
}

pub(crate) async fn create_namespace(client: &kube::Client, name: &str, labels: &Value) {
    let namespaces: Api<Namespace> = Api::all(client.clone());
    let namespace =
        serde_json::from_value(json!({ "metadata": { "name": name, "labels": labels } })).unwrap();
    eventually("namespace", || async {
        match namespaces.create(&PostParams::default(), &namespace).await {
            Ok(_) => Ok(()),
            Err(kube::Error::Api(status)) if status.reason == "AlreadyExists" => Ok(()),
            Err(error) => Err(error.to_string()),
        }
    })
    .await;
}

/// Applies an object of any kind.
pub(crate) async fn put(client: &kube::Client, object: &Value) {
    let text = |field: &str| object[field].as_str().unwrap().to_owned();
    let (group, version) = match text("apiVersion").split_once('/') {
        Some((group, version)) => (group.to_owned(), version.to_owned()),
        None => (String::new(), text("apiVersion")),
    };
    let resource = ApiResource::from_gvk(&GroupVersionKind { group, version, kind: text("kind") });
    let metadata = &object["metadata"];
    let api: Api<DynamicObject> = match metadata["namespace"].as_str() {
        Some(namespace) => Api::namespaced_with(client.clone(), namespace, &resource),
        None => Api::all_with(client.clone(), &resource),
    };
    let (name, params) = (metadata["name"].as_str().unwrap(), PatchParams::apply("test").force());
    eventually(name, || async {
        match api.patch(name, &params, &Patch::Apply(object)).await {
            Ok(_) => Ok(()),
            // A definition may be established and not served yet.
            Err(kube::Error::Api(status)) if status.code == 404 => Err(status.message),
            Err(error) => panic!("{object}: {error}"),
        }
    })
    .await;
}

/// The rights that the room asks for, and no others.
fn rights() -> Vec<Value> {
    let rules = |scope: Scope| -> Vec<Value> {
        liqo_hosting::RULES.iter().filter(|rule| rule.scope == scope).map(rule).collect()
    };
    let subjects = json!([{ "kind": "ServiceAccount", "name": ACCOUNT, "namespace": NAMESPACE }]);
    let api = format!("{RBAC}/v1");
    let named = json!({ "name": ACCOUNT });
    let role = json!({ "apiGroup": RBAC, "kind": "ClusterRole", "name": ACCOUNT });
    vec![
        json!({ "apiVersion": api, "kind": "ClusterRole", "metadata": named, "rules": rules(Scope::Cluster) }),
        json!({ "apiVersion": api, "kind": "ClusterRoleBinding", "metadata": named, "roleRef": role,
                "subjects": subjects }),
    ]
}

/// A rule as RBAC says it.
pub(crate) fn rule(rule: &Rule) -> Value {
    let mut all = json!({ "apiGroups": rule.groups, "resources": rule.resources, "verbs": rule.verbs });
    if !rule.names.is_empty() {
        all["resourceNames"] = json!(rule.names);
    }
    all
}

/// What consumers may do and write.
fn rendered() -> Vec<Value> {
    let release = Release {
        name: "liqo".into(),
        namespace: NAMESPACE.into(),
        service: "liqoctl".into(),
        is_upgrade: false,
        revision: 1,
        kubernetes_version: String::new(),
        api_versions: vec![],
    };
    let hosted = json!([{ "apiGroup": "example.com", "resources": ["widgets", "gadgets"] }]);
    let values = json!({ "customKinds": { "hosted": hosted } });
    let rendered = Chart::embedded().render(&release, &values).unwrap();
    let policies = ["liqo-peers", "liqo-shadowpods", "liqo-tenants", "liqo-remote-tenant"];
    let is_meant = |object: &Value| policies.iter().any(|name| object["metadata"]["name"] == *name);
    rendered.into_iter().filter(is_meant).collect()
}
