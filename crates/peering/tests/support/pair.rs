//! A consumer and a provider, what people do to them, and whether the end is the same as ever.

#![allow(dead_code, reason = "each test uses a part of it")]

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::ConfigMap;
use kube::Api;
use kube::api::{DeleteParams, ListParams};
use liqo_api::ForeignClusterSpec;
use liqo_api::foreign_cluster::PeeringEnabled;
use liqo_api::names::Identity as Names;
use liqo_core::Span;
use liqo_core::threshold::Pace;
use liqo_identity::{Identity, Wanted};
use liqo_peering::log::PAGE_LABEL;
use liqo_sandbox::TestSandbox;
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::fuse::Fuse;
use crate::install::NAMESPACE;
use crate::state::{entries, ledger, signed, state};
use crate::world::{House, Process, eventually};

/// An undisturbed run is over when nothing changed for so long.
const QUIET: Duration = Duration::from_secs(2);
/// An undisturbed run is over after so long.
const UNDISTURBED: Duration = Duration::from_secs(120);
/// As often as anybody can.
const OFTEN: Pace = Pace { burst: 1000, every: Span::clamped(1) };
/// 90 % of one node with 32 cores, in thousandths.
const THERE_IS: i64 = 28_800;

/// What people do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Act {
    /// The consumer gets to know the provider, and borrows.
    Add,
    /// The consumer borrows no more.
    Unpeer,
    /// It borrows again.
    Again,
    /// The provider does not lend any more.
    Refuse,
    /// It lends again.
    Lend,
    /// The consumer forgets the provider.
    Remove,
    /// The provider puts the consumer out.
    PutOut,
    /// The consumer forgets the provider, which has put it out or has left.
    Forget,
    /// The provider gets to know the consumer, and offers something by itself.
    Push,
    /// The consumer takes what it did not ask for.
    Take,
    /// The provider offers nothing by itself any more.
    Withdraw,
    /// It offers something by itself again, which the consumer has said that it takes.
    PushAgain,
    /// The provider forgets the consumer, which it called.
    Leave,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Who {
    Consumer,
    Provider,
}

/// A consumer, a provider, and what runs there.
pub(crate) struct Pair<'a> {
    pub(crate) a: House<'a>,
    pub(crate) b: House<'a>,
    pub(crate) at_a: Process,
    pub(crate) at_b: Process,
    /// The lengths of the logs when the round began.
    pub(crate) logged: (usize, usize),
    /// Where the one who calls finds the other's service, if not where it is.
    pub(crate) url: Option<String>,
}

impl<'a> Pair<'a> {
    /// Both of them, without anything to do with each other.
    pub(crate) async fn start(sandbox: &'a TestSandbox) -> Self {
        let (a, b) = (House::new(sandbox, "a").await, House::new(sandbox, "b").await);
        Self::of(a, b).await
    }

    pub(crate) async fn of(mut a: House<'a>, mut b: House<'a>) -> Self {
        for house in [&mut a, &mut b] {
            // They come together and part more often than anybody does.
            (house.settings.offers, house.settings.proposals) = (OFTEN, OFTEN);
        }
        let (at_a, at_b) = (a.start().await, b.start().await);
        Self { a, b, at_a, at_b, logged: (0, 0), url: None }
    }

    /// How each of these acts ends when nothing goes wrong.
    pub(crate) async fn undisturbed(&mut self, acts: &[Act]) -> Vec<Value> {
        self.begin().await;
        let mut ends = Vec::new();
        for act in acts {
            let before = self.look().await;
            self.perform(*act).await;
            let mut end = self.settled(*act, &before).await;
            if let (Act::PutOut, Some(end)) = (act, end.as_object_mut()) {
                // It learns that it may not look there any more when it asks the next time, which may be soon or not.
                end.remove("consumer");
            }
            ends.push(end);
        }
        ends
    }

    /// What is logged from now on counts.
    pub(crate) async fn begin(&mut self) {
        self.logged = (entries(&self.a).await.len(), entries(&self.b).await.len());
    }

