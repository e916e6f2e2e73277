//! Clusters found by DNS: a real name server, real TLS, and ForeignClusters and SearchDomains on a real API server.
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
#[path = "support/dns.rs"]
mod dns;
#[path = "support/machine.rs"]
mod machine;

use std::fmt::Write as _;
use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

use auth::{Certificate, serve_ids};
use cluster::{changes_asked, found, gone, in_short, install, kubectl, peers, restricted, wait_for};
use dns::NameServer;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use kube::{Api, ResourceExt};
use liqo_api::names::Identity;
use liqo_api::{Fingerprint, ForeignCluster, SearchDomain, SearchDomainSpec, SearchDomainStatus};
use liqo_discovery::Wan;
use liqo_sandbox::{ClusterSpec, TestCluster, TestSandbox};
use machine::{Machine, Running};
use serde_json::json;
use tokio::task::JoinSet;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// A second or two on an idle machine.
const SOON: Duration = Duration::from_secs(60);

/// The shortest life of a found cluster, and some patience.
const EXPIRY: Duration = Duration::from_secs(120);

const ZONE: &str = "liqo.test";
const OTHER_ZONE: &str = "other.test";

/// An authentication service on this machine.
struct Auth {
    port: u16,
    fingerprint: Fingerprint,
}

struct World<'a> {
    cluster: TestCluster<'a>,
    client: kube::Client,
    /// What the room declares to need, and no other rights.
    config: kube::Config,
    domains: Api<SearchDomain>,
    server: NameServer,
    /// An address of this machine that is not its loopback.
    address: Ipv4Addr,
    /// What runs the authentication services.
    services: JoinSet<()>,
    one: Auth,
    two: Auth,
}

impl<'a> World<'a> {
    async fn new(sandbox: &'a TestSandbox) -> Self {
        let cluster = sandbox.cluster("a");
        let client = cluster.client().await;
        install(&client).await;
        let near = cluster.plan().first_machine().address;
        let address =
            getifaddrs::getifaddrs().unwrap().find_map(|interface| match interface.address.ip_addr() {
                Some(IpAddr::V4(address)) if address.octets()[..2] == near.octets()[..2] => Some(address),
                _ => None,
            });
        let mut services = JoinSet::new();
        let one = serve(&mut services, "wan-one", "one").await;
        let two = serve(&mut services, "wan-two", "two").await;
        Self {
            config: restricted(&cluster, &[liqo_discovery::RULES, liqo_discovery::WAN_RULES].concat()).await,
            cluster,
            domains: Api::all(client.clone()),
            client,
            server: NameServer::start(&[ZONE, OTHER_ZONE]),
            address: address.expect("this machine is on the sandbox's network"),
            services,
            one,
            two,
        }
    }

    async fn search(&self) -> Running {
        let own = Identity { id: "cluster-a".parse().unwrap(), name: "alpha".parse().unwrap() };
        let wan = Wan { name_servers: vec![self.server.address] };
        Running::start(&Machine::here(), self.config.clone(), own, None, Some(wan))
    }

    async fn add_domain(&self, name: &str, domain: &str, autojoin: bool) {
        let spec = SearchDomainSpec { domain: domain.to_owned(), autojoin };
        self.domains.create(&PostParams::default(), &SearchDomain::new(name, spec)).await.unwrap();
    }

    async fn status(&self, name: &str) -> SearchDomainStatus {
        self.domains.get(name).await.unwrap().status.unwrap_or_default()
    }

    /// Waits until a condition of a SearchDomain says this; returns its message.
    async fn condition(&self, name: &str, kind: &str, wanted: &str) -> String {
        wait_for(&format!("{kind} of {name} is {wanted}"), EXPIRY, async || {
            let status = self.status(name).await;
            let found = status.conditions.iter().find(|condition| condition.type_ == kind);
            match found {
                Some(found) if format!("{} {}", found.status, found.reason) == wanted => {
                    Ok(found.message.clone())
                }
                _ => Err(format!("{status:?}\n{}", self.server.log())),
            }
        })
        .await
    }

