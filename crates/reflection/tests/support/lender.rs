//! The provider's side as it is: its room makes namespaces and pods by a contract.

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::Api;
use kube::api::{Patch, PatchParams};
use liqo_api::contract::{Agreed, ContractPhase, ContractSpec, ContractStatus};
use liqo_api::names::Identity;
use liqo_api::{Contract, NamespaceMap};
use liqo_authentication::PEER_RULES;
use liqo_core::Resources;
use liqo_core::canonical::Digest;
use liqo_core::contract::{Clauses, Enforcement, Party, PublicKey, ServiceLevel, Terms};
use liqo_hosting::{Room, Settings};
use liqo_kit::Supervisor;
use liqo_kit::lease::{Campaign, LeaseConfig};
use liqo_kit::watch::WatchMetrics;
use liqo_kit::write::WriteMetrics;
use serde_json::{Value, json};
use tokio::sync::watch;

use crate::install::put;
use crate::world::{NAMESPACE, World, eventually};

/// The consumer's tenant namespace.
const PLACE: &str = "place";

/// The provider's room; dropping it kills it.
pub(crate) struct Lender(Option<tokio::runtime::Runtime>);

impl Lender {
    /// Starts it, and lends to the consumer of this world.
    pub(crate) async fn start(world: &World<'_>) -> Self {
        let labels =
            json!({ "discovery.liqo.io/tenant-namespace": "true", "discovery.liqo.io/cluster-id": world.id });
        let metadata = json!({ "name": PLACE, "labels": labels });
        put(&world.there, &json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": metadata })).await;
        give_rights(world).await;
        sign(world).await;
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        runtime.spawn(run(world.there.clone(), world.provider.clone()));
        Self(Some(runtime))
    }
}

impl Drop for Lender {
    fn drop(&mut self) {
        if let Some(runtime) = self.0.take() {
            runtime.shutdown_background();
        }
    }
}

/// Asks for a namespace, and waits until it is there.
pub(crate) async fn ask(world: &World<'_>, local: &str, remote: &str) {
    let map = json!({
        "apiVersion": "virtualkubelet.liqo.io/v1alpha1", "kind": "NamespaceMap",
        "metadata": { "name": "map", "namespace": PLACE,
                      "labels": { "liqo.io/replicated": "true", "liqo.io/originID": world.id } },
        "spec": { "desiredMapping": { local: remote } },
    });
    put(&world.there, &map).await;
    let maps: Api<NamespaceMap> = world.at_provider(PLACE);
    eventually("the namespace at the provider", || async {
        let map = maps.get("map").await.map_err(|error| error.to_string())?;
        let told = map.status.and_then(|status| status.current_mapping.get(local).cloned());
        match told {
            Some(told) if told.phase == liqo_api::namespace_map::MappingPhase::Accepted => Ok(()),
            other => Err(format!("{other:?}")),
        }
    })
    .await;
}

/// What a peer may do in its place.
async fn give_rights(world: &World<'_>) {
    let rule = |rule: &liqo_kit::rbac::Rule| {
        json!({ "apiGroups": rule.groups, "resources": rule.resources, "resourceNames": rule.names,
                "verbs": rule.verbs })
    };
    let rules: Vec<Value> = PEER_RULES.iter().map(rule).collect();
    let (api, group) = ("rbac.authorization.k8s.io/v1", "rbac.authorization.k8s.io");
    let metadata = json!({ "name": "liqo-peer", "namespace": PLACE });
    put(&world.there, &json!({ "apiVersion": api, "kind": "Role", "metadata": metadata, "rules": rules }))
        .await;
    let role = json!({ "apiGroup": group, "kind": "Role", "name": "liqo-peer" });
    let user = json!([{ "apiGroup": group, "kind": "User", "name": world.id }]);
    let binding = json!({ "apiVersion": api, "kind": "RoleBinding", "metadata": metadata, "roleRef": role,
        "subjects": user });
    put(&world.there, &binding).await;
}

/// A contract in force.
async fn sign(world: &World<'_>) {
    let text = String::from_utf8(terms(world).canonical().to_vec()).unwrap();
    let spec = ContractSpec {
        provider_id: world.provider.clone(),
        consumer_id: world.id.clone(),
        terms: text.clone(),
        consumer_signature: signature(),
        ended: None,
    };
    let contracts: Api<Contract> = world.at_provider(PLACE);
    let params = PatchParams::apply("test").force();
    let contract = Contract::new("c-one", spec);
    // A definition may be established and not served yet.
    eventually("the contract", || async {
        let put = contracts.patch("c-one", &params, &Patch::Apply(&contract)).await;
        put.map(drop).map_err(|error| error.to_string())
    })
    .await;
    let agreed = Agreed {
        terms: text,
        consumer_signature: signature(),
        provider_signature: signature(),
        time: Time(this_second()),
    };
    let status =
        ContractStatus { phase: ContractPhase::Active, agreed: Some(agreed), ..ContractStatus::default() };
    let patch = Patch::Merge(json!({ "status": status }));
    contracts.patch_status("c-one", &PatchParams::default(), &patch).await.unwrap();
}

fn terms(world: &World<'_>) -> Terms {
    let party = |id: &str| Party {
        id: id.parse().unwrap(),
        name: id.parse().unwrap(),
        // Another one for each; nobody here signs anything.
        key: format!(
            "ed25519:{}",
            id.bytes().next().map_or(String::new(), |it| format!("{it:02x}").repeat(32))
        )
        .parse::<PublicKey>()
        .unwrap(),
    };
    let begin = this_second();
    Terms::new(Clauses {
        contract: "c-one".parse().unwrap(),
        sequence: 0,
        predecessor: None,
        provider: party(&world.provider),
        consumer: party(&world.id),
        resources: Resources::parse([("cpu", "4"), ("memory", "4Gi"), ("pods", "20")]).resources,
        pools: [].into(),
        prices: None,
        not_before: begin,
        not_after: begin.checked_add(SignedDuration::from_hours(24)).unwrap(),
        renewal: None,
        enforcement: Enforcement::Hard,
        service_level: ServiceLevel::default(),
        offer: Digest::of("test", b"offer"),
    })
    .unwrap()
}

fn signature() -> String {
    format!("ed25519:{}", "0".repeat(128))
}

fn this_second() -> Timestamp {
    Timestamp::from_second(Timestamp::now().as_second()).unwrap()
}

async fn run(client: kube::Client, id: String) {
    let me = Identity { id: id.parse().unwrap(), name: id.parse().unwrap() };
    let (_keep, identity) = watch::channel(Some(me));
    let settings = Settings::new(NAMESPACE.parse().unwrap(), "manager-0");
    let room = Room::new(client.clone(), settings, identity);
    let supervisor = Supervisor::new();
    room.start(&supervisor, &WatchMetrics::default());
    let (queue, worker) = room.queue(&WriteMetrics::default());
    let stop = supervisor.stop().clone();
    let leading = async {
        // Leadership ends when the API server takes too long to answer; a manager would be started again.
        while !stop.is_cancelled() {
            let config = LeaseConfig::new(NAMESPACE, "liqo-test", "manager-0");
            let campaign = Campaign::new(client.clone(), config);
            campaign.run(stop.clone(), |leadership| room.lead(&queue, leadership)).await;
        }
    };
    tokio::join!(leading, worker.run(stop.clone()));
}
