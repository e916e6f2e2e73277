//! Two clusters as users have them, liqo in pods with the chart's own rights: found on the local network, reached where they
//! say, and nothing changes when their managers are replaced.
//!
//! Needs `make image`.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that cannot go on has failed"
)]

// One way to run a name server is enough.
#[path = "../../discovery/tests/support/dns.rs"]
mod dns;

use std::net::{IpAddr, UdpSocket};
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use dns::NameServer;
use kube::Api;
use kube::ResourceExt;
use kube::api::ListParams;
use liqo_api::Contract;
use liqo_api::contract::ContractPhase;
use liqo_authentication::client::{Authorities, Trust, identify};
use liqo_sandbox::{ClusterSpec, TestCluster, TestSandbox, testing};
use serde_json::{Value, json};
use tokio::time::Instant;

const BASE: &str = "/var/lib/liqo-sandbox-tests";
const CONSUMER: &str = "consumer";
const PROVIDER: &str = "provider";
/// A domain that names clusters.
const ZONE: &str = "liqo.test";
/// All pods of liqo.
const OURS: &str = "app.kubernetes.io/part-of=liqo-rs";
/// A machine may be ten times busier than ours.
const SOON: Duration = Duration::from_secs(60);

struct World {
    sandbox: TestSandbox,
}

#[tokio::test(flavor = "multi_thread")]
async fn two_clusters_with_liqo_in_pods_find_each_other_and_outlive_their_managers() {
    // Fails here rather than in the middle.
    testing::product_image();
    let sandbox = TestSandbox::start([ClusterSpec::real(CONSUMER, 1), ClusterSpec::real(PROVIDER, 1)]).await;
    let world = World { sandbox };
    for cluster in [CONSUMER, PROVIDER] {
        world.install(cluster, &["discovery.config.autojoin=false"]);
    }

    they_find_each_other_and_wait_to_be_told(&world).await;
    the_service_answers_where_status_says(&world).await;
    a_pasted_command_leads_to_a_contract(&world).await;
    a_manager_that_is_replaced_changes_nothing(&world).await;
    the_rights_of_the_chart_are_enough(&world);
    strangers_that_find_each_other_peer_by_themselves(&world).await;
    the_rights_of_the_chart_are_enough(&world);
    strangers_that_a_search_domain_names_peer_by_themselves(&world).await;
    the_rights_of_the_chart_are_enough(&world);
}

/// By the local network alone, and without peering: nobody said that they should.
async fn they_find_each_other_and_wait_to_be_told(world: &World) {
    for (cluster, other) in [(CONSUMER, PROVIDER), (PROVIDER, CONSUMER)] {
        let found = format!("foreigncluster/{}", world.known(cluster, other).await);
        let label = "jsonpath={.metadata.labels.discovery\\.liqo\\.io/discovery-type}";
        assert_eq!(world.kubectl(cluster, &["get", &found, "-o", label]), "LAN");
        let status = world.json(cluster, &["status", "-o", "json"]);
        assert_eq!(status["localNetwork"], json!({ "discovery": true, "advertisement": true }));
        assert_eq!(status["peers"][0]["outgoing"], "None", "{status:#}");
        assert!(world.contracts(cluster).await.is_empty());
    }
}

/// From this machine by the node's port, and from within the cluster by the Service.
async fn the_service_answers_where_status_says(world: &World) {
    for cluster in [CONSUMER, PROVIDER] {
        let status = world.json(cluster, &["status", "-o", "json"]);
        let (url, id) = (text(&status["authUrl"]), text(&status["cluster"]["id"]));
        let added = world.json(cluster, &["generate-add-command", "-o", "json"]);
        assert_eq!(text(&added["authURL"]), url, "{added}");
        let fingerprint = text(&added["fingerprint"]).parse().unwrap();
        let answer = identify(&url, &Trust::Fingerprint(fingerprint)).await.unwrap();
        assert_eq!((answer.identity.id.as_str(), answer.identity.name.as_str()), (id.as_str(), cluster));
        assert_eq!(answer.fingerprint, Some(fingerprint));
        assert!(
            identify(&url, &Trust::Authorities(Authorities::default())).await.is_err(),
            "nobody vouches for it"
        );

        let path = "/api/v1/namespaces/liqo/services/https:liqo-auth:https/proxy/ids";
        let inside: Value = serde_json::from_str(&world.kubectl(cluster, &["get", "--raw", path])).unwrap();
        assert_eq!(text(&inside["clusterId"]), id);

        // What the same question is from another pod of the cluster: the Service's address, and the pod's own.
        let service = world.kubectl(
            cluster,
            &["-n", "liqo", "get", "service", "liqo-auth", "-o", "jsonpath={.spec.clusterIP}"],
        );
        let said = inside_node(world.cluster(cluster), &["curl", "-sSk", &format!("https://{service}/ids")]);
        assert!(said.contains(&id), "{said}");
        let found = world.run(cluster, &["check"]);
        let lines = String::from_utf8_lossy(&found.stdout).into_owned();
        assert!(found.status.success() && lines.contains(&url), "{lines}");
    }
}

