//! Clusters on one network, found by multicast DNS: between real network namespaces, with ForeignClusters on real API
//! servers.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::disallowed_types,
    reason = "a test that cannot go on has failed"
)]

#[path = "support/auth.rs"]
mod auth;
#[path = "support/cluster.rs"]
mod cluster;
#[path = "support/machine.rs"]
mod machine;

#[path = "support/noise.rs"]
mod noise;

use std::net::IpAddr;
use std::time::Duration;

use auth::{Certificate, serve_ids};
use cluster::{changes_asked, found, gone, in_short, install, kubectl, peers, restricted, wait_for};
use kube::api::{Patch, PatchParams};
use kube::{Api, ResourceExt};
use liqo_api::names::Identity;
use liqo_api::{Fingerprint, ForeignCluster};
use liqo_discovery::{Advertisement, InterfaceChoice, Lan};
use liqo_kit::metrics::ProcessUsage;
use liqo_sandbox::{ClusterSpec, TestCluster, TestSandbox};
use machine::{Machine, Running};
use mdns_sd::{ServiceDaemon, ServiceEvent, ServiceInfo};
use serde_json::json;
use tokio::sync::watch;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// A second or two on an idle machine; shorter than any lifetime that is not short.
const SOON: Duration = Duration::from_secs(60);

/// A lifetime that a test can wait for.
const SHORT: u32 = 10;

const SERVICE: &str = "_liqo_auth._tcp.local.";

fn identity(id: &str, name: &str) -> Identity {
    Identity { id: id.parse().unwrap(), name: name.parse().unwrap() }
}

fn lan(advertise: Option<Advertisement>, browse: bool) -> Lan {
    let advertise = advertise.map(|advertisement| watch::Sender::new(Some(advertisement)).subscribe());
    Lan { browse, advertise, interfaces: InterfaceChoice::default(), ipv4: true, ipv6: true }
}

/// An authentication service on a machine, until it is dropped.
struct Auth {
    identity: Identity,
    port: u16,
    fingerprint: Fingerprint,
    stop: CancellationToken,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl Auth {
    fn start(machine: &Machine, id: &'static str, name: &'static str) -> Self {
        let certificate = Certificate::new();
        let fingerprint = certificate.fingerprint;
        let stop = CancellationToken::new();
        let (sender, port) = std::sync::mpsc::sync_channel(1);
        let stopped = stop.clone();
        let thread = machine.run(move || async move {
            let (port, serving) = serve_ids(&certificate, id, name, stopped).await;
            sender.send(port).unwrap();
            serving.await;
        });
        let (identity, port) = (identity(id, name), port.recv().unwrap());
        Self { identity, port, fingerprint, stop, thread: Some(thread) }
    }

    fn advertisement(&self, ttl: u32) -> Advertisement {
        Advertisement {
            identity: self.identity.clone(),
            port: self.port,
            addresses: Vec::new(),
            fingerprint: Some(self.fingerprint),
            version: "0.1.0".to_owned(),
            ttl,
        }
    }
}

impl Drop for Auth {
    fn drop(&mut self) {
        self.stop.cancel();
        let _ = self.thread.take().map(std::thread::JoinHandle::join);
    }
}

/// Two clusters on one network.
struct World<'a> {
    sandbox: &'a TestSandbox,
    a: TestCluster<'a>,
    b: TestCluster<'a>,
    /// The administrator of `a`, which looks for others.
    client: kube::Client,
    /// As what `a` looks for others: with the rights that the room declares, and no others.
    config: kube::Config,
    on_a: Machine,
    on_b: Machine,
    /// The authentication service of `b`.
    auth: Auth,
}

impl<'a> World<'a> {
    async fn new(sandbox: &'a TestSandbox) -> Self {
        let (a, b) = (sandbox.cluster("a"), sandbox.cluster("b"));
        let client = a.client().await;
        install(&client).await;
        install(&b.client().await).await;
        let (on_a, on_b) = (Machine::of(&a), Machine::of(&b));
        let auth = Auth::start(&on_b, "cluster-b", "beta");
        let config = restricted(&a, liqo_discovery::RULES).await;
        Self { sandbox, a, b, client, config, on_a, on_b, auth }
    }

    /// `a` looks for others; it has asked once when this returns.
    async fn look(&self, lan: Lan) -> Running {
        let room =
            Running::start(&self.on_a, self.config.clone(), identity("cluster-a", "alpha"), Some(lan), None);
        sent(&room, 1.0).await;
        room
    }

