//! Makes it happen: watches fill the index, any process answers other clusters, and the leader writes and calls.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::Arc;

use k8s_openapi::api::certificates::v1::CertificateSigningRequest;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Secret};
use k8s_openapi::api::rbac::v1::{Role, RoleBinding};
use liqo_api::{Fingerprint, ForeignCluster, SearchDomain, labels};
use liqo_identity::Identity;
use liqo_kit::lease::Leadership;
use liqo_kit::serve::{Certificates, ClientAuth, serve, tls_config};
use liqo_kit::watch::{Scope, WatchMetrics, WatchStatus, Wire};
use liqo_kit::write::Target;
use liqo_kit::{Shared, Sink, Supervisor, Watch};
use parking_lot::Mutex;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::Settings;
use crate::certificate::Serving;
use crate::index::{Held, HouseConfigMap, HouseSecret, Index, Joins, PeerBinding, PeerRole, Signing, Tenant};
use crate::metrics::AuthenticationMetrics;
use crate::serving::execute::Executor;
use crate::serving::http::{Service, serve_config};

mod check;
mod lead;

/// The room. Clones share it.
#[derive(Clone)]
pub struct Room(Arc<Inner>);

struct Inner {
    client: kube::Client,
    settings: Settings,
    identity: watch::Receiver<Option<Arc<Identity>>>,
    index: Shared<Index>,
    metrics: AuthenticationMetrics,
    watches: Mutex<Vec<WatchStatus>>,
    leading: Mutex<Option<Leadership>>,
    /// Events that were made lately, as no watch tells of them.
    reported: Mutex<VecDeque<Target>>,
    fingerprint: watch::Sender<Option<Fingerprint>>,
}

/// Secrets of this type are large, many and nobody's business here.
const NOT_HELM: &str = "type!=helm.sh/release.v1";

impl Room {
    /// A room for the cluster of `client`, which is who `identity` says.
    pub fn new(
        client: kube::Client,
        settings: Settings,
        identity: watch::Receiver<Option<Arc<Identity>>>,
    ) -> Self {
        Self(Arc::new(Inner {
            client,
            metrics: AuthenticationMetrics::new(settings.clock.clone()),
            settings,
            identity,
            index: Shared::default(),
            watches: Mutex::default(),
            leading: Mutex::new(None),
            reported: Mutex::default(),
            fingerprint: watch::Sender::new(None),
        }))
    }

    /// The room's numbers.
    pub fn metrics(&self) -> &AuthenticationMetrics {
        &self.0.metrics
    }

    /// The fingerprint of the certificate that the service shows; for those who advertise it.
    pub fn fingerprint(&self) -> watch::Receiver<Option<Fingerprint>> {
        self.0.fingerprint.subscribe()
    }

    /// Starts to watch, in every process.
    pub fn start(&self, supervisor: &Supervisor, metrics: &WatchMetrics) {
        let namespace = self.0.settings.namespace.as_str();
        let client = || self.0.client.clone();
        let of_peers = format!("{}={}", labels::TENANT_NAMESPACE, labels::TRUE);
        let identities = format!("{}={}", labels::LOCAL_IDENTITY, labels::TRUE);
        let requests = format!("{}={}", labels::REMOTE_TENANT_CSR, labels::TRUE);
        let watching = Watching { room: self, supervisor, metrics };
        watching
            .start("foreignclusters", Watch::<ForeignCluster>::new(client(), Scope::all::<ForeignCluster>()));
        watching.start(
            "searchdomains",
            Watch::projected(client(), Scope::all::<SearchDomain>(), |domain: SearchDomain| {
                Some(Joins(domain.spec.autojoin))
            }),
        );
        watching.start(
            "namespaces",
            Watch::projected(client(), Scope::all::<Namespace>().labels(of_peers), |namespace: Namespace| {
                Tenant::read(&namespace)
            }),
        );
        watching.start(
            "secrets",
            Watch::projected(client(), Scope::all::<Secret>().labels(identities), |secret: Secret| {
                Held::read(&secret)
            }),
        );
        watching.start(
            "secrets-of-liqo",
            Watch::projected(
                client(),
                Scope::namespaced::<Secret>(namespace).fields(NOT_HELM),
                |secret: Secret| HouseSecret::read(&secret),
            ),
        );
        watching.start(
            "configmaps",
            Watch::projected(client(), Scope::namespaced::<ConfigMap>(namespace), |map: ConfigMap| {
                HouseConfigMap::read(&map)
            }),
        );
        watching.start(
            "roles",
            Watch::projected(client(), Scope::all::<Role>().labels(labels::CLUSTER_ID), |role: Role| {
                PeerRole::read(&role)
            }),
        );
        watching.start(
            "rolebindings",
            Watch::projected(
                client(),
                Scope::all::<RoleBinding>().labels(labels::CLUSTER_ID),
                |binding: RoleBinding| PeerBinding::read(&binding),
            ),
        );
        watching.start(
            "certificatesigningrequests",
            Watch::projected(
                client(),
                Scope::all::<CertificateSigningRequest>().labels(requests),
                |request: CertificateSigningRequest| Some(Signing::read(&request)),
            ),
        );
    }