async fn a_pasted_command_leads_to_a_contract(world: &World) {
    let command = world.ok(PROVIDER, &["generate-add-command", "--only-command"]);
    let words: Vec<&str> = command.split_whitespace().collect();
    assert_eq!(words[..2], ["liqoctl", "add"], "{command}");
    let started = Instant::now();
    world.ok(CONSUMER, &words[1..]);
    println!("liqoctl add until the contract is in force: {:?}", started.elapsed());
    let (here, there) = (world.in_force(CONSUMER).await, world.in_force(PROVIDER).await);
    assert_eq!(here.name_any(), there.name_any());
    assert_eq!(here.status.unwrap().agreed, there.status.unwrap().agreed);
    world.wait_condition(CONSUMER, PROVIDER, "OutgoingPeering", "Established").await;
    world.wait_condition(PROVIDER, CONSUMER, "IncomingPeering", "Established").await;
    let peer = world.ok(CONSUMER, &["status", "peer", PROVIDER]);
    assert!(peer.contains(&here.metadata.name.unwrap()), "{peer}");
    // Twice is once.
    world.ok(CONSUMER, &words[1..]);
}

async fn a_manager_that_is_replaced_changes_nothing(world: &World) {
    let before = world.at_rest().await;
    for cluster in [CONSUMER, PROVIDER] {
        world.kubectl(cluster, &["-n", "liqo", "delete", "pod", "-l", OURS, "--wait"]);
        for deployment in ["deployment/liqo-controller-manager", "deployment/liqo-discovery"] {
            world.kubectl(cluster, &["-n", "liqo", "rollout", "status", deployment, "--timeout=60s"]);
        }
    }
    world.wait_condition(CONSUMER, PROVIDER, "OutgoingPeering", "Established").await;
    let after = (world.in_force(CONSUMER).await, world.in_force(PROVIDER).await);
    assert_eq!(before.0.resource_version(), after.0.resource_version());
    assert_eq!(before.1.resource_version(), after.1.resource_version());
}

/// Nothing that the manager tried was forbidden.
fn the_rights_of_the_chart_are_enough(world: &World) {
    for cluster in [CONSUMER, PROVIDER] {
        let log = world.kubectl(cluster, &["-n", "liqo", "logs", "deployment/liqo-controller-manager"]);
        // Nobody may make anything in a namespace that is going, which is no matter of rights.
        let going = "because it is being terminated";
        let forbidden: Vec<&str> =
            log.lines().filter(|line| line.contains("forbidden") && !line.contains(going)).collect();
        assert!(forbidden.is_empty(), "{cluster}:\n{}", forbidden.join("\n"));
    }
}

/// The provider asks for no token, and the consumer joins whom it finds: nobody types anything about the other.
async fn strangers_that_find_each_other_peer_by_themselves(world: &World) {
    // Made anew, it is another cluster, which the provider has never heard of.
    world.ok(CONSUMER, &["uninstall", "--purge", "--yes"]);
    world.install(PROVIDER, &["auth.config.enableAuthentication=false", "discovery.config.autojoin=false"]);
    world.install(CONSUMER, &["discovery.config.autojoin=true"]);
    let here = world.in_force(CONSUMER).await;
    // That of the cluster that is gone may be the only one for a moment.
    eventually("the provider has the same contract in force", async || {
        let there = world.in_force(PROVIDER).await;
        if there.name_any() == here.name_any() { Ok(()) } else { Err(format!("{there:#?}")) }
    })
    .await;
    let annotation = "jsonpath={.items[*].metadata.annotations.authentication\\.liqo\\.io/admitted-by}";
    let tenants = ["get", "namespaces", "-l", "discovery.liqo.io/tenant-namespace=true", "-o", annotation];
    let by = world.kubectl(PROVIDER, &tenants);
    assert!(by.split_whitespace().any(|by| by == "open"), "{by}");
}

