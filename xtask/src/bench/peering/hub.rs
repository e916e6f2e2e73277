//! A hub and two dozen clusters that borrow from it, all at once: API servers alone, and managers as plain processes.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use kube::api::PostParams;
use kube::{Api, Client};
use liqo_api::foreign_cluster::{ForeignIdentity, PeeringEnabled};
use liqo_api::names::ClusterId;
use liqo_api::{
    ClusterConfig, DiscoveryType, Fingerprint, ForeignCluster, ForeignClusterSpec, SharingPolicy, labels,
};
use liqo_authentication::tokens::{self, Token};
use liqo_sandbox::{Cluster, ClusterSpec, Options, Place, Sandbox, Sources, Spec, Up};
use serde_json::Value;
use tokio::net::TcpListener;
use tokio::time::{Instant, sleep};

use super::manager::{Manager, until};
use super::objects::{NAMESPACE, in_force, prepare};
use super::{Programs, SANDBOX, is_there, measured};
use crate::bench::measure::{Measurement, Unit};

const HUB: &str = "hub";
/// Nodes of the hub, 32 cores each: enough for everybody.
const NODES: u32 = 8;
const STATE: &str = "/var/lib/liqo-sandbox";

const ALL_PEERED: f64 = 20.0;
const PEER_MEMORY: f64 = 1.0;
const PEER_CONNECTIONS: f64 = 2.0;
/// What nobody can measure: a thousandth of a core.
const PEER_CPU: f64 = 0.001;
/// Not one.
const WRITES: f64 = 0.5;

/// Long enough for lease renewals and watch restarts to have their usual share.
const IDLE_TIME: Duration = Duration::from_secs(60);
/// After a restart, everything that would be written is within this time: several times what a manager needs to be ready.
const QUIET: Duration = Duration::from_secs(10);

/// A sandbox that goes when it is let go of.
struct Clusters {
    place: Place,
    sandbox: Sandbox,
}

/// Where the hub is, for those who call it.
struct Hub<'a> {
    cluster: Cluster<'a>,
    client: Client,
    address: SocketAddr,
    manager: Manager,
    id: ClusterId,
    token: Token,
    fingerprint: Fingerprint,
}

/// One of those who call.
struct Spoke {
    client: Client,
    manager: Manager,
}

/// What the hub's manager costs at one moment, and over a minute.
#[derive(Clone, Copy, Debug)]
struct Cost {
    megabytes: f64,
    connections: f64,
    cores: f64,
}

/// The numbers of the hub.
pub(super) async fn measure(programs: &Programs, peers: usize) -> Result<Vec<Measurement>> {
    is_there(&programs.liqo)?;
    // One more than come at once, for what one alone takes.
    let all = peers + 1;
    eprintln!("  starting a hub and {all} API servers");
    let clusters = Clusters::start(programs, all).await?;
    let hub = Hub::start(programs, &clusters).await?;
    let spokes = start_spokes(programs, &clusters, all).await?;
    let alone = hub.cost().await?;
    eprintln!("  the hub alone: {alone:?}");

    let one = peer(&hub, &spokes[..1], 1).await?;
    let rest = peer(&hub, &spokes[1..], all).await?;
    eprintln!("  one peer: {one:.2} s; {peers} at once: {rest:.2} s");
    let full = hub.cost().await?;
    eprintln!("  the hub with {all} peers: {full:?}");
    let called = connections_to(&hub, &spokes)?;
    let (hub, writes) = restart(programs, hub).await?;
    eprintln!("  a restart of the hub's manager: {} writes {writes:?}", writes.len());
    drop(hub);

    let each = |of: fn(&Cost) -> f64| ((of(&full) - of(&alone)) / all as f64).max(0.0);
    let count = vec![writes.len() as f64];
    let connections = each(|cost| cost.connections) + called;
    Ok(vec![
        measured(
            &format!("a hub and {peers} peers at once, all contracts in force"),
            Unit::Seconds,
            vec![rest],
            Some(ALL_PEERED),
            ("one of them alone", vec![one]),
        )?,
        measured(
            "hub, one more idle peer, memory",
            Unit::Megabytes,
            vec![each(|cost| cost.megabytes)],
            Some(PEER_MEMORY),
            ("its manager without peers", vec![alone.megabytes]),
        )?,
        measured(
            "hub, one more idle peer, connections",
            Unit::Count,
            vec![connections],
            Some(PEER_CONNECTIONS + 0.01),
            ("its manager without peers", vec![alone.connections]),
        )?,
        measured(
            "hub, one more idle peer, CPU",
            Unit::Cores,
            vec![each(|cost| cost.cores)],
            Some(PEER_CPU),
            ("its manager without peers", vec![alone.cores]),
        )?,
        measured(
            &format!("hub, writes of a restart with {all} peers"),
            Unit::Count,
            count,
            Some(WRITES),
            ("contracts that it has", vec![all as f64]),
        )?,
    ])
}