    /// Answers other clusters on `listener`, in every process, from when there is a certificate to show.
    pub fn serve(&self, supervisor: &Supervisor, listener: TcpListener) {
        let room = self.clone();
        supervisor.critical("authentication service", |stop| async move {
            // Only when stopping does this end before there is a certificate.
            let Some(serving) = stop.run_until_cancelled(room.certificate()).await else {
                return Ok(());
            };
            room.serve_with(&serving, listener, stop).await
        });
    }

    async fn serve_with(
        &self,
        serving: &Serving,
        listener: TcpListener,
        stop: CancellationToken,
    ) -> Result<(), String> {
        let certificates =
            Certificates::from_pem(&serving.chain, &serving.key).map_err(|error| error.to_string())?;
        let tls = tls_config(certificates.clone(), &ClientAuth::None).map_err(|error| error.to_string())?;
        // Callers make one request; what HTTP/2 is for, nobody needs here, and hostile callers would use.
        let mut tls = rustls::ServerConfig::clone(&tls);
        tls.alpn_protocols = vec![b"http/1.1".to_vec()];
        let settings = self.0.settings.clone();
        let config = serve_config(&settings.limits);
        let executor = Executor { client: self.0.client.clone(), index: self.0.index.clone(), settings };
        let watches = self.0.watches.lock().clone();
        let service = Service::new(executor, self.0.identity.clone(), watches, self.0.metrics.clone());
        let router = Arc::new(service).router();
        self.0.fingerprint.send_replace(Some(serving.fingerprint));
        tracing::info!(fingerprint = %serving.fingerprint, "the authentication service answers");
        let served = serve(listener, Some(Arc::new(tls)), router, config, stop.clone());
        let followed = self.follow(serving.clone(), certificates, stop);
        tokio::join!(served, followed);
        Ok(())
    }

    /// The first usable certificate.
    async fn certificate(&self) -> Serving {
        let mut changes = self.0.index.subscribe();
        loop {
            changes.borrow_and_update();
            let serving = self.0.index.read().serving.clone();
            if let Some(serving) = serving
                && Certificates::from_pem(&serving.chain, &serving.key).is_ok()
            {
                return serving;
            }
            // The index lives as long as the room, which holds the sender.
            let _ = changes.changed().await;
        }
    }

    /// Shows another certificate when there is one.
    async fn follow(&self, mut shown: Serving, certificates: Certificates, stop: CancellationToken) {
        let mut changes = self.0.index.subscribe();
        loop {
            changes.borrow_and_update();
            let serving = self.0.index.read().serving.clone();
            // The same certificate may get another chain, or its key after a wrong one.
            if let Some(serving) = serving.filter(|serving| !serving.shows_the_same(&shown)) {
                match certificates.replace(&serving.chain, &serving.key) {
                    Ok(()) => {
                        tracing::info!(fingerprint = %serving.fingerprint, "the service shows another certificate");
                        self.0.fingerprint.send_replace(Some(serving.fingerprint));
                    }
                    Err(error) => tracing::warn!(%error, "the service goes on showing the old certificate"),
                }
                shown = serving;
            }
            tokio::select! {
                () = stop.cancelled() => return,
                _ = changes.changed() => {}
            }
        }
    }
}

/// Starts watches that all feed the same index.
struct Watching<'a> {
    room: &'a Room,
    supervisor: &'a Supervisor,
    metrics: &'a WatchMetrics,
}

impl Watching<'_> {
    fn start<W: Wire, T: Send + 'static>(&self, name: &str, watch: Watch<W, T>)
    where
        Shared<Index>: Sink<T>,
    {
        // Other rooms watch the same kinds.
        let name = format!("authentication-{name}");
        let watch = watch.named(name.clone()).metrics(self.metrics).feed(self.room.0.index.clone());
        self.room.0.watches.lock().push(watch.status());
        self.supervisor.critical(format!("watch of {name}"), |stop| async move {
            watch.run(stop).await;
            Ok::<_, Infallible>(())
        });
    }
}