    /// The records of the two clusters, with this lifetime.
    fn two_clusters(&self, ttl: u32) -> String {
        let Self { address, one, two, .. } = self;
        let (port, other_port, fingerprint) = (one.port, two.port, one.fingerprint);
        // The second one also has an address that nobody answers at, and no TXT record.
        format!(
            "@ {ttl} IN PTR one\n\
             @ {ttl} IN PTR two\n\
             one {ttl} IN SRV 0 0 {port} auth-one\n\
             one {ttl} IN TXT \"id=wan-one\" \"name=one\" \"fp={fingerprint}\"\n\
             auth-one {ttl} IN A {address}\n\
             two {ttl} IN SRV 10 0 1 nowhere\n\
             two {ttl} IN SRV 0 0 {other_port} auth-two\n\
             auth-two {ttl} IN A {address}\n\
             auth-two {ttl} IN A 198.51.100.7\n\
             auth-two {ttl} IN AAAA 2001:db8::7\n"
        )
    }
}

/// Serves `/ids` for a cluster on this machine until the test ends.
async fn serve(services: &mut JoinSet<()>, id: &str, name: &str) -> Auth {
    let certificate = Certificate::new();
    let (port, serving) = serve_ids(&certificate, id, name, CancellationToken::new()).await;
    services.spawn(serving);
    Auth { port, fingerprint: certificate.fingerprint }
}

/// Broken in every way that a zone can be.
const BROKEN: &str = "
@ 5 IN PTR no-service
@ 5 IN PTR no-address
no-address 5 IN SRV 0 0 443 nowhere
@ 5 IN PTR port-zero
port-zero 5 IN SRV 0 0 0 auth-one
@ 5 IN PTR not-offered
not-offered 5 IN SRV 0 0 443 .
@ 5 IN PTR loopback
loopback 5 IN SRV 0 0 443 localhost-of-ours
localhost-of-ours 5 IN A 127.0.0.1
@ 5 IN PTR hostile-text
hostile-text 5 IN SRV 0 0 443 auth-one
hostile-text 5 IN TXT \"id=\\007\\000\\255\"
@ 5 IN PTR odd-host
odd-host 5 IN SRV 0 0 443 _not_a_host
_not_a_host 5 IN A 198.51.100.9
@ 5 IN PTR silent
silent 5 IN SRV 0 0 9 auth-one
";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn clusters_are_found_by_dns() {
    let sandbox = TestSandbox::start([ClusterSpec::api_only("a")]).await;
    let world = World::new(&sandbox).await;
    let room = world.search().await;
    one_broken_record_spoils_nothing(&world).await;
    autojoin_is_decided_by_the_search_domain(&world).await;
    a_repaired_domain_says_so(&world).await;
    lifetimes_say_when_to_ask_again(&world, &room).await;
    room.stop();
    a_restart_writes_nothing(&world).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn domains_that_lie_fail_or_change_do_no_harm() {
    let sandbox = TestSandbox::start([ClusterSpec::api_only("a")]).await;
    let mut world = World::new(&sandbox).await;
    world.server.write(ZONE, &world.two_clusters(5));
    let room = world.search().await;
    world.add_domain("company", ZONE, true).await;
    found(&world.client, "wan-one", EXPIRY).await;
    found(&world.client, "wan-two", EXPIRY).await;
    a_second_claim_of_an_id_is_refused(&mut world, &room).await;
    a_server_that_is_away_ends_nothing_at_once(&mut world).await;
    what_is_not_named_any_more_expires(&world).await;
    more_clusters_than_a_domain_may_name_are_told(&world).await;
    room.stop();
}

