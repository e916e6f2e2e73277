//! Clusters with the room in them, each in a process of its own as far as the room can tell.

#![allow(dead_code, reason = "each test uses a part of it")]

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicIsize, Ordering};
use std::time::Duration;

use jiff::SignedDuration;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Secret};
use k8s_openapi::api::rbac::v1::{
    ClusterRole, ClusterRoleBinding, PolicyRule, Role, RoleBinding, RoleRef, Subject,
};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{ListParams, ObjectMeta, Patch, PatchParams, PostParams};
use kube::client::{Body, ClientBuilder};
use kube::{Api, ResourceExt};
use liqo_api::foreign_cluster::{PeeringCondition, PeeringConditionType};
use liqo_api::{Fingerprint, ForeignCluster, ForeignClusterSpec};
use liqo_authentication::tokens::{self, Token};
use liqo_authentication::{Clock, Limits, RULES, Room, Settings};
use liqo_identity::{Identity, Wanted};
use liqo_kit::Supervisor;
use liqo_kit::clusters::{ClientConfig, client};
use liqo_kit::lease::{Campaign, LeaseConfig};
use liqo_kit::rbac::Scope;
use liqo_kit::watch::WatchMetrics;
use liqo_kit::write::WriteMetrics;
use liqo_sandbox::{TestCluster, TestSandbox};
use tokio::net::{TcpListener, TcpSocket};
use tokio::sync::watch;
use tokio::time::Instant;

pub(crate) const NAMESPACE: &str = "liqo";
/// Who the rooms are for the API server.
const ROOM: &str = "system:serviceaccount:liqo:liqo-controller-manager";
const DEADLINE: Duration = Duration::from_secs(60);

