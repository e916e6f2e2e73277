//! The doors of a kubelet, for all virtual nodes at once: logs, terminals, tunnels, numbers.
//!
//! ```text
//!  kubectl ──▶ our API server ──▶ doors :10250 ──▶ who asks? may they? whose pod is it?
//!                                     └──▶ the provider's API server: the same request for the pod there
//! ```
//!
//! What is upgraded (exec, attach, port-forward) is not understood here: the same upgrade is asked for there, and bytes
//! are copied both ways. One port serves all nodes, and no request says which node it is for: the pod does.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::{Path, Request, State};
use axum::response::{IntoResponse, Response};
use axum::routing::{any, get};
use http::StatusCode;
use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use liqo_kit::Shared;
use liqo_kit::serve::{ClientAuth, ServeConfig, serve, tls_config};
use liqo_providers::{Link, Providers};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::Settings;
use crate::index::Index;
use crate::metrics::VirtualNodeMetrics;
use callers::{Callers, Shown, User};
use streams::Streams;
use trust::Trust;

mod callers;
mod certificate;
mod query;
mod streams;
mod trust;
mod usage;

pub(crate) use certificate::SIGNER;
pub(crate) use trust::CLIENT_CA;

/// Connections at once; a terminal or a log that is followed holds one.
const CONNECTIONS: usize = 4096;
/// How long requests under way may take when the process ends. Terminals end at once: they have no end of their own.
const DRAIN: Duration = Duration::from_secs(1);
/// How long finding a pod may take.
const LOOK_UP: Duration = Duration::from_secs(10);

/// The doors. Clones share them.
#[derive(Clone)]
pub(crate) struct Doors(Arc<Inner>);

struct Inner {
    client: kube::Client,
    settings: Settings,
    providers: Providers,
    index: Shared<Index>,
    metrics: VirtualNodeMetrics,
    callers: Callers,
    streams: Streams,
    usage: usage::Usage,
}

/// Why a request is not served.
#[derive(Debug)]
pub(crate) struct Refused {
    code: StatusCode,
    why: String,
}

impl Refused {
    fn new(code: StatusCode, why: impl Into<String>) -> Self {
        Self { code, why: why.into() }
    }
}

impl IntoResponse for Refused {
    fn into_response(self) -> Response {
        (self.code, self.why + "\n").into_response()
    }
}

/// A pod at its provider.
struct There {
    link: Link,
    namespace: String,
    pod: String,
}

impl Doors {
    pub(crate) fn new(
        client: kube::Client,
        settings: Settings,
        providers: Providers,
        index: Shared<Index>,
        metrics: VirtualNodeMetrics,
    ) -> Self {
        Self(Arc::new(Inner {
            callers: Callers::new(client.clone()),
            streams: Streams::new(metrics.clone()),
            usage: usage::Usage::default(),
            client,
            settings,
            providers,
            index,
            metrics,
        }))
    }

    /// Answers until `stop`.
    pub(crate) async fn serve(&self, listener: TcpListener, stop: CancellationToken) {
        let Some(address) = self.0.settings.address else {
            tracing::warn!(
                "the pod's address is not known: nobody can ask for logs of pods on virtual nodes"
            );
            stop.cancelled().await;
            return;
        };
        let trust = Trust::default();
        let signing = certificate::Signing {
            client: self.0.client.clone(),
            pod: self.0.settings.pod.clone(),
            address,
            metrics: self.0.metrics.clone(),
        };
        let Some(certificates) = stop.run_until_cancelled(signing.first()).await else { return };
        let tls = match tls_config(certificates.shown.clone(), &ClientAuth::By(Arc::new(trust.clone()))) {
            Ok(tls) => tls,
            Err(error) => {
                tracing::error!(%error, "the doors of virtual nodes cannot be opened");
                stop.cancelled().await;
                return;
            }
        };
        let config = ServeConfig { max_connections: CONNECTIONS, drain: DRAIN, ..ServeConfig::default() };
        let tracker = self.0.streams.tasks().clone();
        let serving = serve(listener, Some(tls), self.router(), config, stop.clone());
        let keeping = async {
            tokio::join!(trust.follow(&self.0.client), signing.renew(certificates));
        };
        tokio::join!(serving, stop.run_until_cancelled(keeping), self.0.streams.run(&stop));
        end(&tracker).await;
    }

