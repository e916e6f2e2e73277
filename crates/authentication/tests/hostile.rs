//! The authentication service as a hostile peer would use it, on a real API server.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that cannot go on has failed"
)]

#[path = "support/log.rs"]
mod log;
#[path = "support/wire.rs"]
mod wire;
#[path = "support/world.rs"]
mod world;

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

use jiff::SignedDuration;
use k8s_openapi::api::certificates::v1::CertificateSigningRequest;
use k8s_openapi::api::core::v1::Namespace;
use k8s_openapi::api::events::v1::Event;
use k8s_openapi::api::rbac::v1::ClusterRoleBinding;
use kube::api::{ListParams, PostParams};
use kube::{Api, ResourceExt};
use liqo_api::foreign_cluster::PeeringConditionType;
use liqo_authentication::Limits;
use liqo_authentication::tokens::{self, NewToken, Token};
use liqo_identity::{Identity, Wanted};
use liqo_kit::metrics::ProcessUsage;
use liqo_sandbox::{ClusterSpec, TestSandbox};
use log::Log;
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt;
use tokio::task::JoinSet;
use tokio::time::Instant;
use wire::{
    csr, exchange, get, old_request, post_from, post_text, proof, public_key, request, rest, tcp, tls,
};
use world::{House, NAMESPACE, Process, wait_root_ca};

/// Where the different clusters call from.
const HONEST: IpAddr = IpAddr::V4(Ipv4Addr::new(127, 0, 0, 1));
const GUESSER: IpAddr = IpAddr::V4(Ipv4Addr::new(127, 0, 0, 2));
const FLOODER: IpAddr = IpAddr::V4(Ipv4Addr::new(127, 0, 0, 3));
const SLOW: IpAddr = IpAddr::V4(Ipv4Addr::new(127, 0, 0, 4));

/// The names of clusters that must get nothing.
const NOBODIES: [&str; 4] = ["mallory", "alice", "victim", "oscar"];

fn cluster(id: &str) -> Identity {
    Identity::generate(&Wanted { id: Some(id.parse().unwrap()), name: Some("a".parse().unwrap()) }).unwrap()
}

struct World<'a> {
    b: House<'a>,
    _process: Process,
    token: Token,
    to: SocketAddr,
}

