//! `/metrics`, `/healthz` and `/readyz` over plain HTTP.

use std::sync::Arc;

use axum::Router;
use axum::extract::{Query, State};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use http::{StatusCode, header};
use prometheus_client::registry::Registry;
use serde::Deserialize;

use crate::health::Checks;

const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// What the admin endpoints show.
#[derive(Clone)]
pub struct Admin {
    /// Fails when the process should be restarted.
    pub live: Checks,
    /// Fails while the process cannot do its work.
    pub ready: Checks,
    registry: Arc<Registry>,
}

#[derive(Deserialize)]
struct Detail {
    verbose: Option<String>,
}

impl Admin {
    /// Shows these metrics; checks may be added at any time.
    pub fn new(registry: Registry) -> Self {
        Self { live: Checks::default(), ready: Checks::default(), registry: Arc::new(registry) }
    }

    /// All routes; serve them with [`serve`](crate::serve::serve), on a port that only the cluster reaches.
    pub fn router(&self) -> Router {
        self.probes().merge(self.metrics())
    }

    /// `/healthz` and `/readyz` alone, for a port that the kubelet asks.
    pub fn probes(&self) -> Router {
        let live = self.live.clone();
        let ready = self.ready.clone();
        Router::new()
            .route("/healthz", get(|detail| async move { report(&live, &detail) }))
            .route("/readyz", get(|detail| async move { report(&ready, &detail) }))
    }

    /// `/metrics` alone, for a port that a monitoring system asks.
    pub fn metrics(&self) -> Router {
        Router::new().route("/metrics", get(metrics)).with_state(Arc::clone(&self.registry))
    }
}

fn report(checks: &Checks, Query(detail): &Query<Detail>) -> Response {
    let report = checks.run();
    let status = if report.is_ok() { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    (status, report.text(detail.verbose.is_some())).into_response()
}

async fn metrics(State(registry): State<Arc<Registry>>) -> Response {
    let mut text = String::new();
    match prometheus_client::encoding::text::encode(&mut text, &registry) {
        Ok(()) => ([(header::CONTENT_TYPE, OPEN_METRICS)], text).into_response(),
        Err(error) => (StatusCode::INTERNAL_SERVER_ERROR, format!("cannot encode the metrics: {error}\n"))
            .into_response(),
    }
}
