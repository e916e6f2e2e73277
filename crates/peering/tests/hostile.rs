//! What a peer may try with its certificate and its pen, on real API servers.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that cannot go on has failed"
)]

#[path = "support/install.rs"]
mod install;
#[path = "support/papers.rs"]
mod papers;
#[path = "support/world.rs"]
mod world;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::{Namespace, Secret};
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams};
use kube::{Api, ResourceExt};
use liqo_api::contract::{ContractPhase, SIGNED};
use liqo_api::foreign_cluster::PeeringEnabled;
use liqo_api::{Contract, ContractSpec, ResourceOffer, ResourceRequest};
use liqo_core::canonical::Digest;
use liqo_core::contract::{Clauses, Enforcement, Terms};
use liqo_core::names::ContractId;
use liqo_identity::{Identity, Wanted};
use liqo_kit::clusters::{ClientConfig, Credentials};
use liqo_kit::{ClientSource, Clusters};
use liqo_peering::offer::Read;
use liqo_peering::paper::{self, Draft};
use liqo_sandbox::{ClusterSpec, TestSandbox};
use serde_json::{Value, json};
use world::{House, Process, eventually};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_peer_gets_nothing_by_lying() {
    let sandbox = TestSandbox::start([ClusterSpec::hollow("b", 1), ClusterSpec::hollow("a", 1)]).await;
    let (a, b) = (House::new(&sandbox, "a").await, House::new(&sandbox, "b").await);
    let (at_a, at_b) = (a.start().await, b.start().await);
    let by_hand = |spec: &mut liqo_api::ForeignClusterSpec| {
        spec.outgoing_peering_enabled = PeeringEnabled::Yes;
        spec.borrowing.automatic = Some(false);
    };
    a.add_with(&b, &at_b, by_hand).await;
    a.wait_outgoing("b", "Pending ManualActionRequired").await;
    // What it tells at home and what it tells b are two writes.
    b.wait_incoming("a", "Pending ConsumerDecides").await;
    // From here on, somebody else has the certificate and the key of a.
    at_a.kill();
    let liar = Liar::new(&a, &b).await;

    liar.writes_what_is_not_its_own(&b).await;
    liar.asks_for_nonsense(&b).await;
    liar.proposes_what_was_not_offered(&b, &at_b).await;
    liar.is_served_like_anybody_once_it_is_honest(&b).await;
    liar.offers_nonsense(&b).await;
    liar.says_that_it_signed(&b).await;
}

/// Whoever has the certificate and the key of a consumer.
struct Liar<'a> {
    house: &'a House<'a>,
    client: kube::Client,
    namespace: String,
    stranger: Identity,
}

impl<'a> Liar<'a> {
    async fn new(house: &'a House<'a>, at: &House<'_>) -> Self {
        let secrets: Api<Secret> = Api::all(house.client.clone());
        let params = ListParams::default().labels("discovery.liqo.io/local-identity=true");
        let secret = secrets.list(&params).await.unwrap().items.remove(0);
        let value = |key: &str| secret.data.as_ref().unwrap()[key].0.clone();
        let credentials = Credentials::certificate(
            &String::from_utf8(value("apiServerUrl")).unwrap(),
            &value("apiServerCa"),
            &value("certificate"),
            &value("private-key"),
        )
        .unwrap();
        let (cluster, _) = Clusters::new(ClientConfig::default()).set("b", credentials).unwrap();
        let namespace = at.tenant(house).await.unwrap().name_any();
        let stranger = Identity::generate(&Wanted { id: None, name: Some("a".parse().unwrap()) }).unwrap();
        Self { house, client: cluster.client(), namespace, stranger }
    }

    fn api<K>(&self) -> Api<K>
    where
        K: kube::Resource<DynamicType = (), Scope = kube::core::NamespaceResourceScope>,
    {
        Api::namespaced(self.client.clone(), &self.namespace)
    }

    /// The offer of b, and what is drafted from it.
    async fn honest(&self, b: &House<'_>) -> Clauses {
        let offers: Vec<ResourceOffer> = b.all().await;
        let offer = offers.iter().find(|offer| offer.spec.cluster_id == b.id()).unwrap();
        let read = Read::of(&offer.spec).unwrap();
        let (me, them) = (paper::party(&self.house.identity).unwrap(), paper::party(&b.identity).unwrap());
        let taken = read.resources.clone();
        let draft = Draft { consumer: &me, provider: &them, offer: &read, taken: &taken };
        let terms = draft.proposal(paper::new_contract_id().unwrap(), Timestamp::now()).unwrap();
        (*terms).clone()
    }

