//! Listens to the API server.

use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use axum::{Json, Router};
use liqo_kit::Shared;
use liqo_kit::serve::{Certificates, ClientAuth, ServeConfig, serve, tls_config};
use liqo_kit::watch::WatchStatus;
use tokio::net::TcpListener;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::PATH;
use super::certificate::Shown;
use super::review::{Review, answer};
use crate::index::Index;
use crate::metrics::OffloadingMetrics;

/// What answers need.
#[derive(Clone)]
pub(crate) struct Service {
    pub(crate) index: Shared<Index>,
    /// The watches without which nobody can be sure.
    pub(crate) watches: Vec<WatchStatus>,
    pub(crate) metrics: OffloadingMetrics,
}

impl Service {
    /// Serves on `listener` from when there is a certificate to show, until `stop`.
    pub(crate) async fn run(self, listener: TcpListener, stop: CancellationToken) -> Result<(), String> {
        let Some(shown) = stop.run_until_cancelled(self.certificate(None)).await else { return Ok(()) };
        let certificates =
            Certificates::from_pem(&shown.chain, &shown.key).map_err(|error| error.to_string())?;
        let tls = tls_config(certificates.clone(), &ClientAuth::None).map_err(|error| error.to_string())?;
        let router = Router::new().route(PATH, post(mutate)).with_state(Arc::new(self.clone()));
        tracing::info!("the webhook answers");
        let served = serve(listener, Some(tls), router, ServeConfig::default(), stop.clone());
        let followed = stop.run_until_cancelled(self.follow(shown, &certificates));
        let ((), _) = tokio::join!(served, followed);
        Ok(())
    }

    /// A usable certificate other than `but`.
    async fn certificate(&self, but: Option<&Shown>) -> Shown {
        let mut changes = self.index.subscribe();
        loop {
            changes.borrow_and_update();
            let shown = self.index.read().kept.as_ref().and_then(|kept| kept.shown.clone());
            if let Some(shown) = shown.filter(|shown| Some(shown) != but)
                && Certificates::from_pem(&shown.chain, &shown.key).is_ok()
            {
                return shown;
            }
            // The index lives as long as the room, which holds the sender.
            let _ = changes.changed().await;
        }
    }

    /// Shows another certificate when there is one.
    async fn follow(&self, mut shown: Shown, certificates: &Certificates) {
        loop {
            shown = self.certificate(Some(&shown)).await;
            match certificates.replace(&shown.chain, &shown.key) {
                Ok(()) => tracing::info!("the webhook shows another certificate"),
                Err(error) => tracing::warn!(%error, "the webhook goes on showing the old certificate"),
            }
        }
    }
}

async fn mutate(State(service): State<Arc<Service>>, body: Bytes) -> Response {
    let began = Instant::now();
    let review: Review = match serde_json::from_slice(&body) {
        Ok(review) => review,
        Err(error) => {
            let message = format!("this is no question about a pod: {error}");
            return (StatusCode::BAD_REQUEST, message).into_response();
        }
    };
    let complete = service.watches.iter().all(WatchStatus::is_ready);
    let answer = answer(&service.index.read(), complete, &review.request);
    service.metrics.answered(answer.word(), began.elapsed());
    tracing::debug!(namespace = review.request.namespace, answer = answer.word(), "a pod");
    Json(answer.into_review(&review.request.uid)).into_response()
}