    pub(crate) async fn perform(&self, act: Act) {
        let (a, b) = (&self.a, &self.b);
        let borrow = async |word: &str| {
            a.change("b", json!({ "spec": { "outgoingPeeringEnabled": word } })).await;
        };
        let lend = async |word: &str| {
            b.change("a", json!({ "spec": { "incomingPeeringEnabled": word } })).await;
        };
        let delete = async |house: &House<'_>, name: &str| {
            drop(house.clusters().delete(name, &DeleteParams::default()).await.unwrap());
        };
        let calls = |spec: &mut ForeignClusterSpec| {
            self.url.iter().for_each(|url| spec.foreign_auth_url = url.clone());
        };
        match act {
            Act::Add => {
                let borrows = |spec: &mut ForeignClusterSpec| {
                    spec.outgoing_peering_enabled = PeeringEnabled::Yes;
                    calls(spec);
                };
                a.add_with(b, &self.at_b, borrows).await;
            }
            Act::Push => {
                let lends = |spec: &mut ForeignClusterSpec| {
                    spec.outgoing_peering_enabled = PeeringEnabled::No;
                    spec.incoming_peering_enabled = PeeringEnabled::Yes;
                    calls(spec);
                };
                b.add_with(a, &self.at_a, lends).await;
            }
            Act::Unpeer => borrow("No").await,
            Act::Again | Act::Take => borrow("Yes").await,
            Act::Refuse | Act::Withdraw => lend("No").await,
            Act::Lend => lend("Auto").await,
            Act::PushAgain => lend("Yes").await,
            Act::Remove | Act::Forget => delete(a, "b").await,
            Act::PutOut | Act::Leave => delete(b, "a").await,
        }
    }

    pub(crate) fn house(&self, who: Who) -> &House<'a> {
        match who {
            Who::Consumer => &self.a,
            Who::Provider => &self.b,
        }
    }

    /// Kills a side and starts it again, with this fuse.
    pub(crate) async fn restart(&mut self, who: Who, fuse: &Fuse) {
        self.process(who).end();
        *self.process(who) = fuse.start(self.house(who)).await;
    }

    /// The same, with a fuse for what it writes at the other side.
    pub(crate) async fn restart_at_peers(&mut self, who: Who, fuse: &Fuse) {
        self.process(who).end();
        *self.process(who) = fuse.start_at_peers(self.house(who)).await;
    }

    fn process(&mut self, who: Who) -> &mut Process {
        match who {
            Who::Consumer => &mut self.at_a,
            Who::Provider => &mut self.at_b,
        }
    }

    /// Makes new clusters of both: nothing that is left of the old ones is in their way.
    pub(crate) async fn renew(&mut self, who: Who, fuse: &Fuse) {
        self.at_a.end();
        self.at_b.end();
        for house in [&mut self.a, &mut self.b] {
            let wanted = Wanted { id: None, name: Some(house.name.parse().unwrap()) };
            house.identity = Arc::new(Identity::generate(&wanted).unwrap());
            let pages: Api<ConfigMap> = house.api(NAMESPACE);
            let all = ListParams::default().labels(PAGE_LABEL);
            pages.delete_collection(&DeleteParams::default(), &all).await.unwrap();
        }
        self.logged = (0, 0);
        (self.at_a, self.at_b) = match who {
            Who::Consumer => tokio::join!(fuse.start(&self.a), self.b.start()),
            Who::Provider => tokio::join!(self.a.start(), fuse.start(&self.b)),
        };
    }

    /// What there is on both sides. Nothing is ever sold twice.
    pub(crate) async fn look(&self) -> Value {
        let sold = signed(&self.b, &self.a).await;
        assert!(sold <= THERE_IS, "{sold} is sold");
        let (a, b) =
            tokio::join!(Box::pin(state(&self.a, self.logged.0)), Box::pin(state(&self.b, self.logged.1)));
        let found = json!({ "consumer": a, "provider": b, "ledger": ledger(&self.at_b) });
        let words = [&self.a, &self.b].map(|house| {
            let names = Names { id: house.identity.id.clone(), name: house.identity.name.clone() };
            [(names.tenant_namespace().to_string(), "tenant"), (house.id().to_owned(), "id")]
                .map(|(text, word)| (text, format!("{word} of {}", house.name)))
        });
        let text = words.iter().flatten().fold(found.to_string(), |text, (it, word)| text.replace(it, word));
        serde_json::from_str(&text).unwrap()
    }

    /// Waits until nothing changes any more, and what was wanted has come about: somebody may also wait for Kubernetes for a
    /// while, to sign a certificate.
    async fn settled(&self, act: Act, before: &Value) -> Value {
        let (mut last, mut since) = (self.look().await, Instant::now());
        let deadline = Instant::now() + UNDISTURBED;
        loop {
            assert!(Instant::now() < deadline, "it does not come to rest: {last:#}");
            let now = self.look().await;
            if now != last {
                (last, since) = (now, Instant::now());
            } else if since.elapsed() > QUIET && last != *before && is_over(act, &last) {
                return last;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    /// Waits for a state, as far as it is expected to be anything.
    pub(crate) async fn reached(&self, expected: &Value, what: &str) {
        eventually(what, || async {
            let mut found = self.look().await;
            if let (Some(found), Some(expected)) = (found.as_object_mut(), expected.as_object()) {
                found.retain(|part, _| expected.contains_key(part));
            }
            if found == *expected { Ok(()) } else { Err(difference(expected, &found)) }
        })
        .await;
    }
}

/// Whether an act has come about, by what both sides tell.
fn is_over(act: Act, state: &Value) -> bool {
    let told = |side: &str, what: &str| state[side]["foreign clusters"].to_string().contains(what);
    let known = |side: &str| state[side]["foreign clusters"].as_array().is_some_and(|it| !it.is_empty());
    match act {
        Act::Add | Act::Again | Act::Lend | Act::Take | Act::PushAgain => {
            told("consumer", "OutgoingPeering Established ContractInForce")
                && told("provider", "IncomingPeering Established ContractInForce")
        }
        Act::Unpeer => told("consumer", "OutgoingPeering None NotWanted"),
        Act::Refuse => told("provider", "IncomingPeering Denied IncomingDisabled"),
        Act::Push => {
            told("consumer", "OutgoingPeering Pending ManualActionRequired")
                && told("provider", "IncomingPeering Pending ConsumerDecides")
        }
        Act::Withdraw => told("provider", "IncomingPeering None NotAsked"),
        Act::Remove | Act::Forget => !known("consumer"),
        Act::PutOut | Act::Leave => !known("provider"),
    }
}

/// In what two states differ.
pub(crate) fn difference(expected: &Value, found: &Value) -> String {
    let mut text = String::new();
    for (side, of_side) in expected.as_object().unwrap() {
        for (part, expected) in of_side.as_object().unwrap() {
            let found = &found[side][part];
            if expected != found {
                text.push_str(&format!("\n{side}, {part}: {found}\n  instead of {expected}"));
            }
        }
    }
    text
}
