//! What the API server said when it refused, in words; and whether it is worth asking again.

use std::error::Error;
use std::time::Duration;

use kube::core::Status;
use liqo_kit::{Backoff, BackoffPolicy};
use tokio::time::Instant;

/// For how long a request is tried again when the API server is away: a restart takes less, and a person waits.
const PATIENCE: Duration = Duration::from_secs(25);
/// A request that is not answered in this time is tried again.
const ANSWER: Duration = Duration::from_secs(15);

/// What happened, with the causes that the error itself does not tell.
pub(crate) fn text(error: &kube::Error) -> String {
    if let kube::Error::Api(status) = error {
        return status_text(status);
    }
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let more = error.to_string();
        // Some layers repeat the words of the one below.
        if !text.contains(&more) {
            text = format!("{text}: {more}");
        }
        cause = error.source();
    }
    text
}

fn status_text(status: &Status) -> String {
    let message = status.message.trim().trim_end_matches('.');
    match (message.is_empty(), status.code) {
        (false, 401) => "the API server does not accept these credentials".into(),
        (false, _) => message.to_owned(),
        (true, code) => format!("the API server answered {code} {}", status.reason),
    }
}

/// Whether the same request may succeed later without anybody doing anything.
pub(crate) fn is_passing(error: &kube::Error) -> bool {
    match error {
        kube::Error::Api(status) => {
            matches!(status.code, 429 | 500 | 502 | 503 | 504) && !is_webhook(&status.message)
        }
        kube::Error::HyperError(_) | kube::Error::Service(_) | kube::Error::ReadEvents(_) => true,
        _ => false,
    }
}

/// The right is missing.
pub(crate) fn is_forbidden(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Api(status) if status.code == 403)
}

/// There is no such thing.
pub(crate) fn is_not_found(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Api(status) if status.code == 404)
}

/// Somebody else was quicker.
pub(crate) fn is_conflict(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Api(status) if status.code == 409)
}

fn is_webhook(message: &str) -> bool {
    message.contains("failed calling webhook")
}

/// What to do about a refused write, beyond the API server's own words.
pub(crate) fn advice(error: &kube::Error) -> Option<String> {
    let kube::Error::Api(status) = error else {
        return Some("check that the API server is up, then run the same command again: it goes on".into());
    };
    let message = &status.message;
    if is_webhook(message) {
        let name = message.split('"').nth(1).unwrap_or("?");
        return Some(format!(
            "an admission webhook named {name} stands in the way and does not answer. Find its configuration with\n  \
             kubectl get validatingwebhookconfigurations,mutatingwebhookconfigurations -o name\n\
             and repair the program behind it, or delete the configuration if that program is gone"
        ));
    }
    if message.contains("exceeded quota") {
        return Some("make room in the quota, or raise it: kubectl get resourcequota -A".into());
    }
    if message.contains("is being terminated") || message.contains("object is being deleted") {
        return Some(
            "it is still being deleted from before: wait until it is gone, then run the same command again"
                .into(),
        );
    }
    match status.code {
        401 => Some("get new credentials, or log in again, then run the same command again".into()),
        403 if message.contains("attempting to grant RBAC permissions") => Some(
            "Kubernetes lets nobody hand out rights that they do not have: an administrator must run this command, \
             or give you the verbs escalate and bind on clusterroles and roles"
                .into(),
        ),
        403 => Some("liqoctl check --pre tells which right is missing, and how an administrator gives it".into()),
        _ => None,
    }
}

/// Does something that may be done twice, again and again while the API server is away; bounded.
pub(crate) async fn patiently<T>(
    mut ask: impl AsyncFnMut() -> Result<T, kube::Error>,
) -> Result<T, kube::Error> {
    let deadline = Instant::now() + PATIENCE;
    let mut waits = Backoff::new(BackoffPolicy::default());
    loop {
        let answer = match tokio::time::timeout(ANSWER, ask()).await {
            Ok(answer) => answer,
            Err(_) => Err(kube::Error::Service("no answer from the API server".into())),
        };
        match answer {
            Err(error) if is_passing(&error) && Instant::now() < deadline => {
                tracing::info!(error = text(&error), "trying again");
                tokio::time::sleep(waits.next_delay()).await;
            }
            answer => return answer,
        }
    }
}

#[cfg(test)]
mod tests;