impl Clusters {
    async fn start(programs: &Programs, peers: usize) -> Result<Self> {
        let place = Place::new(STATE, SANDBOX)?;
        liqo_sandbox::down(&place)?;
        let spokes = (1..=peers).map(|number| ClusterSpec::api_only(spoke_name(number)));
        let spec = Spec::new(std::iter::once(ClusterSpec::hollow(HUB, NODES).audited()).chain(spokes));
        // The directory of a version is in that of all of them.
        let cache = programs.kubernetes.parent().context("the programs have no directory")?.to_owned();
        let sources = Sources { cache, ..Sources::default() };
        let options = Options { sources, ..Options::default() };
        let (Up::Started(sandbox) | Up::Running(sandbox)) =
            Sandbox::up(&place, &spec, &options, &|_, _| {}).await?;
        Ok(Self { place, sandbox })
    }

    fn cluster(&self, name: &str) -> Result<Cluster<'_>> {
        Ok(self.sandbox.cluster(name)?)
    }
}

impl Drop for Clusters {
    fn drop(&mut self) {
        if let Err(error) = liqo_sandbox::down(&self.place) {
            eprintln!("bench: cannot remove the sandbox: {error:#}");
        }
    }
}

fn spoke_name(number: usize) -> String {
    format!("spoke-{number:02}")
}

/// Starts a manager for a cluster, which is named like it.
fn start_manager(programs: &Programs, cluster: &Cluster<'_>, address: SocketAddr) -> Result<Manager> {
    let log = programs.out.join(format!("manager-{}.log", cluster.name()));
    let more = [
        format!("--cluster-name={}", cluster.name()),
        format!("--auth-address={address}"),
        // Managers beside each other do not share ports, and nobody asks these.
        "--webhook-address=127.0.0.1:0".to_owned(),
        "--resource-sharing-percentage=90".to_owned(),
        // The lease of one that was killed is not waited for.
        "--lease-duration=3s".to_owned(),
        "--lease-renew-deadline=2s".to_owned(),
        "--lease-retry-period=300ms".to_owned(),
    ];
    Manager::start(&programs.liqo, &cluster.kubeconfig(), log, &more)
}

impl<'a> Hub<'a> {
    async fn start(programs: &Programs, clusters: &'a Clusters) -> Result<Self> {
        let cluster = clusters.cluster(HUB)?;
        let client = cluster.client().await?;
        prepare(&client, &cluster.plan().api_url()).await?;
        share_evenly(&client).await?;
        let address = TcpListener::bind("127.0.0.1:0").await?.local_addr()?;
        let manager = start_manager(programs, &cluster, address)?;
        let id = identity(&client).await?;
        let token =
            until("the hub has no token", async || Ok(tokens::own(&client, NAMESPACE).await?)).await?;
        let fingerprint = until("the hub has no certificate", async || {
            liqo_authentication::own_fingerprint(&client, NAMESPACE).await?.context("none yet")
        })
        .await?;
        Ok(Self { cluster, client, address, manager, id, token, fingerprint })
    }

    async fn cost(&self) -> Result<Cost> {
        let (cpu, started) = (self.manager.cpu_seconds()?, Instant::now());
        sleep(IDLE_TIME).await;
        Ok(Cost {
            megabytes: self.manager.megabytes()?,
            connections: self.manager.connections()?.len() as f64,
            cores: (self.manager.cpu_seconds()? - cpu) / started.elapsed().as_secs_f64(),
        })
    }
}

/// Without a policy, the first who comes would get all there is.
async fn share_evenly(client: &Client) -> Result<()> {
    let share = serde_json::json!({ "share": { "percentage": 90, "perPeerPercentage": 2 } });
    let policy = SharingPolicy::new("evenly", serde_json::from_value(share)?);
    let policies: Api<SharingPolicy> = Api::all(client.clone());
    policies.create(&PostParams::default(), &policy).await?;
    Ok(())
}

/// The ID that a cluster has given itself.
async fn identity(client: &Client) -> Result<ClusterId> {
    let configs: Api<ClusterConfig> = Api::all(client.clone());
    until("the cluster has no identity", async || {
        let config = configs.get("liqo").await?;
        let identity = config.status.and_then(|status| status.cluster_identity).context("none yet")?;
        Ok(identity.cluster_id.parse()?)
    })
    .await
}

async fn start_spokes(programs: &Programs, clusters: &Clusters, peers: usize) -> Result<Vec<Spoke>> {
    let mut spokes = Vec::with_capacity(peers);
    for number in 1..=peers {
        let cluster = clusters.cluster(&spoke_name(number))?;
        let client = cluster.client().await?;
        prepare(&client, &cluster.plan().api_url()).await?;
        let address = TcpListener::bind("127.0.0.1:0").await?.local_addr()?;
        let manager = start_manager(programs, &cluster, address)?;
        spokes.push(Spoke { client, manager });
    }
    for spoke in &spokes {
        identity(&spoke.client).await?;
    }
    Ok(spokes)
}