    fn router(&self) -> Router {
        Router::new()
            .route("/containerLogs/{namespace}/{pod}/{container}", get(logs))
            .route("/exec/{namespace}/{pod}/{container}", any(exec))
            .route("/exec/{namespace}/{pod}/{uid}/{container}", any(exec_by_uid))
            .route("/attach/{namespace}/{pod}/{container}", any(attach))
            .route("/attach/{namespace}/{pod}/{uid}/{container}", any(attach_by_uid))
            .route("/portForward/{namespace}/{pod}", any(port_forward))
            .route("/portForward/{namespace}/{pod}/{uid}", any(port_forward_by_uid))
            .route("/healthz", get(healthz))
            .route("/pods", get(pods))
            .route("/stats/summary", get(stats))
            .route("/metrics/resource", get(resource_metrics))
            .route("/nodes/{node}/stats/summary", get(stats_of_node))
            .route("/nodes/{node}/metrics/resource", get(resource_metrics_of_node))
            .with_state(self.clone())
    }

    /// Who asks.
    async fn caller(&self, shown: &Shown) -> Result<User, Refused> {
        self.0.callers.identify(shown).await
    }

    /// Where this pod is; whoever may not ask learns nothing about it.
    async fn admit(&self, shown: &Shown, verb: &str, namespace: &str, pod: &str) -> Result<There, Refused> {
        let user = self.caller(shown).await?;
        let found = self.find(namespace, pod).await;
        let node = found.as_ref().map_or("", |(node, _)| node.as_str());
        self.0.callers.allow(&user, verb, &["proxy"], node).await?;
        found.and_then(|(_, there)| there)
    }

    /// The node of a pod here, and the pod there.
    async fn find(&self, namespace: &str, name: &str) -> Result<(String, Result<There, Refused>), Refused> {
        for text in [namespace, name] {
            query::check_name(text)?;
        }
        let pods: Api<Pod> = Api::namespaced(self.0.client.clone(), namespace);
        let found = tokio::time::timeout(LOOK_UP, pods.get_opt(name)).await;
        let busy = |why: String| Refused::new(StatusCode::SERVICE_UNAVAILABLE, why);
        let found = found
            .map_err(|_| busy("the API server does not tell where this pod is".to_owned()))?
            .map_err(|error| busy(format!("the API server does not tell where this pod is: {error}")))?;
        let unknown =
            || Refused::new(StatusCode::NOT_FOUND, format!("there is no pod {name} in {namespace}"));
        let node = found.and_then(|pod| pod.spec?.node_name).ok_or_else(unknown)?;
        let there = self.there(&node, namespace, name);
        Ok((node, there))
    }

    fn there(&self, node: &str, namespace: &str, pod: &str) -> Result<There, Refused> {
        // Of a "not found", the API server would keep the reason to itself.
        let no = |why: String| Refused::new(StatusCode::BAD_REQUEST, why);
        let index = self.0.index.read();
        let cluster = crate::plan::cluster_of(&index, node)
            .ok_or_else(|| no(format!("{pod} in {namespace} is on {node}, which is no virtual node")))?;
        let providers = self.0.providers.current();
        let provider =
            providers.get(cluster).ok_or_else(|| no(format!("nothing is known of {node}'s provider")))?;
        let there = index.remote_namespace(&provider.local_namespace, namespace);
        let there =
            there.ok_or_else(|| no(format!("the namespace {namespace} is not offloaded to {node}")))?;
        let gone = |why: &Arc<str>| {
            Refused::new(StatusCode::BAD_GATEWAY, format!("{node} cannot be reached: {why}"))
        };
        let link = provider.link.clone().map_err(|why| gone(&why))?;
        Ok(There { link, namespace: there.to_owned(), pod: pod.to_owned() })
    }

    /// Asks for the same upgrade there.
    async fn upgrade(
        &self,
        door: &'static str,
        request: Request,
        (namespace, pod): (&str, &str),
        (subresource, container): (&str, Option<&str>),
    ) -> Response {
        let shown = Shown::of(&request);
        let answer = async {
            // Whatever the method: a terminal is made, not read.
            let there = self.admit(&shown, "create", namespace, pod).await?;
            let query = query::of_streams(request.uri().query().unwrap_or_default(), container)?;
            let path = query::path(&there.namespace, &there.pod, subresource, &query);
            self.0.streams.upgrade(request, &there.link, &path).await
        };
        self.answered(door, answer.await)
    }

    async fn stats(&self, shown: &Shown, node: Option<&str>) -> Response {
        let answer = async {
            let user = self.caller(shown).await?;
            self.0.callers.allow(&user, "get", &["stats"], node.unwrap_or_default()).await?;
            Ok(json(&self.summary(node).await?))
        };
        self.answered("stats", answer.await)
    }

