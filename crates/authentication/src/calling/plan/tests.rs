use liqo_api::annotations::PEER_PUBLIC_KEY;
use liqo_kit::{Index as _, Key};
use serde_json::{Value, json};

use super::*;
use crate::calling::Attempt;
use crate::index::RemoteToken;
use crate::testing::{Put, foreign_cluster, home, later, merge, milan, names, now, obtained, rome, tenant};
use crate::tokens::Token;
use crate::wire::PeerIdentity;

mod bundle;

/// A cluster with one ForeignCluster, and a peer that answers.
pub(crate) struct World {
    pub(crate) index: Index,
    pub(crate) at: Timestamp,
    autojoin: bool,
    /// How the peer answers a call.
    answer: Result<(), Failure>,
    /// How long its certificates are valid, in seconds.
    life: i64,
    issued: u32,
    reported: Vec<String>,
}

impl World {
    fn new(spec: Value) -> Self {
        let mut index = Index::default();
        index.put_cluster(foreign_cluster("b", json!({}), spec));
        Self { index, at: now(), autojoin: true, answer: Ok(()), life: 3600, issued: 0, reported: vec![] }
    }

    fn cluster(&self) -> &ForeignCluster {
        self.index.clusters.store().get(&Key::cluster("b")).unwrap()
    }

    fn planned(&self) -> Planned {
        plan(
            &View { index: &self.index, me: Some(home()), autojoin: self.autojoin, now: self.at },
            self.cluster(),
        )
    }

    fn words(&self) -> Vec<String> {
        self.planned().steps.iter().map(Step::word).collect()
    }

    fn told(&self) -> String {
        let status = self.cluster().status.clone().unwrap_or_default();
        let conditions = status.peering_conditions.iter();
        conditions.map(|it| format!("{:?} {}", it.status, it.reason)).collect::<Vec<_>>().join(", ")
    }

    fn change(&mut self, patch: &Value) {
        let mut object = serde_json::to_value(self.cluster()).unwrap();
        merge(&mut object, patch);
        self.index.put_cluster(serde_json::from_value(object).unwrap());
    }

    fn token(&mut self, text: &str) {
        let token = RemoteToken { name: "t".to_owned(), uid: String::new(), token: Token::new(text) };
        self.index.remote_tokens.insert(milan().id.to_string(), token);
    }

    /// What the API server, or the peer, makes of a step.
    fn make(&mut self, step: &Step) {
        match step {
            Step::PatchCluster { patch, .. } => self.change(patch),
            Step::WriteStatus { status, .. } => self.change(&json!({ "status": status })),
            Step::CreateTenant { peer, annotations } => {
                let annotations: Vec<_> =
                    annotations.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect();
                self.index.put_tenant(tenant(&peer.id, &annotations));
            }
            Step::MarkTenant { annotations, .. } => {
                let key = annotations.get(PEER_PUBLIC_KEY).unwrap();
                self.index.put_tenant(tenant(&milan().id, &[(PEER_PUBLIC_KEY, key)]));
            }
            Step::StoreIdentity { namespace, received, token_digest, .. } => {
                let held = Held {
                    key: Key::namespaced(namespace, "liqo-identity-milan"),
                    uid: String::new(),
                    resource_version: String::new(),
                    peer: milan().id.clone(),
                    certificate: Ok(received.obtained.certified.clone()),
                    remote_namespace: Some(received.obtained.namespace.clone()),
                    token_digest: token_digest.clone(),
                };
                self.index.apply(&held.key.clone(), held);
            }
            Step::Report(report) => self.reported.push(report.event_name()),
            Step::Call(call) => self.call(call),
            other => panic!("not expected: {}", other.word()),
        }
    }