    fn spec(&self, b: &House<'_>, terms: &Terms, signer: &Identity) -> ContractSpec {
        ContractSpec {
            provider_id: b.id().to_owned(),
            consumer_id: self.house.id().to_owned(),
            terms: String::from_utf8(terms.canonical().to_vec()).unwrap(),
            consumer_signature: paper::sign(signer, terms),
            ended: None,
        }
    }

    async fn propose(&self, id: &ContractId, spec: ContractSpec) -> Contract {
        self.api().create(&PostParams::default(), &Contract::new(id.as_str(), spec)).await.unwrap()
    }

    /// What an attempt to create something ends in.
    async fn create<K>(&self, namespace: &str, object: &Value) -> String
    where
        K: kube::Resource<DynamicType = (), Scope = kube::core::NamespaceResourceScope>
            + serde::Serialize
            + serde::de::DeserializeOwned
            + Clone
            + std::fmt::Debug,
    {
        let kind = kube::api::ApiResource::erase::<K>(&());
        let api: Api<kube::api::DynamicObject> = Api::namespaced_with(self.client.clone(), namespace, &kind);
        match api.create(&PostParams::default(), &serde_json::from_value(object.clone()).unwrap()).await {
            Ok(_) => "created".to_owned(),
            Err(kube::Error::Api(status)) => format!("{} {}", status.code, status.message),
            Err(error) => error.to_string(),
        }
    }

    async fn writes_what_is_not_its_own(&self, b: &House<'_>) {
        let offers: Vec<ResourceOffer> = b.all().await;
        let forged = offer(b.id(), "forged", &json!({ "cpu": "1000" }));
        // The server watches admission policies, too; what is only tried leaves nothing.
        eventually("the policies are in force", || async {
            let params = PostParams { dry_run: true, ..PostParams::default() };
            let kind = kube::api::ApiResource::erase::<ResourceOffer>(&());
            let api: Api<kube::api::DynamicObject> =
                Api::namespaced_with(self.client.clone(), &self.namespace, &kind);
            match api.create(&params, &serde_json::from_value(forged.clone()).unwrap()).await {
                Err(kube::Error::Api(status)) if [403, 422].contains(&status.code) => Ok(()),
                other => Err(format!("{other:?}")),
            }
        })
        .await;
        let refused = self.create::<ResourceOffer>(&self.namespace, &forged).await;
        assert!(refused.starts_with("403") || refused.starts_with("422"), "{refused}");
        let theirs = self.api::<ResourceOffer>();
        let more = json!({ "spec": { "resourceQuota": { "hard": { "cpu": "1000" } } } });
        let name = offers.iter().find(|it| it.spec.cluster_id == b.id()).unwrap().name_any();
        let changed = theirs.patch(&name, &PatchParams::default(), &Patch::Merge(&more)).await;
        assert!(changed.is_err(), "{changed:?}");
        let deleted = theirs.delete(&name, &DeleteParams::default()).await;
        assert!(deleted.is_err(), "{deleted:?}");
        // The namespace of another peer, and those of the cluster itself.
        let namespaces: Api<Namespace> = Api::all(b.client.clone());
        let another = json!({ "metadata": { "name": "liqo-tenant-other", "labels": {
            "discovery.liqo.io/tenant-namespace": "true", "discovery.liqo.io/cluster-id": "other" } } });
        namespaces.create(&PostParams::default(), &serde_json::from_value(another).unwrap()).await.unwrap();
        for namespace in ["liqo-tenant-other", "liqo", "default"] {
            let own = offer(self.house.id(), "elsewhere", &json!({ "cpu": "1" }));
            let refused = self.create::<ResourceOffer>(namespace, &own).await;
            assert!(refused.starts_with("403"), "{namespace}: {refused}");
            let contracts: Api<Contract> = Api::namespaced(self.client.clone(), namespace);
            assert!(contracts.list(&ListParams::default()).await.is_err(), "{namespace}");
        }
    }

    async fn asks_for_nonsense(&self, b: &House<'_>) {
        let requests = self.api::<ResourceRequest>();
        let name = requests.list(&ListParams::default()).await.unwrap().items.remove(0).name_any();
        for (resource, amount) in [
            ("cpu", "-5"),
            ("cpu", "1e300"),
            ("cpu", "٣"),
            ("cpu", ""),
            ("ｃｐｕ", "1"),
            ("../../etc", "1"),
            ("memory", "9223372036854775807Ei"),
        ] {
            let patch = json!({ "spec": { "resources": { resource: amount } } });
            let answer = requests.patch(&name, &PatchParams::default(), &Patch::Merge(&patch)).await;
            println!(
                "asking for {resource}={amount:?}: {}",
                answer.map_or_else(|error| error.to_string(), |_| "taken".to_owned())
            );
            let clean = json!({ "spec": { "resources": null } });
            requests.patch(&name, &PatchParams::default(), &Patch::Merge(&clean)).await.unwrap();
        }
        b.wait_incoming("a", "Pending ConsumerDecides").await;
    }