    async fn metrics(&self, shown: &Shown, node: Option<&str>) -> Response {
        let answer = async {
            let user = self.caller(shown).await?;
            self.0.callers.allow(&user, "get", &["metrics"], node.unwrap_or_default()).await?;
            let text = self.resource_metrics(node).await?;
            Ok(([(http::header::CONTENT_TYPE, "text/plain; version=0.0.4")], text).into_response())
        };
        self.answered("metrics", answer.await)
    }

    fn answered(&self, door: &'static str, answer: Result<Response, Refused>) -> Response {
        let response = answer.unwrap_or_else(IntoResponse::into_response);
        self.0.metrics.asked(door, response.status().as_u16());
        response
    }
}

/// Lets what was stopped end.
async fn end(tasks: &TaskTracker) {
    tasks.close();
    if tokio::time::timeout(DRAIN, tasks.wait()).await.is_err() {
        tracing::debug!(streams = tasks.len(), "streams did not end in time");
    }
}

type PodPath = Path<(String, String, String)>;
type PodPathWithUid = Path<(String, String, String, String)>;

async fn logs(
    State(doors): State<Doors>,
    Path((namespace, pod, container)): PodPath,
    request: Request,
) -> Response {
    let (shown, asked) = (Shown::of(&request), request.uri().query().unwrap_or_default().to_owned());
    drop(request);
    let answer = async {
        let there = doors.admit(&shown, "get", &namespace, &pod).await?;
        let query = query::of_logs(&asked, &container)?;
        let path = query::path(&there.namespace, &there.pod, "log", &query);
        doors.0.streams.logs(&there.link, &path).await
    };
    doors.answered("logs", answer.await)
}

async fn exec(
    State(doors): State<Doors>,
    Path((namespace, pod, container)): PodPath,
    request: Request,
) -> Response {
    doors.upgrade("exec", request, (&namespace, &pod), ("exec", Some(&container))).await
}

async fn exec_by_uid(
    State(doors): State<Doors>,
    Path((namespace, pod, _, container)): PodPathWithUid,
    request: Request,
) -> Response {
    doors.upgrade("exec", request, (&namespace, &pod), ("exec", Some(&container))).await
}

async fn attach(
    State(doors): State<Doors>,
    Path((namespace, pod, container)): PodPath,
    request: Request,
) -> Response {
    doors.upgrade("attach", request, (&namespace, &pod), ("attach", Some(&container))).await
}

async fn attach_by_uid(
    State(doors): State<Doors>,
    Path((namespace, pod, _, container)): PodPathWithUid,
    request: Request,
) -> Response {
    doors.upgrade("attach", request, (&namespace, &pod), ("attach", Some(&container))).await
}

async fn port_forward(
    State(doors): State<Doors>,
    Path((namespace, pod)): Path<(String, String)>,
    request: Request,
) -> Response {
    doors.upgrade("portforward", request, (&namespace, &pod), ("portforward", None)).await
}

async fn port_forward_by_uid(
    State(doors): State<Doors>,
    Path((namespace, pod, _)): PodPath,
    request: Request,
) -> Response {
    doors.upgrade("portforward", request, (&namespace, &pod), ("portforward", None)).await
}

async fn healthz(State(doors): State<Doors>, shown: Shown) -> Response {
    let answer = async {
        let user = doors.caller(&shown).await?;
        doors.0.callers.allow(&user, "get", &["healthz", "proxy"], "").await?;
        Ok("ok".into_response())
    };
    doors.answered("healthz", answer.await)
}

async fn pods(State(doors): State<Doors>, shown: Shown) -> Response {
    let answer = async {
        let user = doors.caller(&shown).await?;
        doors.0.callers.allow(&user, "get", &["pods", "proxy"], "").await?;
        let pods = doors.pods_here().await?;
        let list =
            serde_json::json!({ "apiVersion": "v1", "kind": "PodList", "metadata": {}, "items": pods });
        Ok(json(&list))
    };
    doors.answered("pods", answer.await)
}

async fn stats(State(doors): State<Doors>, shown: Shown) -> Response {
    doors.stats(&shown, None).await
}

async fn stats_of_node(State(doors): State<Doors>, Path(node): Path<String>, shown: Shown) -> Response {
    doors.stats(&shown, Some(&node)).await
}

async fn resource_metrics(State(doors): State<Doors>, shown: Shown) -> Response {
    doors.metrics(&shown, None).await
}

async fn resource_metrics_of_node(
    State(doors): State<Doors>,
    Path(node): Path<String>,
    shown: Shown,
) -> Response {
    doors.metrics(&shown, Some(&node)).await
}

fn json(value: &serde_json::Value) -> Response {
    ([(http::header::CONTENT_TYPE, "application/json")], Body::from(value.to_string())).into_response()
}