/// Waits until `check` returns something, and shows what it last said if it does not in time.
pub(crate) async fn eventually<T, F, Fut>(what: &str, mut check: F) -> T
where
    F: FnMut() -> Fut,
    Fut: Future<Output = Result<T, String>>,
{
    let deadline = Instant::now() + DEADLINE;
    loop {
        match check().await {
            Ok(found) => return found,
            Err(state) => assert!(Instant::now() < deadline, "{what}: {state}"),
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// A cluster with an identity, where rooms may be started.
pub(crate) struct House<'a> {
    pub(crate) cluster: TestCluster<'a>,
    pub(crate) client: kube::Client,
    pub(crate) identity: Arc<Identity>,
    pub(crate) address: SocketAddr,
    /// Keeps the address for us also while nobody listens there.
    _reserved: TcpSocket,
    pub(crate) settings: Settings,
    pub(crate) shift: watch::Sender<SignedDuration>,
}

impl<'a> House<'a> {
    pub(crate) async fn new(sandbox: &'a TestSandbox, name: &str) -> Self {
        let cluster = sandbox.cluster(name);
        let client = cluster.client().await;
        install(&client).await;
        let wanted = Wanted { id: None, name: Some(name.parse().unwrap()) };
        let identity = Arc::new(Identity::generate(&wanted).unwrap());
        let (reserved, address) = reserved_address();
        let (shift, clock) = Clock::shifted();
        let settings = Settings {
            api_server: Some(cluster.config().await.cluster_url.to_string()),
            clock,
            ..Settings::new(NAMESPACE.parse().unwrap(), "manager-0")
        };
        Self { cluster, client, identity, address, _reserved: reserved, settings, shift }
    }

    pub(crate) fn limits(&mut self, limits: Limits) {
        self.settings.limits = limits;
    }

    pub(crate) fn url(&self) -> String {
        format!("https://{}", self.address)
    }

    pub(crate) fn id(&self) -> &str {
        self.identity.id.as_str()
    }

    /// Starts the room and leads.
    pub(crate) async fn start(&self) -> Process {
        self.start_with(self.room_client().await).await
    }

    pub(crate) async fn room_client(&self) -> kube::Client {
        client(&self.room_config().await, &ClientConfig::default()).unwrap()
    }

    /// The room may do what it asks for and nothing else.
    async fn room_config(&self) -> kube::Config {
        let mut config = self.cluster.config().await;
        config.auth_info.impersonate = Some(ROOM.to_owned());
        config
    }

    pub(crate) async fn start_with(&self, client: kube::Client) -> Process {
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        let (settings, identity, address) = (self.settings.clone(), Arc::clone(&self.identity), self.address);
        let elector = self.client.clone();
        let (sender, receiver) = tokio::sync::oneshot::channel();
        runtime.spawn(run(client, elector, settings, identity, address, sender));
        let room = receiver.await.unwrap();
        Process { runtime: Some(runtime), room }
    }

    /// The fingerprint of its service, once it answers.
    pub(crate) async fn fingerprint(&self, process: &Process) -> Fingerprint {
        let mut fingerprint = process.room.fingerprint();
        let found = tokio::time::timeout(DEADLINE, fingerprint.wait_for(Option::is_some)).await;
        let found = found.expect("the service has no certificate").unwrap().unwrap();
        eventually("the service answers", || async {
            let trust = liqo_authentication::client::Trust::Fingerprint(found);
            let answer = liqo_authentication::client::identify(&self.url(), &trust).await;
            answer.map(|_| ()).map_err(|error| error.to_string())
        })
        .await;
        found
    }

    pub(crate) async fn own_token(&self) -> Token {
        eventually("own token", || async {
            tokens::own(&self.client, NAMESPACE).await.map_err(|error| error.to_string())
        })
        .await
    }

    pub(crate) fn clusters(&self) -> Api<ForeignCluster> {
        Api::all(self.client.clone())
    }

    pub(crate) fn secrets(&self, namespace: &str) -> Api<Secret> {
        Api::namespaced(self.client.clone(), namespace)
    }

    /// Adds a peer, as `liqoctl add` does.
    pub(crate) async fn add(
        &self,
        name: &str,
        peer: &House<'_>,
        fingerprint: Fingerprint,
        token: Option<&Token>,
    ) {
        if let Some(token) = token {
            tokens::keep_remote(&self.client, NAMESPACE, &peer.identity.id, token).await.unwrap();
        }
        let mut spec = ForeignClusterSpec::new(peer.url());
        spec.auth_fingerprint = Some(fingerprint.to_string());
        spec.cluster_identity = Some(liqo_api::foreign_cluster::ForeignIdentity {
            cluster_id: Some(peer.id().to_owned()),
            cluster_name: None,
        });
        let cluster = ForeignCluster::new(name, spec);
        eventually("add", || async {
            let created = self.clusters().create(&PostParams::default(), &cluster).await;
            created.map(|_| ()).map_err(|error| error.to_string())
        })
        .await;
    }

    pub(crate) async fn condition(&self, name: &str, part: PeeringConditionType) -> Option<PeeringCondition> {
        let cluster = self.clusters().get_opt(name).await.unwrap()?;
        let conditions = cluster.status?.peering_conditions;
        conditions.into_iter().find(|condition| condition.type_ == part)
    }

    /// Waits for the authentication's state: status and reason.
    pub(crate) async fn wait_condition(&self, name: &str, expected: &str) -> PeeringCondition {
        self.wait_part(name, PeeringConditionType::AuthenticationStatus, expected).await
    }

    pub(crate) async fn wait_part(
        &self,
        name: &str,
        part: PeeringConditionType,
        expected: &str,
    ) -> PeeringCondition {
        eventually(&format!("{name} {part:?} {expected}"), || async move {
            let condition = self.condition(name, part).await.ok_or("no condition")?;
            let found = format!("{:?} {}", condition.status, condition.reason);
            if found == expected { Ok(condition) } else { Err(format!("{found}: {}", condition.message)) }
        })
        .await
    }

    /// Our identity at a peer.
    pub(crate) async fn identity_secret(&self, peer: &House<'_>) -> Option<Secret> {
        let secrets: Api<Secret> = Api::all(self.client.clone());
        let selector =
            format!("discovery.liqo.io/local-identity=true,discovery.liqo.io/cluster-id={}", peer.id());
        let found = secrets.list(&ListParams::default().labels(&selector)).await.unwrap();
        assert!(found.items.len() <= 1, "several identities");
        found.items.into_iter().next()
    }

    /// The tenant namespace of a peer.
    pub(crate) async fn tenant(&self, peer: &House<'_>) -> Option<Namespace> {
        let namespaces: Api<Namespace> = Api::all(self.client.clone());
        let selector =
            format!("discovery.liqo.io/tenant-namespace=true,discovery.liqo.io/cluster-id={}", peer.id());
        let found = namespaces.list(&ListParams::default().labels(&selector)).await.unwrap();
        assert!(found.items.len() <= 1, "several tenant namespaces");
        found.items.into_iter().next()
    }

    /// Moves the room's clock.
    pub(crate) fn set_clock(&self, shift: SignedDuration) {
        self.shift.send_replace(shift);
    }
}

pub(crate) fn value(secret: &Secret, key: &str) -> String {
    let data = secret.data.as_ref().unwrap();
    String::from_utf8(data.get(key).unwrap_or_else(|| panic!("no {key}: {:?}", data.keys())).0.clone())
        .unwrap()
}

async fn run(
    client: kube::Client,
    elector: kube::Client,
    settings: Settings,
    identity: Arc<Identity>,
    address: SocketAddr,
    started: tokio::sync::oneshot::Sender<Room>,
) {
    let (_keep, identity) = watch::channel(Some(identity));
    let room = Room::new(client, settings, identity);
    let supervisor = Supervisor::new();
    room.start(&supervisor, &WatchMetrics::default());
    let listener = eventually("listen", || async {
        TcpListener::bind(address).await.map_err(|error| error.to_string())
    })
    .await;
    room.serve(&supervisor, listener);
    let (queue, worker) = room.queue(&WriteMetrics::default());
    let stop = supervisor.stop().clone();
    let config = LeaseConfig {
        earlier_lives: Some("manager-0_".to_owned()),
        ..LeaseConfig::new(NAMESPACE, "liqo-test", format!("manager-0_{}", nanos()))
    };
    let campaign = Campaign::new(elector, config);
    let _ = started.send(room.clone());
    let leading = campaign.run(stop.clone(), |leadership| async move { room.lead(&queue, leadership).await });
    let working = worker.run(stop);
    tokio::join!(leading, working);
}

fn nanos() -> i128 {
    jiff::Timestamp::now().as_nanosecond()
}

/// A room that runs; dropping it kills it.
pub(crate) struct Process {
    runtime: Option<tokio::runtime::Runtime>,
    pub(crate) room: Room,
}

impl Process {
    /// Ends it in the middle of whatever it does.
    pub(crate) fn kill(mut self) {
        self.end();
    }

    fn end(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.end();
    }
}

/// An address that nobody else is given while the socket is there, which does not listen: those who listen share it.
fn reserved_address() -> (TcpSocket, SocketAddr) {
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_reuseaddr(true).unwrap();
    socket.bind(SocketAddr::from(([127, 0, 0, 1], 0))).unwrap();
    let address = socket.local_addr().unwrap();
    (socket, address)
}

/// The kinds and the namespace.
async fn install(client: &kube::Client) {
    let definitions: Api<CustomResourceDefinition> = Api::all(client.clone());
    let params = PatchParams::apply("test").force();
    for definition in liqo_api::crds() {
        definitions.patch(&definition.name_any(), &params, &Patch::Apply(&definition)).await.unwrap();
    }
    let namespaces: Api<Namespace> = Api::all(client.clone());
    let namespace = serde_json::from_value(serde_json::json!({ "metadata": { "name": NAMESPACE } })).unwrap();
    eventually("namespace", || async {
        match namespaces.create(&PostParams::default(), &namespace).await {
            Ok(_) => Ok(()),
            Err(kube::Error::Api(status)) if status.code == 409 => Ok(()),
            Err(error) => Err(error.to_string()),
        }
    })
    .await;
    grant(client).await;
    for definition in liqo_api::crds() {
        eventually(&definition.name_any(), || async {
            let found = definitions.get(&definition.name_any()).await.map_err(|error| error.to_string())?;
            let conditions = found.status.and_then(|status| status.conditions).unwrap_or_default();
            let established = conditions.iter().any(|it| it.type_ == "Established" && it.status == "True");
            established.then_some(()).ok_or_else(|| "not established".to_owned())
        })
        .await;
    }
}

/// Gives the rooms the rights that they ask for.
async fn grant(client: &kube::Client) {
    let policy = |scope: Scope| -> Vec<PolicyRule> {
        let texts = |texts: &[&str]| Some(texts.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>());
        let rules = RULES.iter().filter(|rule| rule.scope == scope);
        rules
            .map(|rule| PolicyRule {
                api_groups: texts(rule.groups),
                resources: texts(rule.resources),
                resource_names: texts(rule.names).filter(|names| !names.is_empty()),
                verbs: texts(rule.verbs).unwrap(),
                ..PolicyRule::default()
            })
            .collect()
    };
    let named = |namespace: Option<&str>| ObjectMeta {
        name: Some("liqo-controller-manager".to_owned()),
        namespace: namespace.map(str::to_owned),
        ..ObjectMeta::default()
    };
    let role = |kind: &str| RoleRef {
        api_group: "rbac.authorization.k8s.io".to_owned(),
        kind: kind.to_owned(),
        name: "liqo-controller-manager".to_owned(),
    };
    let subjects = || {
        Some(vec![Subject {
            kind: "ServiceAccount".to_owned(),
            name: "liqo-controller-manager".to_owned(),
            namespace: Some(NAMESPACE.to_owned()),
            api_group: None,
        }])
    };
    let cluster_role =
        ClusterRole { metadata: named(None), rules: Some(policy(Scope::Cluster)), ..ClusterRole::default() };
    let cluster_binding =
        ClusterRoleBinding { metadata: named(None), role_ref: role("ClusterRole"), subjects: subjects() };
    let here = Some(NAMESPACE);
    let role_here = Role { metadata: named(here), rules: Some(policy(Scope::Namespace)) };
    let binding = RoleBinding { metadata: named(here), role_ref: role("Role"), subjects: subjects() };
    let params = PatchParams::apply("test").force();
    let name = "liqo-controller-manager";
    let cluster_roles: Api<ClusterRole> = Api::all(client.clone());
    cluster_roles.patch(name, &params, &Patch::Apply(&cluster_role)).await.unwrap();
    let cluster_bindings: Api<ClusterRoleBinding> = Api::all(client.clone());
    cluster_bindings.patch(name, &params, &Patch::Apply(&cluster_binding)).await.unwrap();
    let roles: Api<Role> = Api::namespaced(client.clone(), NAMESPACE);
    roles.patch(name, &params, &Patch::Apply(&role_here)).await.unwrap();
    let bindings: Api<RoleBinding> = Api::namespaced(client.clone(), NAMESPACE);
    bindings.patch(name, &params, &Patch::Apply(&binding)).await.unwrap();
}

/// Waits until Kubernetes has put its authority into Liqo's namespace.
pub(crate) async fn wait_root_ca(client: &kube::Client) {
    let maps: Api<ConfigMap> = Api::namespaced(client.clone(), NAMESPACE);
    eventually("kube-root-ca.crt", || async {
        let found = maps.get_opt("kube-root-ca.crt").await.map_err(|error| error.to_string())?;
        found.map(|_| ()).ok_or_else(|| "missing".to_owned())
    })
    .await;
}

/// A client that is cut off after so many writes: the last one is made, and nobody learns it.
#[derive(Clone)]
pub(crate) struct Fuse {
    left: Arc<AtomicIsize>,
    blown: watch::Sender<bool>,
    /// Where they went.
    written: watch::Sender<Vec<String>>,
}

impl Fuse {
    pub(crate) fn after(writes: isize) -> Self {
        let (blown, written) = (watch::Sender::new(false), watch::Sender::default());
        Self { left: Arc::new(AtomicIsize::new(writes)), blown, written }
    }

    /// What was written to, once for each time, in order of the names. A write that meets with a conflict changed nothing and is
    /// made again.
    pub(crate) fn written(&self) -> Vec<String> {
        let mut written = self.written.borrow().clone();
        written.sort();
        written
    }

    pub(crate) fn is_blown(&self) -> bool {
        *self.blown.borrow()
    }

    pub(crate) async fn blown(&self) {
        let _ = self.blown.subscribe().wait_for(|blown| *blown).await;
    }

    pub(crate) async fn client(&self, house: &House<'_>) -> kube::Client {
        let fuse = self.clone();
        let layer = tower::layer::layer_fn(move |inner| Fused { inner, fuse: fuse.clone() });
        ClientBuilder::try_from(house.room_config().await).unwrap().with_layer(&layer).build()
    }
}

#[derive(Clone)]
pub(crate) struct Fused<S> {
    inner: S,
    fuse: Fuse,
}

impl<S, B> tower::Service<http::Request<Body>> for Fused<S>
where
    S: tower::Service<http::Request<Body>, Response = http::Response<B>> + Send + 'static,
    S::Future: Send,
    B: Send + 'static,
    S::Error: Send,
{
    type Response = S::Response;
    type Error = S::Error;
    type Future = std::pin::Pin<Box<dyn Future<Output = Result<S::Response, S::Error>> + Send>>;

    fn poll_ready(&mut self, context: &mut std::task::Context<'_>) -> std::task::Poll<Result<(), S::Error>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: http::Request<Body>) -> Self::Future {
        let writes = request.method() != http::Method::GET;
        let fuse = self.fuse.clone();
        if fuse.is_blown() {
            return Box::pin(std::future::pending());
        }
        let nth = if writes { fuse.left.fetch_sub(1, Ordering::SeqCst) } else { isize::MAX };
        if writes && nth <= 0 {
            return Box::pin(std::future::pending());
        }
        let path = request.uri().path().to_owned();
        if writes {
            fuse.written.send_modify(|written| written.push(path.clone()));
        }
        let answer = self.inner.call(request);
        Box::pin(async move {
            let answer = answer.await;
            let refused = matches!(&answer, Ok(answer) if answer.status() == http::StatusCode::CONFLICT);
            if writes && refused {
                fuse.written.send_modify(|written| {
                    written.iter().position(|it| *it == path).map(|index| written.remove(index));
                });
            }
            if nth == 1 {
                fuse.blown.send_replace(true);
                return std::future::pending().await;
            }
            answer
        })
    }
}