    async fn proposes_what_was_not_offered(&self, b: &House<'_>, at_b: &Process) {
        let now = Timestamp::from_second(Timestamp::now().as_second()).unwrap();
        let later = move |hours: i64| now.checked_add(SignedDuration::from_hours(hours)).unwrap();
        type Change = Box<dyn Fn(&mut Clauses)>;
        let key = paper::party(&self.stranger).unwrap().key;
        let changes: Vec<(&str, Change)> = vec![
            ("WrongContract", Box::new(|it| it.contract = "c-another".parse().unwrap())),
            ("WrongProvider", Box::new(|it| it.provider.name = "somebody".parse().unwrap())),
            ("WrongProvider", Box::new(move |it| it.provider.key = key)),
            ("WrongConsumer", Box::new(move |it| it.consumer.key = key)),
            ("WrongConsumer", Box::new(|it| it.consumer.name = "somebody".parse().unwrap())),
            ("WrongConsumer", Box::new(|it| it.consumer.id = "other".parse().unwrap())),
            ("MoreThanOffered", Box::new(|it| add(it, "cpu", "1000"))),
            ("MoreThanOffered", Box::new(|it| add(it, "example.com/gpu", "1"))),
            ("WrongTimes", Box::new(move |it| it.not_after = later(1000))),
            ("WrongTimes", Box::new(move |it| (it.not_before, it.not_after) = (later(-3), later(-1)))),
            ("WrongTimes", Box::new(move |it| (it.not_before, it.not_after) = (later(10), later(11)))),
            ("OtherThanOffered", Box::new(|it| it.enforcement = Enforcement::Soft)),
            ("OtherThanOffered", Box::new(|it| it.renewal = None)),
            (
                "DoesNotFollow",
                Box::new(|it| (it.sequence, it.predecessor) = (3, Some(Digest::of("test", b"x")))),
            ),
        ];
        for (expected, change) in changes {
            let mut clauses = self.honest(b).await;
            let id = clauses.contract.clone();
            change(&mut clauses);
            let terms = Terms::new(clauses).unwrap();
            // By a key that is named in the terms, so that only what is said in them is wrong.
            self.propose(&id, self.spec(b, &terms, &self.house.identity)).await;
            self.wait_refused(b, &id, expected).await;
        }
        for (expected, tamper) in [
            ("InvalidSignature", "\"pods\":\"1\""),
            ("InvalidSignature", "by a stranger"),
            ("InvalidTerms", "no terms"),
        ] {
            let clauses = self.honest(b).await;
            let id = clauses.contract.clone();
            let terms = Terms::new(clauses.clone()).unwrap();
            let signer = if tamper == "by a stranger" { &self.stranger } else { &self.house.identity };
            let mut spec = self.spec(b, &terms, signer);
            match tamper {
                "by a stranger" => {}
                "no terms" => spec.terms = "{\"version\":1}".to_owned(),
                _ => {
                    let mut other = clauses;
                    other.resources.insert("pods".parse().unwrap(), "1".parse().unwrap());
                    spec.terms = String::from_utf8(Terms::new(other).unwrap().canonical().to_vec()).unwrap();
                }
            }
            self.propose(&id, spec).await;
            self.wait_refused(b, &id, expected).await;
        }
        // A status is the provider's, and a contract is not deleted by a peer.
        let contracts = self.api::<Contract>();
        let one = contracts.list(&ListParams::default()).await.unwrap().items.remove(0);
        let active = json!({ "status": { "phase": "Active" } });
        let written =
            contracts.patch_status(&one.name_any(), &PatchParams::default(), &Patch::Merge(&active)).await;
        assert!(written.is_err(), "{written:?}");
        assert!(contracts.delete(&one.name_any(), &DeleteParams::default()).await.is_err());
        let sold = at_b.metric("liqo_peering_ledger_sold{resource=\"cpu\"}");
        assert_eq!(sold, None);
    }

    async fn wait_refused(&self, b: &House<'_>, id: &ContractId, expected: &str) {
        eventually(&format!("{id} is refused: {expected}"), || async {
            let contract = b.api::<Contract>(&self.namespace).get_opt(id.as_str()).await.unwrap();
            let status = contract.and_then(|it| it.status).ok_or("no answer")?;
            let answer = status.conditions.iter().find(|it| it.type_ == SIGNED);
            let answer =
                answer.map(|it| format!("{} {}: {}", it.status, it.reason, it.message)).unwrap_or_default();
            let fine =
                status.phase == ContractPhase::Refused && answer.starts_with(&format!("False {expected}"));
            if fine && status.agreed.is_none() { Ok(()) } else { Err(format!("{:?} {answer}", status.phase)) }
        })
        .await;
        // What is refused is withdrawn, or the provider looks at no more than a few.
        let ended = json!({ "spec": { "ended": { "time": now(), "reason": "Tried", "message": "" } } });
        let contracts = self.api::<Contract>();
        contracts.patch(id.as_str(), &PatchParams::default(), &Patch::Merge(&ended)).await.unwrap();
    }

