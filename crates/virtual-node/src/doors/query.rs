//! What a kubelet is asked, in the words of an API server.

use http::StatusCode;

use super::Refused;

#[cfg(test)]
mod tests;

/// The longest name of an object.
const LONGEST_NAME: usize = 253;
/// What may be said about logs; both sides have the same words.
const OF_LOGS: [&str; 8] =
    ["follow", "tailLines", "sinceSeconds", "sinceTime", "timestamps", "previous", "limitBytes", "stream"];
/// What kubelets and API servers call the streams of a terminal.
const STREAMS: [(&str, &str); 4] =
    [("input", "stdin"), ("output", "stdout"), ("error", "stderr"), ("tty", "tty")];
/// What else is said about a terminal or a tunnel; both sides have the same words.
const REPEATED: [&str; 2] = ["command", "port"];

/// A name of an object or a container, which needs no escaping and leads nowhere else.
pub(super) fn check_name(name: &str) -> Result<(), Refused> {
    let legal = |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"-.".contains(byte);
    let bytes = name.as_bytes();
    let fine = bytes.len() <= LONGEST_NAME
        && bytes.iter().all(legal)
        && bytes.first().is_some_and(u8::is_ascii_alphanumeric);
    fine.then_some(()).ok_or_else(|| Refused::new(StatusCode::BAD_REQUEST, "this is not a name"))
}

/// What is asked for about logs; the rest is left out.
pub(super) fn of_logs(asked: &str, container: &str) -> Result<String, Refused> {
    check_name(container)?;
    let known =
        pairs(asked).filter(|(key, _)| OF_LOGS.contains(key)).map(|(key, value)| format!("{key}={value}"));
    Ok(join(Some(container), known))
}

/// Whether logs are asked for that come to no end by themselves.
pub(super) fn is_followed(path: &str) -> bool {
    path.split_once('?').is_some_and(|(_, query)| pairs(query).any(|pair| pair == ("follow", "true")))
}

/// What is asked for about a terminal or a tunnel; the rest is left out.
pub(super) fn of_streams(asked: &str, container: Option<&str>) -> Result<String, Refused> {
    if let Some(container) = container {
        check_name(container)?;
    }
    let known = pairs(asked).filter_map(|(key, value)| {
        if REPEATED.contains(&key) {
            return Some(format!("{key}={value}"));
        }
        let (_, there) = STREAMS.iter().find(|(here, there)| key == *here || key == *there)?;
        Some(format!("{there}={}", matches!(value, "1" | "true")))
    });
    Ok(join(container, known))
}

/// The subresource of a pod.
pub(super) fn path(namespace: &str, pod: &str, subresource: &str, query: &str) -> String {
    format!("/api/v1/namespaces/{namespace}/pods/{pod}/{subresource}?{query}")
}

fn join(container: Option<&str>, known: impl Iterator<Item = String>) -> String {
    let container = container.map(|container| format!("container={container}"));
    container.into_iter().chain(known).collect::<Vec<_>>().join("&")
}

/// Keys and values, as they came: what was escaped stays so.
fn pairs(query: &str) -> impl Iterator<Item = (&str, &str)> {
    query.split('&').map(|pair| pair.split_once('=').unwrap_or((pair, "")))
}
