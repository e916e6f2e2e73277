//! Makes it happen: watches fill the index, the judgement is published, and the leader writes what is missing.

use std::convert::Infallible;
use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use liqo_api::ClusterConfig;
use liqo_api::cluster_config::{CLUSTER_CONFIG, CLUSTER_ID_CONFIG_MAP, IDENTITY_SECRET};
use liqo_kit::lease::Leadership;
use liqo_kit::watch::{Scope, WatchMetrics, WatchStatus, Wire};
use liqo_kit::{Shared, Sink, Supervisor, Watch};
use parking_lot::Mutex;
use tokio::sync::watch;

use crate::Settings;
use crate::identity::Identity;
use crate::index::{Index, Kept, Published, SecretOnWire, Told};
use crate::metrics::IdentityMetrics;
use crate::plan::{Verdict, judge};

mod check;
mod lead;
mod writes;

/// The room. Clones share it.
#[derive(Clone)]
pub struct Room(Arc<Inner>);

struct Inner {
    client: kube::Client,
    settings: Settings,
    index: Shared<Index>,
    identity: watch::Sender<Option<Arc<Identity>>>,
    metrics: IdentityMetrics,
    watches: Mutex<Vec<WatchStatus>>,
    leading: Mutex<Option<Leading>>,
}

/// The time in which this process leads.
struct Leading {
    leadership: Leadership,
    /// Whether everything was as it should be at least once in this time.
    settled: bool,
}

impl Room {
    /// A room for the cluster of `client`.
    pub fn new(client: kube::Client, settings: Settings) -> Self {
        Self(Arc::new(Inner {
            client,
            settings,
            index: Shared::default(),
            identity: watch::Sender::new(None),
            metrics: IdentityMetrics::default(),
            watches: Mutex::default(),
            leading: Mutex::new(None),
        }))
    }

    /// The identity while it is established; `None` before, and when it is lost or refused.
    pub fn identity(&self) -> watch::Receiver<Option<Arc<Identity>>> {
        self.0.identity.subscribe()
    }

    /// The room's numbers.
    pub fn metrics(&self) -> &IdentityMetrics {
        &self.0.metrics
    }

    /// Starts to watch and to judge, in every process; writing is for the leader, see [`Room::lead`].
    pub fn start(&self, supervisor: &Supervisor, metrics: &WatchMetrics) {
        let namespace = self.0.settings.namespace.as_str();
        let client = &self.0.client;
        let named = |scope: Scope, name: &str| scope.fields(format!("metadata.name={name}"));
        let secrets = Watch::projected(
            client.clone(),
            named(Scope::namespaced::<Secret>(namespace), IDENTITY_SECRET),
            |object: SecretOnWire| Some(Kept::read(&object)),
        );
        let config_maps = Watch::projected(
            client.clone(),
            named(Scope::namespaced::<ConfigMap>(namespace), CLUSTER_ID_CONFIG_MAP),
            |object: ConfigMap| Some(Published::read(&object)),
        );
        let cluster_configs = Watch::projected(
            client.clone(),
            named(Scope::all::<ClusterConfig>(), CLUSTER_CONFIG),
            |object: ClusterConfig| Some(Told::read(object)),
        );
        self.watch(supervisor, metrics, secrets);
        self.watch(supervisor, metrics, config_maps);
        self.watch(supervisor, metrics, cluster_configs);
        let room = self.clone();
        supervisor.critical("identity", |stop| async move {
            stop.run_until_cancelled(room.judge_for_ever()).await;
            Ok::<_, Infallible>(())
        });
    }

    fn watch<W: Wire, T: Send + 'static>(
        &self,
        supervisor: &Supervisor,
        metrics: &WatchMetrics,
        watch: Watch<W, T>,
    ) where
        Shared<Index>: Sink<T>,
    {
        let watch = watch.metrics(metrics).feed(self.0.index.clone());
        let status = watch.status();
        supervisor.critical(format!("watch of {}", status.name()), |stop| async move {
            watch.run(stop).await;
            Ok::<_, Infallible>(())
        });
        self.0.watches.lock().push(status);
    }

    fn judge(&self) -> Verdict {
        judge(&self.0.index.read(), &self.0.settings, Timestamp::now())
    }

    /// Publishes what the objects say, and logs when that changes.
    async fn judge_for_ever(&self) {
        let mut changes = self.0.index.subscribe();
        let mut former = String::new();
        loop {
            changes.borrow_and_update();
            let verdict = self.judge();
            self.0.metrics.show(&verdict);
            self.publish(&verdict);
            let said = in_short(&verdict);
            if said != former {
                log(&verdict, !former.is_empty());
                former = said;
            }
            let late = self.0.index.read().late(Timestamp::now());
            tokio::select! {
                changed = changes.changed() => if changed.is_err() { return },
                () = tokio::time::sleep(late.unwrap_or_default()), if late.is_some() => {}
            }
        }
    }

    fn publish(&self, verdict: &Verdict) {
        let identity = match verdict {
            Verdict::Established(identity) => Some(identity),
            _ => None,
        };
        self.0.identity.send_if_modified(|current| {
            let same = current.as_ref().map(Arc::as_ptr) == identity.map(Arc::as_ptr);
            if !same {
                *current = identity.cloned();
            }
            !same
        });
    }
}

/// What distinguishes one judgement from another.
fn in_short(verdict: &Verdict) -> String {
    match verdict {
        Verdict::Unknown => String::new(),
        Verdict::Missing => "missing".to_owned(),
        Verdict::Established(identity) => format!("{} {}", identity.id, identity.public_key().fingerprint()),
        Verdict::Refused(refusal) => refusal.message.clone(),
    }
}

fn log(verdict: &Verdict, there_was_one: bool) {
    match verdict {
        Verdict::Unknown => {}
        Verdict::Missing if there_was_one => {
            tracing::warn!("the cluster's identity was deleted; it gets a new one");
        }
        Verdict::Missing => tracing::info!("this cluster has no identity yet"),
        Verdict::Established(identity) => tracing::info!(
            cluster_id = %identity.id,
            cluster_name = %identity.name,
            fingerprint = identity.public_key().fingerprint(),
            "the cluster's identity is established"
        ),
        Verdict::Refused(refusal) => {
            tracing::error!(reason = refusal.reason.as_str(), "{}", refusal.message);
        }
    }
}