    /// A cluster advertises itself from a machine.
    async fn advertise(&self, machine: &Machine, auth: &Auth, lan: Lan) -> Running {
        Running::start(machine, self.b.config().await, auth.identity.clone(), Some(lan), None)
    }

    fn engage(&self, name: &str, status: &str) -> impl Future<Output = ()> + use<> {
        let api: Api<ForeignCluster> = Api::all(self.client.clone());
        let name = name.to_owned();
        let conditions = json!([{ "type": "OutgoingPeering", "status": status }]);
        let patch = json!({ "status": { "peeringConditions": conditions } });
        async move {
            api.patch_status(&name, &PatchParams::default(), &Patch::Merge(&patch)).await.unwrap();
        }
    }

    async fn marked(&self, is_marked: bool) {
        wait_for("the mark that it is advertised no longer", Duration::from_secs(60), async || {
            let peers = peers(&self.client).await;
            let marks = |peer: &ForeignCluster| {
                peer.annotations().contains_key("discovery.liqo.io/unadvertised-since")
            };
            if peers.len() == 1 && marks(&peers[0]) == is_marked { Ok(()) } else { Err(in_short(&peers)) }
        })
        .await;
    }

    /// Waits for an event about a ForeignCluster.
    async fn event(&self, name: &str, reason: &str) -> String {
        wait_for(&format!("the event {reason}"), SOON, async || {
            let described = kubectl(&self.a, &["describe", "foreigncluster", name]);
            let line = described.lines().find(|line| line.contains(reason)).map(str::to_owned);
            line.ok_or(described)
        })
        .await
    }
}

/// Waits until a number of a room has grown so far.
async fn grown(room: &Running, metric: &str, to: f64) {
    wait_for(&format!("{metric} is {to}"), SOON, async || {
        if room.metric(metric) >= to { Ok(()) } else { Err(room.metrics_text()) }
    })
    .await;
}