impl World<'_> {
    async fn post(&self, body: &Value) -> (u16, String) {
        let answer = post_from(HONEST, self.to, &body.to_string()).await;
        (answer.status, answer.body)
    }

    /// A request that is as it should be.
    fn good(&self, caller: &Identity, token: &str) -> Value {
        let (csr, _) = csr("liqo.io", caller.id.as_str(), &[]);
        request(caller, self.b.id(), token, &csr)
    }

    async fn peer_token(&self, wanted: &NewToken) -> (tokens::Record, Token) {
        let made = tokens::create(&self.b.client, NAMESPACE, wanted).await.unwrap();
        // Known once it lets somebody in who may not use it: never. So wait until the watch has passed it.
        self.seen().await;
        made
    }

    /// Waits until the room has seen everything that was written before.
    async fn seen(&self) {
        let (record, token) = tokens::create(&self.b.client, NAMESPACE, &NewToken::default()).await.unwrap();
        let probe = cluster(&format!("probe-{}", record.id));
        // Refused for its signing request, not for its token: so the token is known, and whatever came before it.
        let (csr, _) = csr("liqo.io", "somebody-else", &[]);
        let body = old_request(probe.id.as_str(), "probe", token.reveal(), &csr);
        world::eventually("the room sees what was written", || async {
            let (status, text) = self.post(&body).await;
            if status == 403 { Ok(()) } else { Err(format!("{status} {text}")) }
        })
        .await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whoever_is_not_a_peer_gets_nothing_and_disturbs_nobody() {
    let log = Log::start();
    let sandbox = TestSandbox::start([ClusterSpec::hollow("b", 1)]).await;
    let mut b = House::new(&sandbox, "b").await;
    wait_root_ca(&b.client).await;
    // Most of this comes from one address, and is about other things than how often it may fail.
    b.limits(Limits {
        failures_per_source: (1000, Duration::from_millis(10)),
        patience: Duration::from_secs(2),
        ..Limits::default()
    });
    let process = b.start().await;
    b.fingerprint(&process).await;
    let (token, to) = (b.own_token().await, b.address);
    let world = World { b, _process: process, token, to };
    let victim = cluster("known");

    it_speaks_as_liqo_does(&world, &victim).await;
    bodies_that_make_no_sense(&world).await;
    wrong_tokens_tell_nothing(&world, &victim).await;
    signing_requests_for_more_than_the_own_name(&world).await;
    proofs_that_are_none(&world).await;
    names_that_are_taken(&world).await;
    tokens_of_others(&world).await;
    replays(&world, &victim).await;
    many_at_once(&world).await;
    one_that_cannot_get_enough(&world).await;
    a_second_claim_of_an_id(&world, &victim).await;
    equal_names(&world).await;
    slow_senders(&world).await;
    ten_thousand_connections(&world, &victim).await;
    nothing_was_left_behind(&world).await;
    let text = log.text();
    assert!(!text.contains(world.token.reveal()), "the token is in the log");

    let World { mut b, _process, token, to } = world;
    _process.kill();
    // As many guesses as ever, and none more comes to be allowed in the middle of this.
    let (guesses, _) = Limits::default().failures_per_source;
    b.limits(Limits { failures_per_source: (guesses, Duration::from_secs(600)), ..Limits::default() });
    let process = b.start().await;
    b.fingerprint(&process).await;
    let world = World { b, _process: process, token, to };
    guessing_has_an_end(&world, &victim).await;
}

async fn it_speaks_as_liqo_does(world: &World<'_>, victim: &Identity) {
    let ids = get(HONEST, world.to, "/ids").await;
    assert_eq!(ids.status, 200);
    assert!(ids.headers.contains("content-type: application/json"), "{}", ids.headers);
    assert_eq!(ids.json()["clusterId"], json!(world.b.id()));
    assert_eq!(ids.json()["clusterName"], json!("b"));
    assert_eq!(get(HONEST, world.to, "/identity").await.status, 404);
    assert_eq!(get(HONEST, world.to, "/identity/certificate").await.status, 405);
    // A cluster of Liqo 0.4, without a key.
    let (csr, _) = csr("liqo.io", "old-liqo", &[]);
    let mut body = old_request("old-liqo", "old", world.token.reveal(), &csr);
    body["originClusterToken"] = json!("whatever");
    let answer = post_from(HONEST, world.to, &body.to_string()).await;
    assert_eq!(answer.status, 202, "{}", answer.body);
    let keys: Vec<_> = answer.json().as_object().unwrap().keys().cloned().collect();
    assert_eq!(keys, ["apiServerCA", "apiServerUrl", "certificate", "namespace"]);
    // And one of ours.
    let (status, text) = world.post(&world.good(victim, world.token.reveal())).await;
    assert_eq!(status, 202, "{text}");
}

async fn bodies_that_make_no_sense(world: &World<'_>) {
    let good = world.good(&cluster("mallory"), world.token.reveal());
    let with = |key: &str, value: Value| {
        let mut body = good.clone();
        body[key] = value;
        body.to_string()
    };
    let bodies = [
        String::new(),
        "null".to_owned(),
        "{".to_owned(),
        "[".repeat(60_000),
        with("cluster", json!({ "clusterID": "../../x", "clusterName": "a" })),
        with("cluster", json!({ "clusterID": "Ünïcödé", "clusterName": "a" })),
        with("cluster", json!({ "clusterID": "a".repeat(64), "clusterName": "a" })),
        with("cluster", json!({ "clusterID": "system:admin", "clusterName": "a" })),
        old_request("mallory", "a", world.token.reveal(), "").to_string(),
        old_request("mallory", "a", world.token.reveal(), "hello").to_string(),
        with("certificateSigningRequest", json!("%")),
        with("publicKey", json!("AAAA")),
        with("proof", Value::Null),
    ];
    for body in bodies {
        let answer = post_from(HONEST, world.to, &body).await;
        assert_eq!(answer.status, 400, "{}: {body:.100}", answer.body);
    }
    // Too long, whether it says so or not.
    let long = with("destinationClusterToken", json!("x".repeat(100_000)));
    let answer = post_from(HONEST, world.to, &long).await;
    assert!([400, 413].contains(&answer.status), "{answer:?}");
    let chunked = format!(
        "POST /identity/certificate HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n{:x}\r\n{}\r\n0\r\n\r\n",
        100_000,
        "x".repeat(100_000)
    );
    let answer = exchange(HONEST, world.to, chunked.as_bytes()).await.unwrap();
    assert!([400, 413].contains(&answer.status), "{answer:?}");
    let header = format!("GET /ids HTTP/1.1\r\nHost: a\r\nX: {}\r\n\r\n", "x".repeat(2_000_000));
    let answer = exchange(HONEST, world.to, header.as_bytes()).await;
    assert!(answer.as_ref().map_or(true, |answer| answer.status >= 400), "{answer:?}");
}

async fn wrong_tokens_tell_nothing(world: &World<'_>, victim: &Identity) {
    let (expired, old) =
        world.peer_token(&NewToken { lifetime: Some(Duration::from_secs(1)), ..NewToken::default() }).await;
    let (revoked, gone) = world.peer_token(&NewToken::default()).await;
    tokens::revoke(&world.b.client, NAMESPACE, &revoked.id).await.unwrap();
    let bound = NewToken { peer: Some("somebody".parse().unwrap()), ..NewToken::default() };
    let (_, bound) = world.peer_token(&bound).await;
    world.b.set_clock(SignedDuration::from_secs(60));
    world.seen().await;
    let mut answers = std::collections::BTreeSet::new();
    let own = world.token.reveal();
    let nearly = format!("{}{}", &own[..own.len() - 1], if own.ends_with('0') { '1' } else { '0' });
    for token in ["", "x", &nearly, old.reveal(), gone.reveal(), bound.reveal(), &format!("{}.x", expired.id)]
    {
        for caller in [&cluster("mallory"), &cluster(victim.id.as_str())] {
            let (status, text) = world.post(&world.good(caller, token)).await;
            assert_eq!(status, 401, "{token}: {text}");
            assert!(token.is_empty() || token == "x" || !text.contains(token), "it repeats the token");
            answers.insert(text);
        }
    }
    assert_eq!(answers.len(), 1, "{answers:?}");
    world.b.set_clock(SignedDuration::ZERO);
}

async fn signing_requests_for_more_than_the_own_name(world: &World<'_>) {
    let token = world.token.reveal();
    let cases = [
        ("another cluster", csr("liqo.io", "known", &[]).0),
        ("an administrator", csr("system:masters", "mallory", &[]).0),
        ("a node", csr("system:nodes", "system:node:b", &[]).0),
        ("a host", csr("liqo.io", "mallory", &["kubernetes.default.svc"]).0),
    ];
    for (why, csr) in cases {
        for body in [
            old_request("mallory", "a", token, &csr),
            request(&cluster("mallory"), world.b.id(), token, &csr),
        ] {
            let (status, text) = world.post(&body).await;
            assert_eq!(status, 403, "{why}: {text}");
        }
    }
}

async fn proofs_that_are_none(world: &World<'_>) {
    let (mallory, other) = (cluster("mallory"), cluster("other"));
    let (csr, _) = csr("liqo.io", "mallory", &[]);
    let token = world.token.reveal();
    let proofs = [
        ("somebody else's", proof(&other, world.b.id(), "mallory", &csr)),
        ("for another cluster", proof(&mallory, "another", "mallory", &csr)),
        ("of another", proof(&mallory, world.b.id(), "other", &csr)),
        ("for another request", proof(&mallory, world.b.id(), "mallory", "x")),
        ("nothing", wire::base64([0; 64])),
        ("short", wire::base64([0; 3])),
    ];
    for (why, proof) in proofs {
        let mut body = old_request("mallory", "a", token, &csr);
        body["publicKey"] = json!(public_key(&mallory));
        body["proof"] = json!(proof);
        let (status, text) = world.post(&body).await;
        assert_eq!(status, 403, "{why}: {text}");
    }
}

async fn names_that_are_taken(world: &World<'_>) {
    let own = Identity::generate(&Wanted {
        id: Some(world.b.identity.id.clone()),
        name: Some("b".parse().unwrap()),
    })
    .unwrap();
    let (status, text) = world.post(&world.good(&own, world.token.reveal())).await;
    assert_eq!(status, 403, "{text}");
    // A user of this cluster; with a certificate of that name, the caller would be that user.
    let binding: ClusterRoleBinding = serde_json::from_value(json!({
        "metadata": { "name": "alice" },
        "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin" },
        "subjects": [{ "apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "alice" }],
    }))
    .unwrap();
    let bindings: Api<ClusterRoleBinding> = Api::all(world.b.client.clone());
    bindings.create(&PostParams::default(), &binding).await.unwrap();
    let (status, text) = world.post(&world.good(&cluster("alice"), world.token.reveal())).await;
    assert_eq!((status, text.contains("name of a user")), (403, true), "{text}");
}

async fn tokens_of_others(world: &World<'_>) {
    // It is good from the moment at which it was made.
    let (record, token) = tokens::create(&world.b.client, NAMESPACE, &NewToken::default()).await.unwrap();
    let (status, text) = world.post(&world.good(&cluster("first"), token.reveal())).await;
    assert_eq!(status, 202, "{text}");
    let (status, _) = world.post(&world.good(&cluster("victim"), token.reveal())).await;
    assert_eq!(status, 401);
    let records = tokens::list(&world.b.client, NAMESPACE).await.unwrap();
    let used = records.iter().find(|found| found.id == record.id).unwrap();
    assert_eq!(used.used_by.as_ref().unwrap().as_str(), "first");
    // Two at the same moment: one of them has it.
    let (_, token) = world.peer_token(&NewToken::default()).await;
    let bodies = [cluster("oscar-1"), cluster("oscar-2")].map(|caller| world.good(&caller, token.reveal()));
    let (one, other) = tokio::join!(world.post(&bodies[0]), world.post(&bodies[1]));
    let mut statuses = [one.0, other.0];
    statuses.sort_unstable();
    assert_eq!(statuses, [202, 401], "{one:?} {other:?}");
}

async fn replays(world: &World<'_>, victim: &Identity) {
    let body = world.good(victim, world.token.reveal());
    let (status, text) = world.post(&body).await;
    assert_eq!(status, 202, "{text}");
    for _ in 0..3 {
        let (status, text) = world.post(&body).await;
        assert_eq!((status, text.as_str()), (403, "a certificate already exists for this CSR"));
    }
    // And it gets another one for another request all the same; its key will do.
    assert_eq!(world.post(&world.good(victim, "")).await.0, 202);
}

/// A hub gets many peers at the same moment.
async fn many_at_once(world: &World<'_>) {
    let started = Instant::now();
    let bodies: Vec<_> = (0..24)
        .map(|number| world.good(&cluster(&format!("spoke-{number}")), world.token.reveal()).to_string())
        .collect();
    let answers = bodies.iter().map(|body| post_from(HONEST, world.to, body));
    for answer in futures::future::join_all(answers).await {
        assert_eq!(answer.status, 202, "{}", answer.body);
    }
    println!("24 clusters at once: {} ms", started.elapsed().as_millis());
}

/// A peer that is in must not fill the cluster with certificates.
async fn one_that_cannot_get_enough(world: &World<'_>) {
    let glutton = cluster("glutton");
    let mut granted = 0;
    loop {
        let (status, text) = world.post(&world.good(&glutton, world.token.reveal())).await;
        match status {
            202 => granted += 1,
            429 => break,
            _ => panic!("{status} {text}"),
        }
        assert!(granted < 100, "no end");
    }
    assert!(granted >= 30, "{granted}");
}

async fn a_second_claim_of_an_id(world: &World<'_>, victim: &Identity) {
    let impostor = cluster(victim.id.as_str());
    let token = world.token.reveal();
    assert_eq!(world.post(&world.good(&impostor, token)).await.0, 403);
    let (csr, _) = csr("liqo.io", victim.id.as_str(), &[]);
    assert_eq!(world.post(&old_request(victim.id.as_str(), "a", token, &csr)).await.0, 403);
    let part = PeeringConditionType::ProcessForeignClusterStatus;
    world.b.wait_part("a", part, "Error IdentityClaimedTwice").await;
    let events: Api<Event> = Api::namespaced(world.b.client.clone(), "default");
    world::eventually("an event", || async {
        let found = events.list(&ListParams::default()).await.unwrap().items;
        let about = |event: &&Event| event.reason.as_deref() == Some("IdentityClaimedTwice");
        let note = found.iter().find(about).and_then(|event| event.note.clone()).ok_or("no event")?;
        let fingerprint = impostor.public_key().fingerprint();
        (note.contains("127.0.0.1") && (note.contains(&fingerprint) || note.contains("none")))
            .then_some(())
            .ok_or(note)
    })
    .await;
    // Who was there first has lost nothing.
    assert_eq!(world.post(&world.good(victim, "")).await.0, 202);
    // And it is forgotten after an hour.
    world.b.set_clock(SignedDuration::from_hours(2));
    world::eventually("the condition goes", || async {
        let left = world.b.condition("a", part).await;
        left.map_or(Ok(()), |condition| Err(condition.message))
    })
    .await;
    world.b.set_clock(SignedDuration::ZERO);
}

async fn equal_names(world: &World<'_>) {
    let namesake = cluster("namesake");
    let (status, text) = world.post(&world.good(&namesake, world.token.reveal())).await;
    assert_eq!(status, 202, "{text}");
    let clusters = world.b.clusters().list(&ListParams::default()).await.unwrap().items;
    let of = |id: &str| {
        let found = clusters.iter().find(|cluster| cluster.labels()["discovery.liqo.io/cluster-id"] == id);
        found.map(ResourceExt::name_any).unwrap_or_else(|| panic!("no cluster {id}"))
    };
    assert_eq!(of("known"), "a");
    assert!(of("namesake").starts_with("a-"), "{}", of("namesake"));
}

/// Whoever sends a byte a second is cut off, and others are served meanwhile.
async fn slow_senders(world: &World<'_>) {
    let whole = post_text(&world.good(&cluster("victim"), world.token.reveal()).to_string());
    let body_at = whole.windows(4).position(|window| window == b"\r\n\r\n").unwrap() + 4;
    let mut senders = JoinSet::new();
    let to = world.to;
    for fast in [0, 20, body_at, body_at + 100] {
        let whole = whole.clone();
        senders.spawn(async move {
            let mut stream = tls(SLOW, to).await.unwrap();
            let started = Instant::now();
            stream.write_all(&whole[..fast]).await.unwrap();
            let (mut reading, mut writing) = tokio::io::split(stream);
            let trickle = async {
                for byte in &whole[fast..] {
                    tokio::time::sleep(Duration::from_secs(1)).await;
                    if writing.write_all(&[*byte]).await.is_err() || writing.flush().await.is_err() {
                        return;
                    }
                }
            };
            let mut end = Vec::new();
            let ended = tokio::io::AsyncReadExt::read_to_end(&mut reading, &mut end);
            tokio::select! {
                _ = ended => {}
                () = trickle => {}
            }
            (fast, started.elapsed())
        });
    }
    // One that speaks TCP and nothing else.
    senders.spawn(async move {
        let mut stream = tcp(SLOW, to).await.unwrap();
        let started = Instant::now();
        let mut end = Vec::new();
        let _ = tokio::io::AsyncReadExt::read_to_end(&mut stream, &mut end).await;
        (usize::MAX, started.elapsed())
    });
    assert_eq!(get(HONEST, world.to, "/ids").await.status, 200);
    while let Some(ended) = senders.join_next().await {
        let (fast, took) = ended.unwrap();
        assert!(took < Duration::from_secs(15), "after {fast} bytes: {took:?}");
    }
}

async fn ten_thousand_connections(world: &World<'_>, victim: &Identity) {
    let before = ProcessUsage::now();
    let mut flood = JoinSet::new();
    let to = world.to;
    for _ in 0..10_000 {
        flood.spawn(async move {
            let connected = tokio::time::timeout(Duration::from_secs(5), tcp(FLOODER, to)).await;
            let Ok(Ok(mut stream)) = connected else { return false };
            // Held until the other side ends it.
            let mut end = [0; 1];
            let read = tokio::io::AsyncReadExt::read(&mut stream, &mut end);
            tokio::time::timeout(Duration::from_secs(20), read).await.is_ok()
        });
    }
    let started = Instant::now();
    let mut slowest = Duration::ZERO;
    for _ in 0..5 {
        let one = Instant::now();
        let (status, text) = world.post(&world.good(victim, "")).await;
        assert_eq!(status, 202, "{text}");
        slowest = slowest.max(one.elapsed());
    }
    println!("10,000 connections: five certificates in {:?}, the slowest in {slowest:?}", started.elapsed());
    assert!(slowest < Duration::from_secs(20), "{slowest:?}");
    let mut ended = 0;
    while let Some(closed) = flood.join_next().await {
        ended += usize::from(closed.unwrap());
    }
    let after = ProcessUsage::now();
    println!(
        "{ended} were ended; memory {} MiB more",
        (after.resident_bytes.saturating_sub(before.resident_bytes)) >> 20
    );
    // Both ends are in this process; the flood's own tasks are the larger part.
    assert!(after.resident_bytes < before.resident_bytes + (256 << 20), "{before:?} {after:?}");
}

async fn nothing_was_left_behind(world: &World<'_>) {
    let b = &world.b;
    let namespaces: Api<Namespace> = Api::all(b.client.clone());
    let requests: Api<CertificateSigningRequest> = Api::all(b.client.clone());
    for nobody in NOBODIES {
        let chosen = ListParams::default().labels(&format!("discovery.liqo.io/cluster-id={nobody}"));
        assert_eq!(namespaces.list(&chosen).await.unwrap().items.len(), 0, "{nobody}");
        assert_eq!(requests.list(&chosen).await.unwrap().items.len(), 0, "{nobody}");
        assert_eq!(b.clusters().list(&chosen).await.unwrap().items.len(), 0, "{nobody}");
    }
}

async fn guessing_has_an_end(world: &World<'_>, victim: &Identity) {
    let body = world.good(&cluster("mallory"), "guess").to_string();
    let mut statuses = Vec::new();
    for _ in 0..30 {
        statuses.push(post_from(GUESSER, world.to, &body).await);
    }
    assert_eq!(statuses[0].status, 401);
    let last = statuses.last().unwrap();
    assert_eq!(last.status, 429, "{last:?}");
    assert!(last.headers.contains("retry-after: "), "{}", last.headers);
    // Not even with the right token, for a while; a peer that is known by its key does not suffer from its neighbour.
    let right = world.good(&cluster("mallory"), world.token.reveal()).to_string();
    assert_eq!(post_from(GUESSER, world.to, &right).await.status, 429);
    assert_eq!(post_from(GUESSER, world.to, &world.good(victim, "").to_string()).await.status, 202);
    assert_eq!(
        post_from(HONEST, world.to, &world.good(&cluster("newcomer"), world.token.reveal()).to_string())
            .await
            .status,
        202
    );
    let _ = rest;
}
