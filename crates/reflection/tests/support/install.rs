//! What the chart installs, as far as these tests need it.

#![allow(dead_code, reason = "each test uses a part of it")]

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{ApiResource, DynamicObject, GroupVersionKind, Patch, PatchParams};
use kube::{Api, ResourceExt};
use liqo_kit::rbac::{Rule, Scope};
use serde_json::{Value, json};

use crate::world::{NAMESPACE, eventually};

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
    let params = PatchParams::apply("test").force();
    let name = metadata["name"].as_str().unwrap();
    eventually(&format!("put {name}"), || async {
        api.patch(name, &params, &Patch::Apply(object)).await.map_err(|error| error.to_string())
    })
    .await;
}

/// The kinds, and the namespace that everything of Liqo is in.
pub(crate) async fn install(client: &kube::Client) {
    let definitions: Api<CustomResourceDefinition> = Api::all(client.clone());
    let params = PatchParams::apply("test").force();
    for definition in liqo_api::crds() {
        definitions.patch(&definition.name_any(), &params, &Patch::Apply(&definition)).await.unwrap();
    }
    put(client, &json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": NAMESPACE } })).await;
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

/// The rights that the room asks for.
pub(crate) fn rights(account: &str) -> Vec<Value> {
    let rules: Vec<Value> =
        liqo_reflection::RULES.iter().filter(|rule| rule.scope == Scope::Cluster).map(rule).collect();
    let subjects = json!([{ "kind": "ServiceAccount", "name": account, "namespace": NAMESPACE }]);
    let api = "rbac.authorization.k8s.io/v1";
    let role = json!({ "apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": account });
    vec![
        json!({ "apiVersion": api, "kind": "ClusterRole", "metadata": { "name": account }, "rules": rules }),
        json!({ "apiVersion": api, "kind": "ClusterRoleBinding", "metadata": { "name": account }, "roleRef": role,
                "subjects": subjects }),
    ]
}

fn rule(rule: &Rule) -> Value {
    let mut all = json!({ "apiGroups": rule.groups, "resources": rule.resources, "verbs": rule.verbs });
    if !rule.names.is_empty() {
        all["resourceNames"] = json!(rule.names);
    }
    all
}
