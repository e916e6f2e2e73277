//! Installing the kinds on a real API server.

use std::time::Duration;

use k8s_openapi::{
    api::core::v1::Namespace,
    apiextensions_apiserver::pkg::apis::apiextensions::v1::{
        CustomResourceDefinition, CustomResourceDefinitionStatus,
    },
};
use kube::{
    Api, Client, ResourceExt,
    api::{Patch, PatchParams, PostParams},
};
use tokio::time::{Instant, sleep};

/// A definition is served within a second or two; a loaded machine needs longer.
const DEADLINE: Duration = Duration::from_secs(60);

/// The namespace that the tests' objects live in.
pub(crate) const NAMESPACE: &str = "objects";

/// Applies every definition, waits until the server serves it, and creates [`NAMESPACE`].
pub(crate) async fn install(client: &Client) {
    let api: Api<CustomResourceDefinition> = Api::all(client.clone());
    for crd in liqo_api::crds() {
        let name = crd.name_any();
        let applied = api.patch(&name, &PatchParams::apply("test").force(), &Patch::Apply(&crd)).await;
        applied.unwrap_or_else(|error| panic!("{name} cannot be installed: {error}"));
    }
    for crd in liqo_api::crds() {
        wait_until_served(client, &crd).await;
    }
    let mut namespace = Namespace::default();
    namespace.metadata.name = Some(NAMESPACE.to_owned());
    let namespaces: Api<Namespace> = Api::all(client.clone());
    namespaces.create(&PostParams::default(), &namespace).await.expect("the namespace can be created");
}

async fn wait_until_served(client: &Client, crd: &CustomResourceDefinition) {
    let api: Api<CustomResourceDefinition> = Api::all(client.clone());
    let name = &crd.name_any();
    let deadline = Instant::now() + DEADLINE;
    loop {
        let status = api.get(name).await.expect("the definition was applied").status.unwrap_or_default();
        assert!(!is_true(&status, "NonStructuralSchema"), "{name} is not structural: {status:#?}");
        // The server says so a moment before it does it.
        let answer = if is_true(&status, "Established") {
            listed(client, crd).await
        } else {
            Err("not yet".to_owned())
        };
        if answer.is_ok() {
            return;
        }
        assert!(Instant::now() < deadline, "{name} is not served: {answer:?} {status:#?}");
        sleep(Duration::from_millis(50)).await;
    }
}

/// Asks for all objects of a kind.
async fn listed(client: &Client, crd: &CustomResourceDefinition) -> Result<String, String> {
    let (group, version) = (&crd.spec.group, &crd.spec.versions[0].name);
    let path = format!("/apis/{group}/{version}/{}", crd.spec.names.plural);
    let request = http::Request::get(path).body(Vec::new()).expect("a request");
    client.request_text(request).await.map_err(|error| error.to_string())
}

fn is_true(status: &CustomResourceDefinitionStatus, condition: &str) -> bool {
    status.conditions.iter().flatten().any(|it| it.type_ == condition && it.status == "True")
}