/// Seconds until all of these have a contract in force, seen from both sides; `expected` are then in force at the hub.
async fn peer(hub: &Hub<'_>, spokes: &[Spoke], expected: usize) -> Result<f64> {
    let started = Instant::now();
    let added = spokes.iter().map(|spoke| add(hub, &spoke.client));
    futures::future::try_join_all(added).await?;
    until("not all contracts are in force at the hub", async || {
        let found = in_force(&hub.client).await?;
        ensure!(found == expected, "{found} of {expected}");
        Ok(())
    })
    .await?;
    let all = spokes.iter().map(|spoke| async {
        until("a spoke has no contract in force", async || match in_force(&spoke.client).await? {
            1 => Ok(()),
            found => bail!("{found}"),
        })
        .await
    });
    futures::future::try_join_all(all).await?;
    Ok(started.elapsed().as_secs_f64())
}

/// What `liqoctl add` writes.
async fn add(hub: &Hub<'_>, client: &Client) -> Result<()> {
    tokens::keep_remote(client, NAMESPACE, &hub.id, &hub.token).await?;
    let spec = ForeignClusterSpec {
        cluster_identity: Some(ForeignIdentity {
            cluster_id: Some(hub.id.to_string()),
            cluster_name: Some(HUB.to_owned()),
        }),
        outgoing_peering_enabled: PeeringEnabled::Yes,
        auth_fingerprint: Some(hub.fingerprint.to_string()),
        ..ForeignClusterSpec::new(format!("https://{}", hub.address))
    };
    let mut cluster = ForeignCluster::new(HUB, spec);
    let labels = BTreeMap::from([
        (labels::DISCOVERY_TYPE.to_owned(), DiscoveryType::Manual.as_label().to_owned()),
        (labels::CLUSTER_ID.to_owned(), hub.id.to_string()),
    ]);
    cluster.metadata.labels = Some(labels);
    let api: Api<ForeignCluster> = Api::all(client.clone());
    api.create(&PostParams::default(), &cluster).await?;
    Ok(())
}

/// Connections that a spoke holds to the hub, on average: to its API server and its authentication service.
fn connections_to(hub: &Hub<'_>, spokes: &[Spoke]) -> Result<f64> {
    let machine = SocketAddr::from((hub.cluster.plan().first_machine().address, 6443));
    let ends = [kernel(machine), kernel(hub.address)];
    let mut all = 0;
    for spoke in spokes {
        all += spoke.manager.connections()?.iter().filter(|end| ends.contains(end)).count();
    }
    Ok(all as f64 / spokes.len() as f64)
}

/// An address as /proc/net/tcp writes it: hexadecimal, the bytes of an IPv4 address from the last to the first.
fn kernel(address: SocketAddr) -> String {
    match address {
        SocketAddr::V4(address) => {
            let [a, b, c, d] = address.ip().octets();
            format!("{d:02X}{c:02X}{b:02X}{a:02X}:{:04X}", address.port())
        }
        SocketAddr::V6(_) => String::new(),
    }
}

/// Kills the hub's manager, starts another, and lists what that one writes, its lease aside.
async fn restart<'a>(programs: &Programs, hub: Hub<'a>) -> Result<(Hub<'a>, Vec<String>)> {
    let Hub { cluster, client, address, manager, id, token, fingerprint } = hub;
    let before = written(&cluster)?.len();
    ensure!(before > 0, "the API server's log does not show what managers write");
    manager.kill()?;
    let manager = start_manager(programs, &cluster, address)?;
    until("the hub does not answer again", async || {
        let trust = liqo_authentication::client::Trust::Fingerprint(fingerprint);
        liqo_authentication::client::identify(&format!("https://{address}"), &trust).await?;
        Ok(())
    })
    .await?;
    manager.says("leading").await?;
    sleep(QUIET).await;
    let writes = written(&cluster)?.split_off(before);
    Ok((Hub { cluster, client, address, manager, id, token, fingerprint }, writes))
}

/// What managers have written at this API server, by its own log.
fn written(cluster: &Cluster<'_>) -> Result<Vec<String>> {
    let log = std::fs::read_to_string(cluster.audit_log()).context("the API server keeps no log")?;
    let events = log.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let ours = events.filter(|event| {
        event["stage"] == "ResponseComplete"
            && event["user"]["username"] == "kubernetes-admin"
            && text(&event["userAgent"]).starts_with("liqo-manager/")
    });
    let writes = ours.filter_map(|event| {
        let (verb, object) = (text(&event["verb"]), &event["objectRef"]);
        let resource = text(&object["resource"]);
        let is_write = matches!(verb.as_str(), "create" | "update" | "patch" | "delete");
        (is_write && resource != "leases").then(|| format!("{verb} {resource}/{}", text(&object["name"])))
    });
    Ok(writes.collect())
}
