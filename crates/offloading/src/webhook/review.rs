//! The answer to one question of the API server.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use liqo_api::names::NAMESPACE_OFFLOADING;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::index::Index;
use crate::placement::PodView;
use crate::selector;

/// What of the question is looked at.
#[derive(Debug, Deserialize)]
pub(crate) struct Review {
    pub(crate) request: Request,
}

/// The question.
#[derive(Debug, Deserialize)]
pub(crate) struct Request {
    pub(crate) uid: String,
    #[serde(default)]
    pub(crate) namespace: String,
    #[serde(default)]
    pub(crate) object: Option<PodView>,
}

/// What becomes of a pod.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Answer {
    /// It may come, with this changed.
    Placed(Vec<Value>),
    /// It may not.
    Refused { code: u16, message: String },
}

impl Answer {
    fn refused(code: u16, message: impl Into<String>) -> Self {
        Self::Refused { code, message: message.into() }
    }

    /// One word for metrics.
    pub(crate) fn word(&self) -> &'static str {
        match self {
            Self::Placed(patch) if patch.is_empty() => "untouched",
            Self::Placed(_) => "placed",
            Self::Refused { .. } => "refused",
        }
    }

    /// The answer as the API server reads it.
    pub(crate) fn into_review(self, uid: &str) -> Value {
        let mut response = match self {
            Self::Placed(patch) if patch.is_empty() => json!({ "allowed": true }),
            Self::Placed(patch) => {
                let patch = STANDARD.encode(Value::Array(patch).to_string());
                json!({ "allowed": true, "patchType": "JSONPatch", "patch": patch })
            }
            Self::Refused { code, message } => {
                json!({ "allowed": false, "status": { "code": code, "message": message } })
            }
        };
        response["uid"] = json!(uid);
        json!({ "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response })
    }
}

/// Decides about a pod. Whoever is not sure refuses: the pod's controller asks again in a moment, and a pod that was let
/// through runs where its owner did not want it.
pub(crate) fn answer(index: &Index, complete: bool, request: &Request) -> Answer {
    let Some(pod) = &request.object else {
        return Answer::refused(400, "the question has no pod in it");
    };
    let namespace = request.namespace.as_str();
    if !complete {
        return Answer::refused(
            503,
            "Liqo has just been started and does not know all namespaces yet: try again",
        );
    }
    let Some(placement) = index.placement(namespace) else {
        let message = format!(
            "namespace {namespace} is marked as offloaded, and its NamespaceOffloading {NAMESPACE_OFFLOADING} is not known \
             (yet): try again"
        );
        return Answer::refused(503, message);
    };
    if let Err(error) = selector::check(placement.selector.as_ref()) {
        let message = format!("the clusterSelector of namespace {namespace} is not valid: {error}");
        return Answer::refused(422, message);
    }
    match placement.patch(pod) {
        Ok(patch) => Answer::Placed(patch),
        Err(error) => Answer::refused(422, error.to_string()),
    }
}