async fn sent(room: &Running, packets: f64) {
    grown(room, "liqo_discovery_mdns_packets_total{direction=\"sent\"}", packets).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn clusters_on_one_network_find_each_other_and_are_forgotten_when_they_go() {
    let sandbox = TestSandbox::start([ClusterSpec::api_only("a"), ClusterSpec::api_only("b")]).await;
    let world = World::new(&sandbox).await;
    a_cluster_is_found_at_once(&world).await;
    a_goodbye_is_noticed(&world).await;
    a_restart_writes_nothing(&world).await;
    who_is_not_heard_of_expires_unless_a_peering_is_active(&world).await;
    ipv6_is_enough(&world).await;
    another_implementation_is_understood_and_understands_us(&world).await;
}

async fn a_cluster_is_found_at_once(world: &World<'_>) {
    let room = world.look(lan(None, true)).await;
    let started = Instant::now();
    let say = world.auth.advertisement(90);
    let advertising = world.advertise(&world.on_b, &world.auth, lan(Some(say), false)).await;
    let peer = found(&world.client, "cluster-b", SOON).await;
    println!("a new cluster was found after {:?}", started.elapsed());

    assert_eq!(peer.name_any(), "beta-ebe9fb");
    assert_eq!(peer.labels()["discovery.liqo.io/discovery-type"], "LAN");
    let address = world.b.plan().first_machine().address;
    assert_eq!(peer.spec.foreign_auth_url, format!("https://{address}:{}", world.auth.port));
    assert_eq!(peer.spec.auth_fingerprint, Some(world.auth.fingerprint.to_string()));
    assert_eq!(peer.spec.ttl, Some(90));
    let event = world.event(&peer.name_any(), "Discovered").await;
    assert!(event.contains("Found on the local network"), "{event}");

    // And who comes later finds who is there: it asks.
    advertising.stop();
    gone(&world.client, "cluster-b", SOON).await;
    drop(room);
    let say = world.auth.advertisement(90);
    let advertising = world.advertise(&world.on_b, &world.auth, lan(Some(say), false)).await;
    // Three announcements in each version of IP; from then on it is silent unless it is asked.
    sent(&advertising, 6.0).await;
    let started = Instant::now();
    let _room = world.look(lan(None, true)).await;
    found(&world.client, "cluster-b", SOON).await;
    println!("a cluster that was there before was found after {:?}", started.elapsed());
    // The next section must find it anew, and not what is left of this one.
    advertising.stop();
    gone(&world.client, "cluster-b", SOON).await;
}

async fn a_goodbye_is_noticed(world: &World<'_>) {
    let _room = world.look(lan(None, true)).await;
    let say = world.auth.advertisement(3600);
    let advertising = world.advertise(&world.on_b, &world.auth, lan(Some(say), false)).await;
    found(&world.client, "cluster-b", SOON).await;
    let started = Instant::now();
    advertising.stop();
    gone(&world.client, "cluster-b", Duration::from_secs(30)).await;
    println!("after a goodbye, the cluster was gone after {:?}", started.elapsed());
}

async fn a_restart_writes_nothing(world: &World<'_>) {
    let say = world.auth.advertisement(90);
    let _advertising = world.advertise(&world.on_b, &world.auth, lan(Some(say), false)).await;
    let room = world.look(lan(None, true)).await;
    let peer = found(&world.client, "cluster-b", SOON).await;
    world.event(&peer.name_any(), "Discovered").await;
    room.stop();
    let before = [changes_asked(&world.a, "foreignclusters"), changes_asked(&world.a, "events")];
    let room = world.look(lan(None, true)).await;
    grown(&room, "liqo_discovery_clusters{source=\"lan\"}", 1.0).await;
    // Long enough for what should not come: it looks at everything anew every other second.
    tokio::time::sleep(Duration::from_secs(5)).await;
    let after = [changes_asked(&world.a, "foreignclusters"), changes_asked(&world.a, "events")];
    assert_eq!(after, before, "{}", in_short(&peers(&world.client).await));
}

async fn who_is_not_heard_of_expires_unless_a_peering_is_active(world: &World<'_>) {
    let _room = world.look(lan(None, true)).await;
    let say = world.auth.advertisement(SHORT);
    let _advertising = world.advertise(&world.on_b, &world.auth, lan(Some(say), false)).await;
    let peer = found(&world.client, "cluster-b", SOON).await;
    wait_for("the shorter lifetime", Duration::from_secs(60), async || {
        let peers = peers(&world.client).await;
        let short = peers.first().is_some_and(|peer| peer.spec.ttl == Some(SHORT));
        if short { Ok(()) } else { Err(in_short(&peers)) }
    })
    .await;
    world.engage(&peer.name_any(), "Established").await;
    world.sandbox.cut("a", "b").await;
    let started = Instant::now();
    world.marked(true).await;
    println!("a silent cluster with a peering was marked after {:?}", started.elapsed());
    world.event(&peer.name_any(), "NoLongerAdvertised").await;
    world.sandbox.heal().await;
    world.marked(false).await;

    world.engage(&peer.name_any(), "None").await;
    world.sandbox.cut("a", "b").await;
    let started = Instant::now();
    gone(&world.client, "cluster-b", Duration::from_secs(60)).await;
    println!("a silent cluster was gone after {:?}", started.elapsed());
    world.sandbox.heal().await;
    found(&world.client, "cluster-b", Duration::from_secs(60)).await;
}

/// Packets between link-local addresses alone, and a URL with an IPv6 address.
async fn ipv6_is_enough(world: &World<'_>) {
    gone_after_goodbye(world).await;
    for (cluster, address) in [(&world.a, "fd77::a/64"), (&world.b, "fd77::b/64")] {
        let command = ["ip", "address", "add", address, "dev", "eth0", "nodad"];
        assert!(cluster.exec_command(1, command).unwrap().status().unwrap().success());
    }
    let ipv6 = |mut lan: Lan| {
        lan.ipv4 = false;
        lan.interfaces.include = vec!["fd77::/64".parse().unwrap()];
        lan
    };
    let _room = world.look(ipv6(lan(None, true))).await;
    let started = Instant::now();
    let say = world.auth.advertisement(90);
    let advertising = world.advertise(&world.on_b, &world.auth, ipv6(lan(Some(say), false))).await;
    let peer = found(&world.client, "cluster-b", SOON).await;
    println!("over IPv6, the cluster was found after {:?}", started.elapsed());
    assert_eq!(peer.spec.foreign_auth_url, format!("https://[fd77::b]:{}", world.auth.port));
    advertising.stop();
    gone(&world.client, "cluster-b", SOON).await;
}

/// Whatever the section before left.
async fn gone_after_goodbye(world: &World<'_>) {
    let _room = world.look(lan(None, true)).await;
    gone(&world.client, "cluster-b", Duration::from_secs(60)).await;
}

async fn another_implementation_is_understood_and_understands_us(world: &World<'_>) {
    let _room = world.look(lan(Some(alpha(&world.auth)), true)).await;
    // As an older peer: no TXT record to speak of.
    let auth = Auth::start(&world.on_b, "older-peer", "older");
    let (address, port) = (IpAddr::V4(world.b.plan().first_machine().address), auth.port);
    let (sender, mut seen) = tokio::sync::mpsc::channel(1);
    let done = CancellationToken::new();
    let stop = done.clone();
    let other = world.on_b.run(move || async move {
        let daemon = ServiceDaemon::new().unwrap();
        let nothing: &[(&str, &str)] = &[];
        let service =
            ServiceInfo::new(SERVICE, "older-peer", "older.local.", address, port, nothing).unwrap();
        let name = service.get_fullname().to_owned();
        daemon.register(service).unwrap();
        let events = daemon.browse(SERVICE).unwrap();
        let browsing = async {
            while let Ok(event) = events.recv_async().await {
                if let ServiceEvent::ServiceResolved(found) = event
                    && found.get_fullname().starts_with("cluster-a")
                {
                    let text = |key: &str| found.get_property_val_str(key).unwrap_or_default().to_owned();
                    let _ =
                        sender.try_send([text("id"), text("name"), text("fp"), found.get_port().to_string()]);
                }
            }
        };
        tokio::select! {
            () = stop.cancelled() => {}
            () = browsing => {}
        }
        let _ = daemon.unregister(&name).unwrap().recv_async().await;
        let _ = daemon.shutdown().unwrap().recv_async().await;
    });
    let peer = found(&world.client, "older-peer", SOON).await;
    assert_eq!(peer.spec.auth_fingerprint, None);
    assert_eq!(peer.spec.foreign_auth_url, format!("https://{address}:{port}"));
    let seen =
        tokio::time::timeout(SOON, seen.recv()).await.expect("the other implementation sees us").unwrap();
    assert_eq!(seen, ["cluster-a", "alpha", &world.auth.fingerprint.to_string(), "4711"].map(str::to_owned));
    done.cancel();
    other.join().unwrap();
    gone(&world.client, "older-peer", SOON).await;
}

fn alpha(auth: &Auth) -> Advertisement {
    Advertisement { identity: identity("cluster-a", "alpha"), port: 4711, ..auth.advertisement(90) }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hostile_network_neither_deceives_nor_floods() {
    let sandbox = TestSandbox::start([ClusterSpec::api_only("a"), ClusterSpec::api_only("b")]).await;
    let world = World::new(&sandbox).await;
    let room = world.look(lan(None, true)).await;
    let say = world.auth.advertisement(90);
    let _advertising = world.advertise(&world.on_b, &world.auth, lan(Some(say), false)).await;
    let real = found(&world.client, "cluster-b", SOON).await;
    a_second_claim_of_an_id_is_refused(&world, &room, &real).await;
    who_says_who_it_is_not_is_refused(&world, &room).await;
    ten_thousand_bogus_records_change_nothing(&world, &room, &real).await;
    drop(room);
    nobody_is_asked_inside_the_cluster(&world).await;
}

/// Who claims to have an address of the cluster's own networks is not connected to.
async fn nobody_is_asked_inside_the_cluster(world: &World<'_>) {
    let mut inside = lan(None, true);
    inside.interfaces.pod_networks = vec!["10.96.0.0/12".parse().unwrap()];
    let room = world.look(inside).await;
    let auth = Auth::start(&world.on_b, "insider", "insider");
    let say = Advertisement { addresses: vec!["10.96.0.1".parse().unwrap()], ..auth.advertisement(90) };
    let _insider = world.advertise(&world.on_b, &auth, lan(Some(say), false)).await;
    grown(&room, "liqo_discovery_refused_total{source=\"lan\",reason=\"no_address\"}", 1.0).await;
    assert_eq!(room.metric("liqo_discovery_identifications_total{outcome=\"unreachable\"}"), 0.0);
}

/// This machine, which is on the same network.
fn stranger(world: &World<'_>) -> Lan {
    let network = format!("{}/16", world.b.plan().first_machine().address);
    let mut lan = lan(None, false);
    lan.interfaces.include = vec![network.parse().unwrap()];
    lan
}

async fn a_second_claim_of_an_id_is_refused(world: &World<'_>, room: &Running, real: &ForeignCluster) {
    let here = Machine::here();
    let auth = Auth::start(&here, "cluster-b", "beta");
    let mut lan = stranger(world);
    lan.advertise = Some(watch::Sender::new(Some(auth.advertisement(90))).subscribe());
    let _impostor = world.advertise(&here, &auth, lan).await;
    let event = world.event(&real.name_any(), "ClusterIDTaken").await;
    println!("{event}");
    grown(room, "liqo_discovery_refused_total{source=\"lan\",reason=\"id_taken\"}", 1.0).await;
    let peers = peers(&world.client).await;
    assert_eq!(peers.len(), 1, "{}", in_short(&peers));
    assert_eq!(peers[0].spec, real.spec);
}

/// Its records name another cluster than the one that answers, or another certificate.
async fn who_says_who_it_is_not_is_refused(world: &World<'_>, room: &Running) {
    let here = Machine::here();
    let auth = Auth::start(&here, "really-this", "this");
    let other = Fingerprint::of_certificate(b"another");
    for (id, fingerprint, reason) in
        [("pretended", auth.fingerprint, "impostor"), ("really-this", other, "wrong_certificate")]
    {
        let say = Advertisement {
            identity: identity(id, "this"),
            fingerprint: Some(fingerprint),
            ..auth.advertisement(90)
        };
        let mut lan = stranger(world);
        lan.advertise = Some(watch::Sender::new(Some(say)).subscribe());
        let _liar = world.advertise(&here, &auth, lan).await;
        let metric = format!("liqo_discovery_refused_total{{source=\"lan\",reason=\"{reason}\"}}");
        wait_for(
            &metric,
            SOON,
            async || {
                if room.metric(&metric) >= 1.0 { Ok(()) } else { Err(room.metrics_text()) }
            },
        )
        .await;
    }
    let peers = peers(&world.client).await;
    assert_eq!(peers.len(), 1, "{}", in_short(&peers));
}

async fn ten_thousand_bogus_records_change_nothing(world: &World<'_>, room: &Running, real: &ForeignCluster) {
    const RECORDS: u32 = 10_000;
    let received = "liqo_discovery_mdns_packets_total{direction=\"received\"}";
    let before = room.metric(received);
    let memory = ProcessUsage::now().anonymous_bytes;
    let writes = changes_asked(&world.a, "foreignclusters");
    let target = world.b.plan().first_machine().address;
    // All from this machine; half of them complete, the others broken in one way or another.
    let noise = noise::Noise::new(target);
    let flood = Machine::here().run(move || async move { noise.send(RECORDS, Duration::from_secs(4)).await });
    grown(room, received, before + 2000.0).await;
    let started = Instant::now();
    let auth = Auth::start(&world.on_b, "newcomer", "new");
    let say = auth.advertisement(90);
    let newcomer = world.advertise(&world.on_b, &auth, lan(Some(say), false)).await;
    found(&world.client, "newcomer", Duration::from_secs(60)).await;
    println!("in the middle of the flood, a new cluster was found after {:?}", started.elapsed());
    let sent = flood.join().unwrap();
    assert_eq!(sent, RECORDS);
    newcomer.stop();
    gone(&world.client, "newcomer", Duration::from_secs(60)).await;

    let peers = peers(&world.client).await;
    assert_eq!(peers.len(), 1, "{}", in_short(&peers));
    assert_eq!(peers[0].spec, real.spec);
    // The newcomer came and went; what was there before may have been refreshed.
    let writes = changes_asked(&world.a, "foreignclusters") - writes;
    assert!(writes <= 5, "{writes} writes");
    let kept = room.metric("liqo_discovery_mdns_kept_records");
    let candidates = room.metric("liqo_discovery_candidates{source=\"lan\"}");
    let grown = ProcessUsage::now().anonymous_bytes.saturating_sub(memory) >> 20;
    println!("{kept} records kept, {candidates} candidates, {grown} MiB more, {writes} writes");
    assert!(kept <= 200.0 && candidates <= 50.0 && grown <= 32, "{}", room.metrics_text());
    println!(
        "{}",
        room.metrics_text()
            .lines()
            .filter(|line| line.contains("refused_total{"))
            .collect::<Vec<_>>()
            .join("\n")
    );
}
