//! Asks a node, through the API server of its provider.

use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use kube::api::LogParams;
use kube::core::Status;
use liqo_kit::clusters::ClientSource;

use crate::{Link, pulse};

/// How long the answer may take: longer, and it is as good as none.
const ANSWER: Duration = Duration::from_secs(2);
/// What an API server says, among other words, when it does not get through to a kubelet.
const NOT_THROUGH: [&str; 11] = [
    "dial ",
    "no route",
    "refused",
    "unreachable",
    "timeout",
    "timed out",
    "deadline exceeded",
    "connection reset",
    "broken pipe",
    "unexpected eof",
    "http2: client connection",
];

/// What came of asking a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// Its kubelet answered, whatever it said.
    Lives,
    /// It did not, and the API server that asked it does answer.
    Silent(String),
    /// The API server answered, and not about the node: the pod is gone, or we may not ask.
    Refused,
    /// Nobody can tell: the API server itself did not answer.
    Unclear,
}

/// Asks the node on which this pod runs for the last letter of the log of one of its containers.
pub async fn ask(link: &Link, namespace: &str, pod: &str, container: &str) -> Answer {
    let pods: Api<Pod> = Api::namespaced(link.cluster.client(), namespace);
    let params = LogParams {
        container: Some(container.to_owned()),
        tail_lines: Some(1),
        limit_bytes: Some(1),
        ..LogParams::default()
    };
    match tokio::time::timeout(ANSWER, pods.logs(pod, &params)).await {
        Ok(Ok(_)) => Answer::Lives,
        Ok(Err(error)) => read(&error),
        // Only who answers otherwise has waited for the kubelet.
        Err(_) => match pulse::ask(link).await {
            Ok(()) => Answer::Silent(format!("no answer within {} s", ANSWER.as_secs())),
            Err(_) => Answer::Unclear,
        },
    }
}

/// What an error says about the kubelet.
pub(super) fn read(error: &kube::Error) -> Answer {
    match error {
        kube::Error::Api(status) => read_status(status),
        // A letter of several bytes that was cut: there is a log.
        kube::Error::FromUtf8(_) => Answer::Lives,
        _ => Answer::Unclear,
    }
}

fn read_status(status: &Status) -> Answer {
    let of_nodes = status.details.as_ref().is_some_and(|details| details.kind == "nodes");
    match status.code {
        404 if of_nodes => Answer::Silent("the provider has removed the node".to_owned()),
        // Said by the API server: the pod went, or we may not ask, or not so often.
        401 | 403 | 404 | 429 => Answer::Refused,
        400..500 => Answer::Lives,
        _ => {
            let message = status.message.to_lowercase();
            let not_through = NOT_THROUGH.iter().any(|words| message.contains(words));
            if not_through { Answer::Silent(cause(&status.message)) } else { Answer::Refused }
        }
    }
}

/// Why, without what was asked for.
fn cause(message: &str) -> String {
    let after_url = message.strip_prefix("Get \"").and_then(|rest| rest.split_once("\": "));
    after_url.map_or(message, |(_, cause)| cause).to_owned()
}
