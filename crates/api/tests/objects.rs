//! The kinds on a real API server: what it must accept, and what it must refuse in words a person understands.

#![allow(clippy::expect_used, clippy::panic, reason = "a test that cannot go on has failed")]

#[path = "support/cases.rs"]
mod cases;
#[path = "support/install.rs"]
mod install;
#[path = "support/largest.rs"]
mod largest;

use std::fmt::Debug;

use cases::{Attempt, Case};
use install::{NAMESPACE, install};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::{
    Api, Client, ResourceExt,
    api::{ApiResource, DeleteParams, DynamicObject, PostParams},
    core::{
        GroupVersionKind, Request,
        object::{HasSpec, HasStatus},
    },
};
use liqo_api::{
    ClusterConfig, Contract, ForeignCluster, NamespaceMap, NamespaceOffloading, NetworkConfig, ResourceOffer,
    ResourceRequest, SearchDomain, ShadowPod, SharingPolicy, TunnelEndpoint,
};
use liqo_sandbox::{ClusterSpec, TestSandbox};
use serde::de::DeserializeOwned;
use serde_json::Value;

#[tokio::test(flavor = "multi_thread")]
async fn the_server_accepts_what_it_must_and_refuses_the_rest_with_its_reason() {
    let sandbox = TestSandbox::start([ClusterSpec::api_only("a")]).await;
    let client = sandbox.cluster("a").client().await;
    install(&client).await;

    let mut wrong = Vec::new();
    for crd in liqo_api::crds() {
        let kind = Kind::new(&client, &crd);
        let cases = cases::table(&kind.plural).cases();
        let refusals = cases.iter().filter(|case| case.refusal.is_some()).count();
        assert!(refusals >= 5 && cases.len() > refusals + 3, "too few cases for {}", kind.plural);
        for case in &cases {
            wrong.extend(kind.attempt(case).await.err());
        }
        wrong.extend(kind.largest_object().await.err());
        wrong.extend(kind.status_is_separate().await.err());
    }
    assert!(wrong.is_empty(), "{} surprises:\n{}", wrong.len(), wrong.join("\n"));
}

/// One kind on the server.
struct Kind {
    plural: String,
    api: Api<DynamicObject>,
}

impl Kind {
    fn new(client: &Client, crd: &CustomResourceDefinition) -> Self {
        let names = &crd.spec.names;
        let gvk = GroupVersionKind::gvk(&crd.spec.group, &crd.spec.versions[0].name, &names.kind);
        let resource = ApiResource::from_gvk_with_plural(&gvk, &names.plural);
        let api = match crd.spec.scope.as_str() {
            "Namespaced" => Api::namespaced_with(client.clone(), NAMESPACE, &resource),
            _ => Api::all_with(client.clone(), &resource),
        };
        Self { plural: names.plural.clone(), api }
    }

    /// Tries a case and cleans up; the error says how the outcome differs from the expected one.
    async fn attempt(&self, case: &Case) -> Result<(), String> {
        let outcome = match &case.attempt {
            Attempt::Create => self.create(&case.object).await,
            Attempt::Change(before) => {
                let existing =
                    self.create(before).await.map_err(|error| format!("{}: {error}", case.title))?;
                self.replace(&existing, &case.object).await
            }
            Attempt::Status(before) => {
                let existing =
                    self.create(before).await.map_err(|error| format!("{}: {error}", case.title))?;
                self.replace_status(&existing, &case.object["status"]).await
            }
        };
        self.delete_all().await;
        let verdict = match (&case.refusal, outcome) {
            (None, Ok(stored)) => self.same_in_rust(&case.object, &stored),
            (None, Err(refusal)) => Err(format!("refused: {refusal}")),
            (Some(says), Err(refusal)) if refusal.contains(says) => Ok(()),
            (Some(says), Err(refusal)) => Err(format!("refused, but without saying {says:?}: {refusal}")),
            (Some(_), Ok(_)) => Err("accepted".to_owned()),
        };
        verdict.map_err(|error| format!("{}: {error}", case.title))
    }

    async fn create(&self, object: &Value) -> Result<DynamicObject, String> {
        let request = Request::new(self.api.resource_url());
        let body = serde_json::to_vec(object).expect("an object");
        self.send_strictly(request.create(&PostParams::default(), body).expect("a request")).await
    }

    async fn replace(&self, existing: &DynamicObject, object: &Value) -> Result<DynamicObject, String> {
        let mut object = object.clone();
        object["metadata"]["resourceVersion"] = existing.resource_version().into();
        let request = Request::new(self.api.resource_url());
        let body = serde_json::to_vec(&object).expect("an object");
        let request = request.replace(&existing.name_any(), &PostParams::default(), body);
        self.send_strictly(request.expect("a request")).await
    }

