//! Makes it happen: watches fill the index, and the leader writes what the plans miss.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{Namespace, Pod, ResourceQuota};
use k8s_openapi::api::rbac::v1::RoleBinding;
use k8s_openapi::api::scheduling::v1::PriorityClass;
use liqo_api::names::{Identity, REMOTE_TENANT_BINDING};
use liqo_api::{Contract, NamespaceMap, ResourceOffer, ShadowPod, SharingPolicy, fence, labels};
use liqo_kit::health::Checks;
use liqo_kit::lease::Leadership;
use liqo_kit::watch::{Scope, WatchMetrics, WatchStatus, Wire};
use liqo_kit::{Shared, Sink, Supervisor, Watch};
use parking_lot::Mutex;
use tokio::sync::watch;
use tokio::time::Instant;

use crate::fence::{LeaseOnWire, Renewal};
use crate::index::{Bid, Binding, Deal, House, Index, Map, Quota, QuotaOnWire, Space, SpaceOnWire, Tenant};
use crate::metrics::HostingMetrics;
use crate::objects::MADE_HERE;
use crate::pods::{PodFacts, PodOnWire, Priority, Shadow, ShadowOnWire};
use crate::settings::Settings;

mod lead;
mod pods;

/// A watch that heard nothing for so long has lost its server: twice the time after which a living one is heard of.
const STALE_AFTER: Duration = Duration::from_secs(90);

/// The room. Clones share it.
#[derive(Clone)]
pub struct Room(Arc<Inner>);

struct Inner {
    client: kube::Client,
    settings: Settings,
    identity: watch::Receiver<Option<Identity>>,
    index: Shared<Index>,
    metrics: HostingMetrics,
    watches: Mutex<Vec<WatchStatus>>,
    leading: Mutex<Option<Leadership>>,
}

impl Room {
    /// A room for the cluster of `client`, which is who `identity` says.
    pub fn new(
        client: kube::Client,
        settings: Settings,
        identity: watch::Receiver<Option<Identity>>,
    ) -> Self {
        let index: Shared<Index> = Shared::default();
        index.write().limits = settings.limits.clone();
        Self(Arc::new(Inner {
            client,
            settings,
            identity,
            index,
            metrics: HostingMetrics::default(),
            watches: Mutex::default(),
            leading: Mutex::new(None),
        }))
    }

    /// The room's numbers.
    pub fn metrics(&self) -> &HostingMetrics {
        &self.0.metrics
    }

    /// Adds checks: that the watches live. Call it after [`Room::start`].
    pub fn add_checks(&self, checks: &Checks) {
        for status in self.0.watches.lock().iter() {
            checks.add_watch(status, STALE_AFTER);
        }
    }

    /// Starts to watch, in every process.
    pub fn start(&self, supervisor: &Supervisor, metrics: &WatchMetrics) {
        let watching = Watching { room: self, supervisor, metrics };
        watching.papers();
        watching.namespaces();
        watching.pods();
    }
}

/// Starts watches that all feed the same index.
struct Watching<'a> {
    room: &'a Room,
    supervisor: &'a Supervisor,
    metrics: &'a WatchMetrics,
}

impl Watching<'_> {
    fn client(&self) -> kube::Client {
        self.room.0.client.clone()
    }

    fn papers(&self) {
        let client = || self.client();
        let of_peers = format!("{}={}", labels::TENANT_NAMESPACE, labels::TRUE);
        let tenants = Scope::all::<Namespace>().labels(of_peers).metadata_only();
        self.start("tenants", Watch::projected(client(), tenants, |it: SpaceOnWire| Tenant::read(&it)));
        let contracts = Scope::all::<Contract>();
        self.start("contracts", Watch::projected(client(), contracts, |it| Some(Deal::read(&it))));
        let offers = Scope::all::<ResourceOffer>();
        self.start("resourceoffers", Watch::projected(client(), offers, |it| Some(Bid::read(&it))));
        let policies = Scope::all::<SharingPolicy>();
        self.start("sharingpolicies", Watch::projected(client(), policies, |it| Some(House::read(&it))));
        let maps = Scope::all::<NamespaceMap>().labels(format!("{}={}", labels::REPLICATED, labels::TRUE));
        self.start("namespacemaps", Watch::projected(client(), maps, Map::read));
        let classes = Scope::all::<PriorityClass>();
        self.start(
            "priorityclasses",
            Watch::projected(client(), classes, |it: PriorityClass| Priority::read(&it)),
        );
    }

    fn namespaces(&self) {
        let client = || self.client();
        // All of them: a name that is taken is not given to a consumer.
        let all = Scope::all::<Namespace>().metadata_only();
        self.start("namespaces", Watch::projected(client(), all, |it: SpaceOnWire| Space::read(it)));
        let quotas = Scope::all::<ResourceQuota>().labels(MADE_HERE);
        self.start(
            "resourcequotas",
            Watch::projected(client(), quotas, |it: QuotaOnWire| Some(Quota::read(it))),
        );
        let bindings = Scope::all::<RoleBinding>().labels(MADE_HERE).fields(named(REMOTE_TENANT_BINDING));
        self.start("rolebindings", Watch::projected(client(), bindings, |it| Some(Binding::read(it))));
    }

    fn pods(&self) {
        let shadows = Scope::all::<ShadowPod>();
        self.start(
            "shadowpods",
            Watch::projected(self.client(), shadows, |it: ShadowOnWire| Shadow::read(it)),
        );
        let ours = format!("{}={}", labels::MANAGED_BY, labels::MANAGED_BY_SHADOW_POD);
        let pods = Scope::all::<Pod>().labels(ours);
        self.start("pods", Watch::projected(self.client(), pods, |it: PodOnWire| PodFacts::read(it)));
        let clock = self.room.0.settings.clock.clone();
        let leases = Scope::all::<Lease>().fields(named(fence::LEASE));
        let read = move |it: LeaseOnWire| Renewal::read(&it, clock.now(), Instant::now());
        self.start("leases", Watch::projected(self.client(), leases, read));
    }

    fn start<W: Wire, T: Send + 'static>(&self, name: &str, watch: Watch<W, T>)
    where
        Shared<Index>: Sink<T>,
    {
        // Other rooms watch the same kinds.
        let name = format!("hosting-{name}");
        let watch = watch.named(name.clone()).metrics(self.metrics).feed(self.room.0.index.clone());
        self.room.0.watches.lock().push(watch.status());
        self.supervisor.critical(format!("watch of {name}"), |stop| async move {
            watch.run(stop).await;
            Ok::<_, Infallible>(())
        });
    }
}

fn named(name: &str) -> String {
    format!("metadata.name={name}")
}