/// The same, by the records of a name server alone: the local network is not asked.
async fn strangers_that_a_search_domain_names_peer_by_themselves(world: &World) {
    world.ok(CONSUMER, &["uninstall", "--purge", "--yes"]);
    let server = NameServer::start_at(address_towards(&world.cluster(PROVIDER)).await, &[ZONE]);
    server.write(ZONE, &world.records(PROVIDER));
    world.forward(CONSUMER, &server);
    world.ok(CONSUMER, &["install", "sandbox"]);
    let domain = json!({ "apiVersion": "discovery.liqo.io/v1alpha1", "kind": "SearchDomain",
        "metadata": { "name": "partners" }, "spec": { "domain": ZONE, "autojoin": true } });
    let applied = world.cluster(CONSUMER).kubectl_apply(&domain.to_string());
    assert!(applied.status.success(), "{applied:?}");

    let here = world.in_force(CONSUMER).await;
    eventually("the provider has the same contract in force", async || {
        let there = world.in_force(PROVIDER).await;
        if there.name_any() == here.name_any() {
            Ok(())
        } else {
            Err(format!("{there:#?}\n{}", server.log()))
        }
    })
    .await;
    let found = format!("foreigncluster/{}", world.known(CONSUMER, PROVIDER).await);
    let labels = world.kubectl(CONSUMER, &["get", &found, "-o", "jsonpath={.metadata.labels}"]);
    let labels: Value = serde_json::from_str(&labels).unwrap();
    assert_eq!(labels["discovery.liqo.io/discovery-type"], "WAN", "{labels}");
    assert_eq!(labels["discovery.liqo.io/searchdomain"], "partners", "{labels}");
}

impl World {
    /// Has the name server of a cluster ask this one about its zone.
    fn forward(&self, cluster: &str, server: &NameServer) {
        let kept = ["-n", "kube-system", "get", "configmap", "coredns", "-o", "jsonpath={.data.Corefile}"];
        let kept = self.kubectl(cluster, &kept);
        let corefile = format!("{kept}\n{ZONE}:53 {{\n    errors\n    forward . {}\n}}\n", server.address);
        let patch = json!({ "data": { "Corefile": corefile } }).to_string();
        let of = ["-n", "kube-system"];
        self.kubectl(cluster, &[&of[..], &["patch", "configmap", "coredns", "-p", &patch]].concat());
        self.kubectl(cluster, &[&of[..], &["rollout", "restart", "deployment/coredns"]].concat());
        let restarted = ["rollout", "status", "deployment/coredns", "--timeout=60s"];
        self.kubectl(cluster, &[&of[..], &restarted].concat());
    }

    /// What a name server has to say about a cluster.
    fn records(&self, cluster: &str) -> String {
        let added = self.json(cluster, &["generate-add-command", "-o", "json"]);
        let url = text(&added["authURL"]);
        let place: http::uri::Authority = url.strip_prefix("https://").unwrap().parse().unwrap();
        let (host, port) = (place.host(), place.port_u16().unwrap_or(443));
        format!(
            "@ 5 IN PTR one\none 5 IN SRV 0 0 {port} auth-one\n\
             one 5 IN TXT \"id={}\" \"fp={}\"\nauth-one 5 IN A {host}\n",
            text(&added["clusterID"]),
            text(&added["fingerprint"])
        )
    }

