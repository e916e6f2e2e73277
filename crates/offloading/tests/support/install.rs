//! What the chart installs, as far as these tests need it: kinds, rights, and what admission refuses.

use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{ApiResource, DynamicObject, GroupVersionKind, Patch, PatchParams};
use kube::{Api, ResourceExt};
use liqo_chart::{Chart, Release};
use liqo_kit::rbac::{Rule, Scope};
use liqo_offloading::RULES;
use serde_json::{Value, json};

use crate::world::eventually;

pub(crate) const NAMESPACE: &str = "liqo";
pub(crate) const ACCOUNT: &str = "liqo-controller-manager";

pub(crate) fn namespace(name: &str, labels: &Value) -> Value {
    json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": name, "labels": labels } })
}

pub(crate) async fn install(client: &kube::Client) {
    install_kinds(client).await;
    put(client, &namespace(NAMESPACE, &json!({}))).await;
    for object in rights() {
        put(client, &object).await;
    }
    let policies = chart(&["ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"]);
    for object in policies.iter().filter(|object| object["metadata"]["name"] == "liqo-placement") {
        put(client, object).await;
    }
    let maps: Api<ConfigMap> = Api::namespaced(client.clone(), NAMESPACE);
    eventually("kube-root-ca.crt", || async {
        let found = maps.get_opt("kube-root-ca.crt").await.map_err(|error| error.to_string())?;
        found.map(|_| ()).ok_or_else(|| "missing".to_owned())
    })
    .await;
}

pub(crate) async fn install_kinds(client: &kube::Client) {
    use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
    let definitions: Api<CustomResourceDefinition> = Api::all(client.clone());
    let params = PatchParams::apply("test").force();
    for definition in liqo_api::crds() {
        definitions.patch(&definition.name_any(), &params, &Patch::Apply(&definition)).await.unwrap();
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

/// The rights that the room asks for.
fn rights() -> Vec<Value> {
    let rules =
        |scope: Scope| -> Vec<Value> { RULES.iter().filter(|rule| rule.scope == scope).map(rule).collect() };
    let subjects = json!([{ "kind": "ServiceAccount", "name": ACCOUNT, "namespace": NAMESPACE }]);
    let api = "rbac.authorization.k8s.io/v1";
    let (named, inside) = (json!({ "name": ACCOUNT }), json!({ "name": ACCOUNT, "namespace": NAMESPACE }));
    let role = |kind: &str| json!({ "apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": ACCOUNT });
    vec![
        json!({ "apiVersion": api, "kind": "ClusterRole", "metadata": named, "rules": rules(Scope::Cluster) }),
        json!({ "apiVersion": api, "kind": "ClusterRoleBinding", "metadata": named, "roleRef": role("ClusterRole"),
                "subjects": subjects }),
        json!({ "apiVersion": api, "kind": "Role", "metadata": inside, "rules": rules(Scope::Namespace) }),
        json!({ "apiVersion": api, "kind": "RoleBinding", "metadata": inside, "roleRef": role("Role"),
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

/// What the chart has of these kinds.
pub(crate) fn chart(kinds: &[&str]) -> Vec<Value> {
    let release = Release {
        name: "liqo".into(),
        namespace: NAMESPACE.into(),
        service: "liqoctl".into(),
        is_upgrade: false,
        revision: 1,
        kubernetes_version: String::new(),
        api_versions: vec![],
    };
    let rendered = Chart::embedded().render(&release, &json!({})).unwrap();
    rendered.into_iter().filter(|object| kinds.iter().any(|kind| object["kind"] == *kind)).collect()
}