async fn one_broken_record_spoils_nothing(world: &World<'_>) {
    world.server.write(ZONE, &format!("{}{BROKEN}", world.two_clusters(5)));
    let started = Instant::now();
    world.add_domain("company", ZONE, true).await;
    let one = found(&world.client, "wan-one", SOON).await;
    let two = found(&world.client, "wan-two", SOON).await;
    println!("two clusters were found by DNS after {:?}", started.elapsed());
    for peer in [&one, &two] {
        assert_eq!(peer.labels()["discovery.liqo.io/discovery-type"], "WAN");
        assert_eq!(peer.labels()["discovery.liqo.io/searchdomain"], "company");
        assert_eq!(peer.spec.ttl, Some(30));
    }
    assert_eq!(one.spec.foreign_auth_url, format!("https://auth-one.{ZONE}:{}", world.one.port));
    assert_eq!(one.spec.auth_fingerprint, Some(world.one.fingerprint.to_string()));
    assert_eq!(two.spec.foreign_auth_url, format!("https://auth-two.{ZONE}:{}", world.two.port));
    assert_eq!(two.spec.auth_fingerprint, None, "no record carries it");

    let broken = [
        ("no-service", "it has no SRV record"),
        ("no-address", "it has no address record"),
        ("port-zero", "its port is 0"),
        ("not-offered", "the service is not offered"),
        ("loopback", "127.0.0.1"),
        ("hostile-text", "its TXT record"),
        ("odd-host", "is not a host name"),
        ("silent", "nothing answers"),
    ];
    // Who does not answer is known later than what is wrong with a record.
    let message = wait_for("each broken record is told", EXPIRY, async || {
        let message = world.condition("company", "RecordsValid", "False BrokenRecords").await;
        for (record, why) in broken {
            let told = message.split("; ").find(|part| part.starts_with(&format!("{record}.{ZONE}: ")));
            if !told.is_some_and(|told| told.contains(why)) {
                return Err(format!("{record}: {why}\n{message}"));
            }
        }
        Ok(message)
    })
    .await;
    println!("{message}");
    world.condition("company", "Ready", "True Searched").await;
    let status = wait_for("both are told", SOON, async || {
        let status = world.status("company").await;
        if status.found == Some(2) { Ok(status) } else { Err(format!("{status:?}")) }
    })
    .await;
    let names: Vec<_> = status.clusters.iter().map(|cluster| cluster.cluster_name.as_str()).collect();
    assert_eq!(names, ["one", "two"]);
    assert!(status.last_query.is_some());
    wait_for("an event tells of a broken record", SOON, async || {
        let described = kubectl(&world.cluster, &["describe", "searchdomain", "company"]);
        let told = described.contains(&format!("The record no-service.{ZONE} is of no use"));
        if told { Ok(()) } else { Err(described) }
    })
    .await;
    println!("{}", kubectl(&world.cluster, &["get", "searchdomains"]));
}

/// What the peering will decide by, on real objects.
async fn autojoin_is_decided_by_the_search_domain(world: &World<'_>) {
    let joins = async || {
        let peer = found(&world.client, "wan-one", SOON).await;
        let domain = world.domains.get(&peer.labels()["discovery.liqo.io/searchdomain"]).await.unwrap();
        assert_eq!(peer.spec.outgoing_peering_enabled, liqo_api::foreign_cluster::PeeringEnabled::Auto);
        peer.wants_outgoing(true, |name| name == domain.name_any() && domain.spec.autojoin)
    };
    assert!(joins().await);
    let patch = json!({ "spec": { "autojoin": false } });
    world.domains.patch("company", &PatchParams::default(), &Patch::Merge(&patch)).await.unwrap();
    assert!(!joins().await);
}

async fn a_repaired_domain_says_so(world: &World<'_>) {
    world.server.write(ZONE, &world.two_clusters(5));
    world.condition("company", "RecordsValid", "True AllValid").await;
}