    async fn is_served_like_anybody_once_it_is_honest(&self, b: &House<'_>) {
        let clauses = self.honest(b).await;
        let id = clauses.contract.clone();
        let terms = Terms::new(clauses).unwrap();
        self.propose(&id, self.spec(b, &terms, &self.house.identity)).await;
        eventually("an honest proposal is signed", || async {
            let contract = b.api::<Contract>(&self.namespace).get(id.as_str()).await.unwrap();
            let phase = contract.status.as_ref().map(|status| status.phase);
            if phase == Some(ContractPhase::Active) { Ok(()) } else { Err(format!("{:?}", contract.status)) }
        })
        .await;
        // Another one beside it is refused.
        let clauses = self.honest(b).await;
        let id = clauses.contract.clone();
        let terms = Terms::new(clauses).unwrap();
        self.propose(&id, self.spec(b, &terms, &self.house.identity)).await;
        self.wait_refused(b, &id, "AlreadyInForce").await;
    }

    async fn offers_nonsense(&self, b: &House<'_>) {
        b.change("a", json!({ "spec": { "outgoingPeeringEnabled": "Yes" } })).await;
        let amounts = [
            json!({ "cpu": "-5" }),
            json!({ "cpu": "1e300" }),
            json!({ "cpu": "٣" }),
            json!({ "ｃｐｕ": "1" }),
            json!({ "memory": "9223372036854775807Ei" }),
            json!({}),
        ];
        for hard in amounts {
            let object = offer(self.house.id(), "a", &hard);
            let answer = self.create::<ResourceOffer>(&self.namespace, &object).await;
            println!("offering {hard}: {answer}");
            if answer == "created" {
                b.wait_outgoing("a", "Denied InvalidOffer").await;
                // Who owns the place may clean up.
                b.api::<ResourceOffer>(&self.namespace).delete("a", &DeleteParams::default()).await.unwrap();
                b.wait_outgoing("a", "Pending WaitingForIdentity").await;
            }
        }
        let contracts = b.contracts(self.house, b).await;
        assert!(contracts.is_empty(), "{contracts:?}");
    }

    async fn says_that_it_signed(&self, b: &House<'_>) {
        let object = offer(self.house.id(), "a", &json!({ "cpu": "4", "memory": "8Gi", "pods": "10" }));
        assert_eq!(self.create::<ResourceOffer>(&self.namespace, &object).await, "created");
        let contract = eventually("a proposal of b", || async {
            let contracts = b.contracts(self.house, b).await;
            contracts.into_iter().next().ok_or_else(|| "none".to_owned())
        })
        .await;
        let terms = Terms::parse(contract.spec.terms.as_bytes()).unwrap();
        let mut dearer = (*terms).clone();
        dearer.resources.insert("cpu".parse().unwrap(), "1".parse().unwrap());
        let dearer = Terms::new(dearer).unwrap();
        for (terms, signer) in [(&terms, &self.stranger), (&dearer, &*self.house.identity)] {
            let agreed = json!({
                "terms": String::from_utf8(terms.canonical().to_vec()).unwrap(),
                "consumerSignature": contract.spec.consumer_signature,
                "providerSignature": paper::sign(signer, terms), "time": now(),
            });
            let patch = json!({ "status": { "phase": "Active", "agreed": agreed } });
            let contracts = self.api::<Contract>();
            contracts
                .patch_status(&contract.name_any(), &PatchParams::default(), &Patch::Merge(&patch))
                .await
                .unwrap();
            b.wait_outgoing("a", "Error InvalidSignature").await;
        }
    }
}

fn add(clauses: &mut Clauses, resource: &str, amount: &str) {
    clauses.resources.insert(resource.parse().unwrap(), amount.parse().unwrap());
}

fn now() -> String {
    Timestamp::from_second(Timestamp::now().as_second()).unwrap().to_string()
}

fn offer(cluster: &str, name: &str, hard: &Value) -> Value {
    json!({
        "apiVersion": "sharing.liqo.io/v1alpha1", "kind": "ResourceOffer", "metadata": { "name": name },
        "spec": { "clusterId": cluster, "resourceQuota": { "hard": hard } },
    })
}