    fn call(&mut self, call: &Call) {
        let basis = basis(&self.index, home(), self.cluster());
        let former = self.index.attempts.remove("b").filter(|attempt| attempt.basis == basis);
        let mut attempt = former.unwrap_or_else(|| Attempt::new(basis.clone()));
        let peer = PeerIdentity {
            identity: names(milan()),
            public_key: Some(milan().public_key()),
            fingerprint: None,
        };
        match (&self.answer, call) {
            (Err(failure), _) => after_failure(&mut attempt, failure.clone(), "seed", self.at),
            (Ok(()), Call::Identify { .. }) => {
                attempt = Attempt { identified: Some(peer), ..Attempt::new(basis) };
            }
            (Ok(()), Call::Obtain { rotation, .. }) => {
                self.issued += 1;
                let obtained = obtained(home(), self.at, self.life, &format!("digest-{}", self.issued));
                let rotation = rotation.clone();
                let received = Received { obtained, at: self.at, rotation, peer };
                attempt = Attempt { obtained: Some(received), ..Attempt::new(basis) };
            }
        }
        self.index.attempts.insert("b".to_owned(), attempt);
    }

    /// Does one step after the other until nothing is left; returns what was done.
    fn settle(&mut self) -> Vec<String> {
        let mut words = vec![];
        loop {
            let told =
                |step: &Step| matches!(step, Step::Report(it) if self.reported.contains(&it.event_name()));
            let Some(step) = self.planned().steps.into_iter().find(|step| !told(step)) else { return words };
            words.push(step.word());
            assert!(words.len() < 40, "{words:?}");
            self.make(&step);
        }
    }

    fn digest(&self) -> Option<String> {
        Some(self.index.identity_at(&milan().id)?.certificate.as_ref().ok()?.digest.clone())
    }
}

fn spec() -> Value {
    json!({ "foreignAuthUrl": "https://b", "authFingerprint": format!("sha256:{}", "0".repeat(64)) })
}

#[test]
fn a_peer_of_which_only_the_url_is_known_becomes_one_where_we_have_an_identity() {
    let mut world = World::new(spec());
    assert_eq!(
        world.settle(),
        [
            "add finalizer",
            "identify",
            "fill identity",
            "create tenant",
            "obtain",
            "mark tenant",
            "store identity",
            "report Authenticated",
            "status Established Authenticated"
        ]
    );
    assert_eq!(world.told(), "Established Authenticated");
    let status = world.cluster().status.clone().unwrap();
    assert_eq!(status.tenant_namespace.local.as_deref(), Some("liqo-tenant-milan-id"));
    assert_eq!(status.tenant_namespace.remote.as_deref(), Some("liqo-tenant-home"));
    assert_eq!(world.words(), Vec::<String>::new());
    // What the process remembered is gone: nothing is written, nobody is called.
    world.index.attempts.clear();
    world.at = later(100);
    assert_eq!(world.words(), Vec::<String>::new());
}

#[test]
fn a_call_that_takes_long_is_told() {
    let mut world = World::new(spec());
    let step = world.planned().steps.remove(0);
    world.make(&step);
    // Two seconds after its creation; it was created a day ago.
    assert_eq!(world.words(), ["identify", "report Authenticating", "status Pending Authenticating"]);
    world.change(&json!({ "metadata": { "creationTimestamp": now() } }));
    assert_eq!(world.words(), ["identify"]);
    assert_eq!(world.planned().wake, Some(later(2)));
}

/// Killed after any single write or call, with nothing remembered, the next process comes to the same end.
#[test]
fn wherever_it_is_cut_off_the_next_process_completes_it() {
    let steps = World::new(spec()).settle().len();
    for cut in 0..steps {
        let mut world = World::new(spec());
        for _ in 0..cut {
            let step = world.planned().steps.into_iter().find(|step| !matches!(step, Step::Report(_)));
            let Some(step) = step else { break };
            world.make(&step);
        }
        world.index.attempts.clear();
        world.settle();
        assert_eq!(world.told(), "Established Authenticated", "after {cut} steps");
        let key = &world.index.tenant_of(&milan().id).unwrap().key;
        assert_eq!(*key, KnownKey::Key(milan().public_key()), "after {cut} steps");
        assert_eq!(world.words(), Vec::<String>::new(), "after {cut} steps");
    }
}