async fn lifetimes_say_when_to_ask_again(world: &World<'_>, room: &Running) {
    let searches = || room.metric("liqo_discovery_searches_total{outcome=\"found\"}");
    let (before, started) = (searches(), Instant::now());
    wait_for("three more searches", EXPIRY, async || {
        if searches() >= before + 3.0 { Ok(()) } else { Err(room.metrics_text()) }
    })
    .await;
    let each = started.elapsed() / 3;
    println!("with a lifetime of 5 s, a search each {each:?}");
    // The first of the three may have been due at once.
    assert!(each >= Duration::from_secs(3), "{each:?}");

    world.server.write(ZONE, &world.two_clusters(600));
    wait_for("the longer lifetime", EXPIRY, async || {
        let peers = peers(&world.client).await;
        let long = |peer: &ForeignCluster| peer.spec.ttl == Some(1200);
        if peers.len() == 2 && peers.iter().all(long) { Ok(()) } else { Err(in_short(&peers)) }
    })
    .await;
}

async fn a_restart_writes_nothing(world: &World<'_>) {
    let resources = ["foreignclusters", "searchdomains", "events"];
    let count = || resources.map(|resource| changes_asked(&world.cluster, resource));
    let before = count();
    let room = world.search().await;
    wait_for("both clusters are known again", SOON, async || {
        let known = room.metric("liqo_discovery_clusters{source=\"wan\"}");
        if known >= 2.0 { Ok(()) } else { Err(room.metrics_text()) }
    })
    .await;
    // Long enough for what should not come: it looks at everything anew every other second.
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert_eq!(count(), before, "{}", in_short(&peers(&world.client).await));
}

async fn a_second_claim_of_an_id_is_refused(world: &mut World<'_>, room: &Running) {
    let impostor = serve(&mut world.services, "wan-one", "one").await;
    let (address, port) = (world.address, impostor.port);
    world.server.write(
        OTHER_ZONE,
        &format!("@ 5 IN PTR evil\nevil 5 IN SRV 0 0 {port} auth\nauth 5 IN A {address}\n"),
    );
    world.add_domain("elsewhere", OTHER_ZONE, true).await;
    let refused = "liqo_discovery_refused_total{source=\"wan\",reason=\"id_taken\"}";
    wait_for(
        refused,
        EXPIRY,
        async || {
            if room.metric(refused) >= 1.0 { Ok(()) } else { Err(room.metrics_text()) }
        },
    )
    .await;
    let peer = found(&world.client, "wan-one", SOON).await;
    assert_eq!(peer.labels()["discovery.liqo.io/searchdomain"], "company");
    assert_eq!(peer.spec.auth_fingerprint, Some(world.one.fingerprint.to_string()));
    assert_eq!(peers(&world.client).await.len(), 2);
    world.domains.delete("elsewhere", &DeleteParams::default()).await.unwrap();
}

async fn a_server_that_is_away_ends_nothing_at_once(world: &mut World<'_>) {
    world.server.kill();
    let message = world.condition("company", "Ready", "False SearchFailed").await;
    println!("{message}");
    assert_eq!(peers(&world.client).await.len(), 2, "what was found lives on for a while");
    world.server.run();
    world.condition("company", "Ready", "True Searched").await;
}

async fn what_is_not_named_any_more_expires(world: &World<'_>) {
    let two = world.two_clusters(5).replace("@ 5 IN PTR one\n", "");
    world.server.write(ZONE, &two);
    let started = Instant::now();
    gone(&world.client, "wan-one", EXPIRY).await;
    println!("a cluster that is not named any more was gone after {:?}", started.elapsed());
    found(&world.client, "wan-two", SOON).await;
    world.domains.delete("company", &DeleteParams::default()).await.unwrap();
    gone(&world.client, "wan-two", EXPIRY).await;
}

async fn more_clusters_than_a_domain_may_name_are_told(world: &World<'_>) {
    let mut records = world.two_clusters(60);
    for number in 0..400 {
        writeln!(records, "@ 60 IN PTR x{number}").unwrap();
    }
    world.server.write(OTHER_ZONE, &records);
    world.add_domain("crowded", OTHER_ZONE, false).await;
    let message = world.condition("crowded", "RecordsValid", "False BrokenRecords").await;
    println!("{message}");
    assert!(message.contains("more."), "{message}");
    let long = "a".repeat(64);
    world.add_domain(&long, ZONE, false).await;
    world.condition(&long, "Ready", "False NameTooLong").await;
}
