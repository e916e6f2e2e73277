//! Several consumers at once: whatever they ask for and whenever, no more is signed than policy allows, and nothing of it
//! stays reserved for nobody; on real API servers.
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

use std::collections::BTreeMap;

use futures::StreamExt;
use futures::future::join_all;
use install::{NAMESPACE, put};
use kube::api::{WatchEvent, WatchParams};
use kube::{Api, ResourceExt};
use liqo_api::foreign_cluster::PeeringEnabled;
use liqo_api::{Contract, ForeignClusterSpec};
use liqo_core::Quantity;
use liqo_core::contract::Terms;
use liqo_sandbox::{ClusterSpec, TestSandbox};
use papers::{amount, check_log, has_cpu, in_force};
use serde_json::json;
use tokio::sync::watch;
use tokio::task::JoinSet;
use world::{House, Process, eventually};

const CONSUMERS: [&str; 3] = ["first", "second", "third"];
/// Half of the provider's node with 32 cores: each gets what it first asks for, and not all what they ask for then.
const SHARED: &str = "16";
const MODEST: &str = "4";
const GREEDY: &str = "8";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_consumers_at_once_are_never_sold_more_than_policy_allows() {
    let clusters = CONSUMERS.map(ClusterSpec::api_only);
    let sandbox = TestSandbox::start([ClusterSpec::hollow("provider", 1)].into_iter().chain(clusters)).await;
    join_all(CONSUMERS.map(|name| publish_authority(&sandbox, name))).await;
    let provider = House::new(&sandbox, "provider").await;
    let consumers = join_all(CONSUMERS.map(|name| House::new(&sandbox, name))).await;
    provider.put_policy("half", json!({ "share": { "percentage": 50 } })).await;
    let mut at_provider = provider.start().await;
    let processes = join_all(consumers.iter().map(House::start)).await;
    let auditor = Auditor::start(&provider);

    each_gets_what_it_asks_for(&provider, &consumers, &at_provider).await;
    at_provider = all_want_more_than_there_is(&provider, &consumers, at_provider).await;
    what_one_gives_back_is_there_for_the_others(&provider, &consumers).await;

    auditor.finish();
    for house in consumers.iter().chain([&provider]) {
        check_log(house).await;
    }
    drop((at_provider, processes));
}

/// Without controllers nobody does; as nobody calls these clusters, it is never handed out.
async fn publish_authority(sandbox: &TestSandbox, name: &str) {
    let client = sandbox.cluster(name).client().await;
    let namespace = json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": NAMESPACE } });
    let authority = json!({
        "apiVersion": "v1", "kind": "ConfigMap", "data": { "ca.crt": "" },
        "metadata": { "name": "kube-root-ca.crt", "namespace": NAMESPACE },
    });
    put(&client, &namespace).await;
    put(&client, &authority).await;
}

fn wanted(cpu: &str) -> serde_json::Value {
    json!({ "wanted": { "cpu": cpu, "memory": "1Gi", "pods": "10" } })
}

async fn each_gets_what_it_asks_for(provider: &House<'_>, consumers: &[House<'_>], at_provider: &Process) {
    let adding = consumers.iter().map(|consumer| async move {
        let want = |spec: &mut ForeignClusterSpec| {
            spec.outgoing_peering_enabled = PeeringEnabled::Yes;
            spec.borrowing = serde_json::from_value(wanted(MODEST)).unwrap();
        };
        consumer.add_with(provider, at_provider, want).await;
        in_force(consumer, provider, "what it asked for", has_cpu(MODEST)).await;
    });
    join_all(adding).await;
}

/// They ask at once, and the provider begins anew in the middle of it.
async fn all_want_more_than_there_is(
    provider: &House<'_>,
    consumers: &[House<'_>],
    at_provider: Process,
) -> Process {
    let greedy = json!({ "spec": { "borrowing": wanted(GREEDY) } });
    join_all(consumers.iter().map(|consumer| consumer.change("provider", greedy.clone()))).await;
    at_provider.kill();
    let at_provider = provider.start().await;
    eventually("all is sold, and each has at least what it had", || async {
        let mut sold = Vec::new();
        for consumer in consumers {
            let contracts = consumer.contracts(provider, consumer).await;
            let live =
                contracts.iter().find(|it| it.status.as_ref().is_some_and(|it| it.phase.is_in_force()));
            sold.push(cpu(&live.map(|it| amount(it, "cpu")).unwrap_or_default()));
        }
        let enough = sold.iter().all(|amount| (cpu(MODEST)..=cpu(GREEDY)).contains(amount));
        if enough && sum(&sold) == cpu(SHARED) { Ok(()) } else { Err(format!("{sold:?}")) }
    })
    .await;
    at_provider
}

async fn what_one_gives_back_is_there_for_the_others(provider: &House<'_>, consumers: &[House<'_>]) {
    let [others @ .., last] = consumers else { panic!("there are none") };
    last.change("provider", json!({ "spec": { "outgoingPeeringEnabled": "No" } })).await;
    join_all(others.iter().map(|other| in_force(other, provider, "all it wants", has_cpu(GREEDY)))).await;
}

fn cpu(text: &str) -> Quantity {
    text.parse().unwrap_or_default()
}

fn sum(amounts: &[Quantity]) -> Quantity {
    amounts.iter().fold(Quantity::default(), |sum, amount| sum.saturating_add(*amount))
}

/// Sees every single write to the provider's contracts, and adds up after each.
struct Auditor {
    most: watch::Receiver<Quantity>,
    tasks: JoinSet<()>,
}

impl Auditor {
    fn start(provider: &House<'_>) -> Self {
        let api: Api<Contract> = Api::all(provider.client.clone());
        let (told, most) = watch::channel(Quantity::default());
        let mut tasks = JoinSet::new();
        tasks.spawn(async move {
            let mut signed = BTreeMap::new();
            let mut writes = api.watch(&WatchParams::default(), "0").await.unwrap().boxed();
            while let Some(write) = writes.next().await {
                match write.unwrap() {
                    WatchEvent::Added(contract) | WatchEvent::Modified(contract) => {
                        signed.insert(contract.name_any(), lent(&contract));
                    }
                    WatchEvent::Deleted(contract) => drop(signed.remove(&contract.name_any())),
                    WatchEvent::Bookmark(_) => continue,
                    WatchEvent::Error(error) => panic!("{error:?}"),
                }
                let amounts: Vec<Quantity> = signed.values().copied().collect();
                let now = sum(&amounts);
                told.send_if_modified(|most| std::mem::replace(most, now.max(*most)) < now);
                assert!(now <= cpu(SHARED), "{now} is sold of {SHARED}: {signed:?}");
            }
        });
        Self { most, tasks }
    }

    /// It has seen all that was sold, and nothing that should not be.
    fn finish(mut self) {
        let ended = self.tasks.try_join_next();
        assert!(ended.is_none(), "the watch ended, or more was sold than policy allows: {ended:?}");
        assert_eq!(*self.most.borrow(), cpu(SHARED));
    }
}

/// What a contract that both signed and that is not over is about.
fn lent(contract: &Contract) -> Quantity {
    let status = contract.status.as_ref().filter(|status| !status.phase.is_over());
    let terms = status.and_then(|status| status.agreed.as_ref()).map(|agreed| agreed.terms.as_bytes());
    terms.map(|terms| Terms::parse(terms).unwrap().resources.amount("cpu")).unwrap_or_default()
}