#[test]
fn a_certificate_is_renewed_after_two_thirds_of_its_life_and_tried_first() {
    let mut world = World::new(spec());
    world.life = 900_000;
    world.settle();
    let wake = world.planned().wake.unwrap();
    assert!(wake >= later(594_000) && wake <= later(640_000), "{wake}");
    world.index.attempts.clear();
    world.at = later(593_000);
    assert_eq!(world.words(), Vec::<String>::new());
    world.at = wake;
    assert_eq!(world.words(), ["obtain and try"]);
    assert_eq!(world.settle()[..2], ["obtain and try", "store identity"]);
    assert_eq!(world.digest().as_deref(), Some("digest-2"));
    assert_eq!(world.told(), "Established Authenticated");
}

#[test]
fn renewals_of_many_peers_do_not_come_at_once() {
    let certified = obtained(home(), now(), 900_000, "x").certified;
    let times: std::collections::BTreeSet<_> =
        (0..100).map(|peer| renew_at(&certified, &format!("peer-{peer}"))).collect();
    assert!(times.len() > 50, "{}", times.len());
    assert!(times.last().unwrap().duration_since(*times.first().unwrap()) > SignedDuration::from_hours(8));
}

#[test]
fn when_a_renewal_fails_the_old_certificate_is_kept_and_that_is_told() {
    let mut world = World::new(spec());
    world.settle();
    world.index.attempts.clear();
    world.answer = Err(Failure::not_working("https://b:6443", "401"));
    world.at = later(2700);
    world.settle();
    assert_eq!(world.told(), "Established RenewalFailing");
    assert_eq!(world.digest().as_deref(), Some("digest-1"));
    // Until it works again.
    world.answer = Ok(());
    world.at = later(2710);
    world.settle();
    assert_eq!(world.told(), "Established Authenticated");
    assert_eq!(world.digest().as_deref(), Some("digest-2"));
}

#[test]
fn a_certificate_that_expired_while_nobody_looked_is_replaced_without_trying_the_old_one() {
    let mut world = World::new(spec());
    world.settle();
    world.index.attempts.clear();
    world.at = later(100_000);
    assert_eq!(world.words()[0], "obtain");
    world.settle();
    assert_eq!(world.told(), "Established Authenticated");
    assert_eq!(world.digest().as_deref(), Some("digest-2"));
}

#[test]
fn a_rotation_that_is_asked_for_is_done_once() {
    let mut world = World::new(spec());
    world.settle();
    world.change(&json!({ "metadata": { "annotations": { "authentication.liqo.io/rotate": "now" } } }));
    world.at = later(10);
    assert_eq!(
        world.settle(),
        [
            "obtain for rotation and try",
            "store identity",
            "remove rotation",
            "report Authenticated",
            "status Established Authenticated"
        ]
    );
    assert_eq!(world.digest().as_deref(), Some("digest-2"));
    // Again, with the same word.
    world.change(&json!({ "metadata": { "annotations": { "authentication.liqo.io/rotate": "again" } } }));
    world.settle();
    assert_eq!(world.digest().as_deref(), Some("digest-3"));
}

#[test]
fn a_clock_that_runs_wild_does_not_keep_the_peer_busy() {
    let mut world = World::new(spec());
    world.life = 60;
    world.settle();
    world.at = later(50);
    // Renewed at once, although the certificate is nearly over: not before a minute has passed.
    assert_eq!(world.words(), Vec::<String>::new());
    world.at = later(61);
    assert_eq!(world.words()[0], "obtain");
}

#[test]
fn refusals_are_told_and_tried_again_when_something_changes() {
    let refused = |with_token| {
        let error =
            crate::client::CallError::Refused { url: String::new(), status: 401, words: String::new() };
        Failure::of(&error, with_token)
    };
    let mut world = World::new(merged(&spec(), &json!({ "clusterIdentity": whole() })));
    world.answer = Err(refused(false));
    world.settle();
    assert_eq!(world.told(), "EmptyDenied TokenMissing");
    assert_eq!(world.words(), Vec::<String>::new());
    // Not again at once, but when there is a token.
    world.answer = Err(refused(true));
    world.token("wrong");
    assert_eq!(world.words()[0], "obtain");
    world.settle();
    assert_eq!(world.told(), "Denied TokenRefused");
    world.answer = Ok(());
    world.token("right");
    world.settle();
    assert_eq!(world.told(), "Established Authenticated");
}