    fn cluster(&self, name: &str) -> TestCluster<'_> {
        self.sandbox.cluster(name)
    }

    /// The program with this cluster's kubeconfig, as a person has it.
    fn run(&self, cluster: &str, arguments: &[&str]) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_liqoctl"));
        command
            .env("KUBECONFIG", self.cluster(cluster).kubeconfig())
            .env("LIQO_SANDBOX_STATE_DIR", BASE)
            .env("LIQO_SANDBOX_NAME", self.sandbox.sandbox().place().name())
            .env_remove("LIQO_IMAGE_ARCHIVE")
            .stdin(Stdio::null());
        let started = Instant::now();
        let output = command.args(arguments).output().unwrap();
        eprintln!("{cluster}: liqoctl {} took {:.1} s", arguments[0], started.elapsed().as_secs_f64());
        output
    }

    /// Installs liqo with these values, to be found on the local network.
    fn install(&self, cluster: &str, values: &[&str]) {
        let values = values.iter().flat_map(|value| ["--set", value]);
        let arguments = ["install", "sandbox", "--enable-lan-discovery"].into_iter().chain(values);
        self.ok(cluster, &arguments.collect::<Vec<_>>());
    }

    fn ok(&self, cluster: &str, arguments: &[&str]) -> String {
        let output = self.run(cluster, arguments);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{cluster}: liqoctl {}: {}\n{said}", arguments[0], output.status);
        String::from_utf8(output.stdout).unwrap()
    }

    fn json(&self, cluster: &str, arguments: &[&str]) -> Value {
        serde_json::from_str(&self.ok(cluster, arguments)).unwrap()
    }

    fn kubectl(&self, cluster: &str, arguments: &[&str]) -> String {
        let output = self.cluster(cluster).kubectl(arguments);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{cluster}: kubectl {arguments:?}: {said}");
        String::from_utf8(output.stdout).unwrap()
    }

    /// The name under which a cluster knows another, once it does.
    async fn known(&self, cluster: &str, other: &str) -> String {
        eventually("it is known", async || {
            let all = self.kubectl(cluster, &["get", "foreignclusters", "-o", "json"]);
            let all: Value = serde_json::from_str(&all).unwrap();
            let mut items = all["items"].as_array().unwrap().iter();
            let found = items.find(|item| item["spec"]["clusterIdentity"]["clusterName"] == other);
            found.map(|item| text(&item["metadata"]["name"])).ok_or_else(|| format!("{cluster}: {all:#}"))
        })
        .await
    }

    /// Waits for a condition of a ForeignCluster.
    async fn wait_condition(&self, cluster: &str, peer: &str, kind: &str, status: &str) {
        let condition =
            format!("--for=jsonpath={{.status.peeringConditions[?(@.type==\"{kind}\")].status}}={status}");
        let peer = format!("foreigncluster/{}", self.known(cluster, peer).await);
        self.kubectl(cluster, &["wait", &condition, &peer, "--timeout=60s"]);
    }

    async fn contracts(&self, cluster: &str) -> Vec<Contract> {
        let api: Api<Contract> = Api::all(self.cluster(cluster).client().await);
        api.list(&ListParams::default()).await.unwrap().items
    }

    /// The one contract that is in force.
    async fn in_force(&self, cluster: &str) -> Contract {
        eventually("a contract is in force", async || {
            let all = self.contracts(cluster).await;
            let mut live = all.iter().filter(|contract| phase(contract) == ContractPhase::Active);
            match (live.next(), live.next()) {
                (Some(contract), None) => Ok(contract.clone()),
                _ => Err(format!("{cluster}: {all:#?}")),
            }
        })
        .await
    }

    /// The contract in force on both sides, once nobody has written to it for a while.
    async fn at_rest(&self) -> (Contract, Contract) {
        const QUIET: Duration = Duration::from_secs(3);
        let look = async || (self.in_force(CONSUMER).await, self.in_force(PROVIDER).await);
        let versions = |it: &(Contract, Contract)| (it.0.resource_version(), it.1.resource_version());
        let deadline = Instant::now() + SOON;
        let (mut now, mut since) = (look().await, Instant::now());
        while since.elapsed() < QUIET {
            tokio::time::sleep(Duration::from_millis(200)).await;
            let next = look().await;
            if versions(&next) != versions(&now) {
                assert!(Instant::now() < deadline, "it is written again and again: {next:#?}");
                since = Instant::now();
            }
            now = next;
        }
        now
    }
}

/// Where this machine is for the pods of a cluster.
async fn address_towards(cluster: &TestCluster<'_>) -> IpAddr {
    let url = cluster.config().await.cluster_url;
    let socket = UdpSocket::bind("0.0.0.0:0").unwrap();
    socket.connect((url.host().unwrap(), url.port_u16().unwrap_or(6443))).unwrap();
    socket.local_addr().unwrap().ip()
}

fn phase(contract: &Contract) -> ContractPhase {
    contract.status.as_ref().map(|status| status.phase).unwrap_or_default()
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_else(|| panic!("{value} is no text")).to_owned()
}

/// Runs a program of this machine in the network of the cluster's node, where Services have their addresses.
fn inside_node(cluster: TestCluster<'_>, command: &[&str]) -> String {
    let output = cluster.exec_command(1, command).unwrap().output().unwrap();
    assert!(output.status.success(), "{command:?}: {output:?}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

async fn eventually<T>(what: &str, look: impl AsyncFn() -> Result<T, String>) -> T {
    let deadline = Instant::now() + SOON;
    loop {
        match look().await {
            Ok(found) => return found,
            Err(state) if Instant::now() > deadline => panic!("not within {SOON:?}: {what}; now: {state}"),
            Err(_) => tokio::time::sleep(Duration::from_millis(50)).await,
        }
    }
}