    /// Lets the server refuse fields that nobody knows, as kubectl does.
    async fn send_strictly(&self, mut request: http::Request<Vec<u8>>) -> Result<DynamicObject, String> {
        *request.uri_mut() = format!("{}&fieldValidation=Strict", request.uri()).parse().expect("a URI");
        self.api.clone().into_client().request(request).await.map_err(message)
    }

    async fn replace_status(
        &self,
        existing: &DynamicObject,
        status: &Value,
    ) -> Result<DynamicObject, String> {
        let mut object = existing.clone();
        object.data["status"] = status.clone();
        self.api.replace_status(&existing.name_any(), &PostParams::default(), &object).await.map_err(message)
    }

    async fn delete_all(&self) {
        let list = self.api.list(&Default::default()).await.expect("objects can be listed");
        for object in list {
            self.api
                .delete(&object.name_any(), &DeleteParams::default())
                .await
                .expect("objects can be deleted");
        }
    }

    /// The largest object that the schema allows must not be too expensive for the server to check.
    async fn largest_object(&self) -> Result<(), String> {
        let mut object = cases::table(&self.plural).cases().swap_remove(0).object;
        if !largest::fill(&self.plural, &mut object["spec"]) {
            return Ok(());
        }
        let outcome = match self.create(&object).await {
            Ok(existing) => self.replace(&existing, &object).await,
            Err(error) => Err(error),
        };
        self.delete_all().await;
        outcome.map(drop).map_err(|error| format!("the largest of {}: {error}", self.plural))
    }

    /// Who may write the spec cannot thereby write the status, and the other way round.
    async fn status_is_separate(&self) -> Result<(), String> {
        let cases = cases::table(&self.plural).cases();
        let accepted = |wanted: fn(&Attempt) -> bool| {
            let case = cases.iter().find(|case| wanted(&case.attempt) && case.refusal.is_none());
            &case.unwrap_or_else(|| panic!("no such case for {}", self.plural)).object
        };
        let with_status = accepted(|attempt| matches!(attempt, Attempt::Status(_)));
        let with_other_spec = accepted(|attempt| matches!(attempt, Attempt::Change(_)));

        let created = self.create(with_status).await?;
        let mut both = created.clone();
        both.data["status"] = with_status["status"].clone();
        both.data["spec"] = with_other_spec["spec"].clone();
        let after = self.api.replace_status(&created.name_any(), &PostParams::default(), &both).await;
        let after = after.map_err(message)?;
        self.delete_all().await;
        if created.data["status"] == with_status["status"] {
            return Err(format!("{}: creating the object wrote its status", self.plural));
        }
        if after.data["status"].is_null() || after.data["spec"] != created.data["spec"] {
            return Err(format!("{}: writing the status gave {}", self.plural, after.data));
        }
        Ok(())
    }

    /// The Rust types read the object as the server does: no field is lost, and the defaults agree.
    fn same_in_rust(&self, written: &Value, stored: &DynamicObject) -> Result<(), String> {
        let stored = serde_json::to_value(stored).expect("an object");
        match self.plural.as_str() {
            "clusterconfigs" => same::<ClusterConfig>(written, &stored),
            "contracts" => same::<Contract>(written, &stored),
            "foreignclusters" => same::<ForeignCluster>(written, &stored),
            "namespacemaps" => same::<NamespaceMap>(written, &stored),
            "namespaceoffloadings" => same::<NamespaceOffloading>(written, &stored),
            "networkconfigs" => same::<NetworkConfig>(written, &stored),
            "resourceoffers" => same::<ResourceOffer>(written, &stored),
            "resourcerequests" => same::<ResourceRequest>(written, &stored),
            "searchdomains" => same::<SearchDomain>(written, &stored),
            "shadowpods" => same::<ShadowPod>(written, &stored),
            "sharingpolicies" => same::<SharingPolicy>(written, &stored),
            "tunnelendpoints" => same::<TunnelEndpoint>(written, &stored),
            other => panic!("no Rust type for {other}"),
        }
    }
}

fn same<K>(written: &Value, stored: &Value) -> Result<(), String>
where
    K: DeserializeOwned + HasSpec<Spec: PartialEq + Debug> + HasStatus<Status: PartialEq + Debug>,
{
    let read = |value: &Value| serde_json::from_value::<K>(value.clone()).map_err(|error| error.to_string());
    let (written, stored) = (read(written)?, read(stored)?);
    let parts = |object: &K| format!("{:?} {:?}", object.spec(), object.status());
    // A status that was never written is the server's business.
    let same_status = written.status() == stored.status() || written.status().is_none();
    if written.spec() == stored.spec() && same_status {
        return Ok(());
    }
    Err(format!("written as {}, read as {}", parts(&written), parts(&stored)))
}

/// What the server tells a person.
fn message(error: kube::Error) -> String {
    match error {
        kube::Error::Api(status) => status.message.clone(),
        other => panic!("the server cannot be asked: {other}"),
    }
}
