//! The requests of a watch, and reading their bodies within limits.

use std::time::Duration;

use futures::{AsyncBufRead, AsyncBufReadExt};
use http::header::{ACCEPT_ENCODING, HeaderValue};
use kube::api::{ListParams, WatchParams};
use kube::core::Request;

use super::Scope;

/// The longest line or page accepted. An object is at most a few MiB (etcd's limit is 1.5 MiB), a page some
/// hundred of them; beyond this the peer is broken or hostile.
const LONGEST_LINE: usize = 16 << 20;
const LONGEST_PAGE: usize = 256 << 20;

/// Why a list or a watch ended early.
#[derive(Debug, thiserror::Error)]
pub(super) enum Failure {
    #[error("the API server answered {}: {}", .0.code, .0.message)]
    Refused(Box<kube::core::Status>),
    #[error("cannot reach the API server: {}", Chain(.0))]
    Unreachable(#[source] kube::Error),
    #[error("the connection broke: {}", Chain(.0))]
    Broken(#[source] std::io::Error),
    #[error("nothing was heard for {} s", .0.as_secs())]
    Silent(Duration),
    #[error("the server sent something that is no watch event or list: {0}")]
    Garbage(#[source] serde_json::Error),
    #[error("the server sent more than {0} bytes in one piece")]
    TooLong(usize),
    #[error("the server ended the watch at once")]
    Short,
}

/// Prints an error with its causes, because hyper and kube name the cause only in the source.
pub struct Chain<'a>(pub &'a (dyn std::error::Error + 'static));

impl std::fmt::Display for Chain<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut text = self.0.to_string();
        let mut source = self.0.source();
        while let Some(cause) = source {
            let cause_text = cause.to_string();
            if !text.contains(&cause_text) {
                text.push_str(": ");
                text.push_str(&cause_text);
            }
            source = cause.source();
        }
        f.write_str(&text)
    }
}

impl Failure {
    /// The version asked for has been compacted away, or the page token has expired.
    pub(super) fn is_gone(&self) -> bool {
        matches!(self, Self::Refused(status) if status.code == 410)
    }

    /// The server does not know the question (as opposed to not being able to answer now).
    pub(super) fn is_unsupported(&self) -> bool {
        matches!(self, Self::Refused(status) if matches!(status.code, 400 | 405 | 415 | 422))
    }

    /// The server knows who asks, or does not want to, and says that they may not.
    pub(super) fn is_forbidden(&self) -> bool {
        matches!(self, Self::Refused(status) if matches!(status.code, 401 | 403))
    }

    /// The server was there and said no.
    pub(super) fn is_refusal(&self) -> bool {
        matches!(self, Self::Refused(_))
    }
}

impl From<kube::Error> for Failure {
    fn from(error: kube::Error) -> Self {
        match error {
            kube::Error::Api(status) => Self::Refused(status),
            error => Self::Unreachable(error),
        }
    }
}

/// Opens a watch: from a version, or from the beginning as a streaming list.
pub(super) async fn open_watch(
    client: &kube::Client,
    scope: &Scope,
    from: Option<&str>,
    lifetime: Duration,
    timeout: Duration,
) -> Result<impl AsyncBufRead + Unpin + use<>, Failure> {
    let params = WatchParams {
        label_selector: scope.labels.clone(),
        field_selector: scope.fields.clone(),
        timeout: Some(u32::try_from(lifetime.as_secs()).unwrap_or(u32::MAX).max(1)),
        bookmarks: true,
        send_initial_events: from.is_none(),
    };
    // A streaming list without a version is a consistent read: it can not travel back in time on a server
    // whose cache lags behind.
    let version = from.unwrap_or_default();
    let request = Request::new(scope.path.as_str());
    let request = if scope.metadata_only {
        request.watch_metadata(&params, version)
    } else {
        request.watch(&params, version)
    };
    open(client, request, timeout).await
}

/// Reads one page of a list into `body`, which is emptied before.
///
/// One buffer serves all pages, so that megabytes are not allocated and freed again between objects that stay.
pub(super) async fn read_page(
    client: &kube::Client,
    scope: &Scope,
    page_size: u32,
    continue_token: Option<String>,
    timeout: Duration,
    body: &mut Vec<u8>,
) -> Result<(), Failure> {
    body.clear();
    let params = ListParams {
        label_selector: scope.labels.clone(),
        field_selector: scope.fields.clone(),
        limit: Some(page_size),
        continue_token,
        ..ListParams::default()
    };
    let request = Request::new(scope.path.as_str());
    let request = if scope.metadata_only { request.list_metadata(&params) } else { request.list(&params) };
    let mut reader = open(client, request, timeout).await?;
    loop {
        let chunk = next_chunk(&mut reader, timeout).await?;
        if chunk.is_empty() {
            return Ok(());
        }
        if body.len() + chunk.len() > LONGEST_PAGE {
            return Err(Failure::TooLong(LONGEST_PAGE));
        }
        body.extend_from_slice(chunk);
        let read = chunk.len();
        reader.consume_unpin(read);
    }
}

async fn open(
    client: &kube::Client,
    request: Result<http::Request<Vec<u8>>, kube::core::request::Error>,
    timeout: Duration,
) -> Result<impl AsyncBufRead + Unpin + use<>, Failure> {
    let mut request = request.map_err(kube::Error::BuildRequest)?;
    // Newer servers compress a watch event by event, which no decoder of ours follows.
    request.headers_mut().insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
    match tokio::time::timeout(timeout, client.request_stream(request)).await {
        Ok(stream) => Ok(Box::pin(stream?)),
        Err(_) => Err(Failure::Silent(timeout)),
    }
}

/// The next piece of the body; empty at its end.
async fn next_chunk<R: AsyncBufRead + Unpin>(reader: &mut R, idle: Duration) -> Result<&[u8], Failure> {
    match tokio::time::timeout(idle, reader.fill_buf()).await {
        Ok(chunk) => chunk.map_err(Failure::Broken),
        Err(_) => Err(Failure::Silent(idle)),
    }
}

/// Cuts a body into lines without copying those that arrive whole.
pub(super) struct Lines<R> {
    reader: R,
    partial: Vec<u8>,
}

impl<R: AsyncBufRead + Unpin> Lines<R> {
    pub(super) fn new(reader: R) -> Self {
        Self { reader, partial: Vec::new() }
    }

    /// Waits for the next piece and hands each line that is complete by then to `take`.
    ///
    /// Returns `false` at the end of the body; a line that was cut off there is dropped, since it will come
    /// again when the watch resumes.
    pub(super) async fn read<E: From<Failure>>(
        &mut self,
        idle: Duration,
        mut take: impl FnMut(&[u8]) -> Result<(), E>,
    ) -> Result<bool, E> {
        let chunk = next_chunk(&mut self.reader, idle).await?;
        if chunk.is_empty() {
            return Ok(false);
        }
        let read = chunk.len();
        let mut rest = chunk;
        let mut result = Ok(());
        while let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
            let (line, tail) = rest.split_at(end);
            rest = &tail[1..];
            result = if self.partial.is_empty() {
                if line.is_empty() { Ok(()) } else { take(line) }
            } else {
                self.partial.extend_from_slice(line);
                let result = take(&self.partial);
                self.partial.clear();
                result
            };
            if result.is_err() {
                break;
            }
        }
        result?;
        if self.partial.len() + rest.len() > LONGEST_LINE {
            return Err(Failure::TooLong(LONGEST_LINE).into());
        }
        self.partial.extend_from_slice(rest);
        self.reader.consume_unpin(read);
        Ok(true)
    }
}
