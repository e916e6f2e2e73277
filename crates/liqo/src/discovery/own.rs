//! What this cluster's objects say of it: who it is, and where its authentication service is reached.

use std::convert::Infallible;

use k8s_openapi::api::core::v1::{ConfigMap, Service};
use liqo_api::ClusterIdentity;
use liqo_api::cluster_config::{CLUSTER_ID_CONFIG_MAP, CLUSTER_ID_KEY, CLUSTER_NAME_KEY};
use liqo_api::credentials::AUTH_SERVICE;
use liqo_api::names::{Identity, NamespaceName};
use liqo_kit::watch::{Scope, WatchMetrics, WatchStatus, Wire};
use liqo_kit::{Index, Key, Shared, Sink, Supervisor, Watch};

/// What is known.
#[derive(Default)]
pub(super) struct Own {
    pub(super) identity: Option<Identity>,
    pub(super) service: Option<Service>,
}

impl Index<Identity> for Own {
    fn apply(&mut self, _: &Key, identity: Identity) {
        self.identity = Some(identity);
    }

    // Who we are does not change because the note of it is gone for a moment.
    fn delete(&mut self, _: &Key) {}
}

impl Index<Service> for Own {
    fn apply(&mut self, _: &Key, service: Service) {
        self.service = Some(service);
    }

    fn delete(&mut self, _: &Key) {
        self.service = None;
    }
}

/// Starts to watch; returns what the watches say of themselves.
pub(super) fn start(
    own: &Shared<Own>,
    client: &kube::Client,
    namespace: &NamespaceName,
    supervisor: &Supervisor,
    metrics: &WatchMetrics,
) -> [WatchStatus; 2] {
    let named = |scope: Scope, name: &str| scope.fields(format!("metadata.name={name}"));
    let identity = Watch::projected(
        client.clone(),
        named(Scope::namespaced::<ConfigMap>(namespace.as_str()), CLUSTER_ID_CONFIG_MAP),
        |map: ConfigMap| read(&map),
    );
    let service = Watch::<Service>::new(
        client.clone(),
        named(Scope::namespaced::<Service>(namespace.as_str()), AUTH_SERVICE),
    );
    [watch(own, identity, supervisor, metrics), watch(own, service, supervisor, metrics)]
}

fn watch<W: Wire, T: Send + 'static>(
    own: &Shared<Own>,
    watch: Watch<W, T>,
    supervisor: &Supervisor,
    metrics: &WatchMetrics,
) -> WatchStatus
where
    Shared<Own>: Sink<T>,
{
    let watch = watch.metrics(metrics).feed(own.clone());
    let status = watch.status();
    supervisor.critical(format!("watch of {}", status.name()), |stop| async move {
        watch.run(stop).await;
        Ok::<_, Infallible>(())
    });
    status
}

/// Who the ConfigMap says that this cluster is.
fn read(map: &ConfigMap) -> Option<Identity> {
    let value = |key: &str| map.data.as_ref().and_then(|data| data.get(key)).cloned().unwrap_or_default();
    let identity =
        ClusterIdentity { cluster_id: value(CLUSTER_ID_KEY), cluster_name: value(CLUSTER_NAME_KEY) };
    let parsed = identity.parse();
    parsed
        .inspect_err(
            |error| tracing::warn!(%error, "ConfigMap {CLUSTER_ID_CONFIG_MAP} does not tell who this is"),
        )
        .ok()
}