fn whole() -> Value {
    json!({ "clusterID": "milan-id", "clusterName": "milan" })
}

fn merged(base: &Value, patch: &Value) -> Value {
    let mut base = base.clone();
    merge(&mut base, patch);
    base
}

#[test]
fn a_peer_that_is_not_there_is_asked_again_ever_more_seldom() {
    let mut world = World::new(spec());
    let error = crate::client::CallError::Unreachable { url: String::new(), reason: String::new() };
    world.answer = Err(Failure::of(&error, true));
    let mut calls = 0;
    while world.at < later(3600) {
        calls += world.settle().iter().filter(|word| *word == "identify").count();
        world.at = world.planned().wake.unwrap().max(world.at + SignedDuration::from_millis(1));
    }
    assert!((10..40).contains(&calls), "{calls}");
    assert_eq!(world.told(), "Pending PeerUnreachable");
}

#[test]
fn another_cluster_at_the_same_place_is_denied() {
    for (expected, reason) in [
        (json!({ "clusterID": "rome-id" }), "Denied IdentityMismatch"),
        (json!({ "clusterName": "rome" }), "Denied IdentityMismatch"),
    ] {
        let mut world = World::new(merged(&spec(), &json!({ "clusterIdentity": expected })));
        world.settle();
        assert_eq!(world.told(), reason);
    }
    let mut world = World::new(merged(
        &spec(),
        &json!({ "clusterIdentity": { "clusterID": "home-id", "clusterName": "home" } }),
    ));
    world.settle();
    assert_eq!(world.told(), "Denied OwnCluster");
    // Milan is known with another key.
    let mut world = World::new(spec());
    let key = key_to_base64(&rome().public_key());
    world.index.put_tenant(tenant(&milan().id, &[(PEER_PUBLIC_KEY, &key)]));
    world.settle();
    assert_eq!(world.told(), "Denied KeyMismatch");
}

#[test]
fn of_two_foreign_clusters_with_one_id_the_first_is_the_cluster() {
    let mut world = World::new(spec());
    let first = foreign_cluster(
        "first",
        json!({ "creationTimestamp": "2025-01-01T00:00:00Z" }),
        merged(&spec(), &json!({ "clusterIdentity": whole() })),
    );
    world.index.put_cluster(first);
    world.settle();
    assert_eq!(world.told(), "Denied DuplicateCluster");
}

#[test]
fn a_peer_that_calls_us_is_not_called() {
    let mut world = World::new(json!({ "clusterIdentity": whole() }));
    assert_eq!(world.settle(), ["add finalizer", "status None NotCalled"]);
}

#[test]
fn an_identity_without_verified_tls_says_so_and_that_the_first_key_was_believed() {
    let mut world = World::new(json!({ "foreignAuthUrl": "https://b", "insecureSkipTLSVerify": true }));
    world.settle();
    assert_eq!(world.told(), "Established AuthenticatedInsecurely");
    // Without a key, nothing that the peer signs would count.
    assert_eq!(world.index.tenant_of(&milan().id).unwrap().key, KnownKey::Key(milan().public_key()));
    let condition = &world.cluster().status.as_ref().unwrap().peering_conditions[0];
    let believed = format!("the key {} was believed at the first call", milan().public_key().fingerprint());
    assert!(condition.message.contains(&believed), "{}", condition.message);
}

#[test]
fn while_the_old_namespace_goes_one_waits() {
    let mut world = World::new(merged(&spec(), &json!({ "clusterIdentity": whole() })));
    let mut old = tenant(&milan().id, &[]);
    old.deleting = true;
    world.index.put_tenant(old);
    world.settle();
    assert_eq!(world.told(), "Pending TenantNamespaceTerminating");
    liqo_kit::Index::<Tenant>::delete(&mut world.index, &Key::cluster("liqo-tenant-milan-id"));
    world.settle();
    assert_eq!(world.told(), "Established Authenticated");
}

#[test]
fn a_namespace_that_cannot_be_made_is_told() {
    let mut world = World::new(merged(&spec(), &json!({ "clusterIdentity": whole() })));
    let step = world.planned().steps.remove(0);
    world.make(&step);
    let target = Target::of::<Namespace>(Key::cluster(names(milan()).tenant_namespace().as_str()));
    world.index.failures.insert(target, "it is somebody else's (409)".to_owned());
    let words = world.words();
    assert!(words.contains(&"status Error NoTenantNamespace".to_owned()), "{words:?}");
}

#[test]
fn without_an_identity_of_our_own_nobody_is_called() {
    let world = World::new(spec());
    let planned = plan(&View { index: &world.index, me: None, autojoin: true, now: now() }, world.cluster());
    assert!(planned.steps.is_empty());
}

/// A cluster that was found on the local network, or by DNS.
fn found(kind: &str, more: &Value) -> World {
    let mut world = World::new(merged(&merged(&spec(), &json!({ "clusterIdentity": whole() })), more));
    let labels = json!({ labels::DISCOVERY_TYPE: kind, labels::SEARCH_DOMAIN: "example" });
    world.change(&json!({ "metadata": { "labels": labels } }));
    world
}

#[test]
fn a_cluster_that_was_only_found_is_known_and_not_asked() {
    let mut lan = found("LAN", &json!({}));
    lan.autojoin = false;
    let mut wan = found("WAN", &json!({}));
    let mut unwanted = found("LAN", &json!({ "outgoingPeeringEnabled": "No" }));
    wan.index.apply(&Key::cluster("example"), crate::index::Joins(false));
    for world in [&mut lan, &mut wan, &mut unwanted] {
        assert_eq!(world.settle(), ["add finalizer", "add label", "status None NotAsked"]);
        let status = world.cluster().status.clone().unwrap();
        let message = &status.peering_conditions[0].message;
        assert!(message.contains("outgoingPeeringEnabled: Yes, or run liqoctl peer b"), "{message}");
    }
    // Until somebody wants something of it.
    lan.change(&json!({ "spec": { "outgoingPeeringEnabled": "Yes" } }));
    wan.index.apply(&Key::cluster("example"), crate::index::Joins(true));
    unwanted.change(&json!({ "spec": { "incomingPeeringEnabled": "Yes" } }));
    for world in [&mut lan, &mut wan, &mut unwanted] {
        world.settle();
        assert_eq!(world.told(), "Established Authenticated");
    }
    // What we have there stays for as long as it lasts, and is not asked for again after that.
    wan.index.apply(&Key::cluster("example"), crate::index::Joins(false));
    assert_eq!(wan.words(), Vec::<String>::new());
    wan.at = later(100_000);
    wan.settle();
    assert_eq!(wan.told(), "None NotAsked");
}

/// Who was put out and gets a new token is let in again, though its certificate is valid and does nothing.
#[test]
fn another_token_is_used_at_once_and_once() {
    let mut world = World::new(merged(&spec(), &json!({ "clusterIdentity": whole() })));
    world.token("first");
    world.settle();
    assert_eq!(world.digest().as_deref(), Some("digest-1"));
    world.index.attempts.clear();
    assert_eq!(world.words(), Vec::<String>::new(), "a restart asks for nothing");
    world.token("second");
    assert_eq!(world.words(), ["obtain and try"]);
    world.settle();
    assert_eq!(world.digest().as_deref(), Some("digest-2"));
    assert_eq!(world.told(), "Established Authenticated");
    world.index.attempts.clear();
    assert_eq!(world.words(), Vec::<String>::new());
    // A token that is gone changes nothing.
    world.index.remote_tokens.clear();
    assert_eq!(world.words(), Vec::<String>::new());
}
