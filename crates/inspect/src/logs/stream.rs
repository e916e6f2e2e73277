//! One log, line by line.

use futures::io::{AsyncBufRead, AsyncBufReadExt};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use kube::api::LogParams;

use super::{Line, LogRequest, Source};

/// A log that is being read.
pub(super) struct Log {
    source: Source,
    reader: Box<dyn AsyncBufRead + Send + Unpin>,
    /// What has come of the next line, kept here because whoever waits for it may do something else in between.
    partial: Vec<u8>,
}

impl Log {
    /// Opens a log; `follow` says whether it goes on, `after` the time from which on.
    pub(super) async fn open(
        pods: &Api<Pod>,
        source: &Source,
        request: &LogRequest,
        follow: bool,
        after: Option<Timestamp>,
    ) -> Result<Self, kube::Error> {
        let first = after.is_none();
        let parameters = LogParams {
            container: Some(source.container.clone()),
            follow,
            previous: request.previous,
            tail_lines: request.tail.map(i64::from).filter(|_| first),
            since_seconds: request
                .since
                .filter(|_| first)
                // The API counts whole seconds, at least one.
                .map(|since| i64::try_from(since.as_secs().max(1)).unwrap_or(i64::MAX)),
            since_time: after,
            timestamps: true,
            ..LogParams::default()
        };
        let reader = Box::new(Box::pin(pods.log_stream(&source.pod, &parameters).await?));
        Ok(Self { source: source.clone(), reader, partial: Vec::new() })
    }

    /// The next line; none at the end. Nothing is lost if it is not waited for to the end.
    pub(super) async fn next(&mut self) -> std::io::Result<Option<Line>> {
        self.reader.read_until(b'\n', &mut self.partial).await?;
        let bytes = std::mem::take(&mut self.partial);
        if bytes.is_empty() {
            return Ok(None);
        }
        let line = String::from_utf8_lossy(&bytes);
        let line = line.strip_suffix('\n').unwrap_or(&line);
        let (time, text) = split(line);
        Ok(Some(Line { source: self.source.clone(), time: time.to_owned(), text: text.to_owned() }))
    }
}

/// The node's time and the text. A line without a time is a message of the API server itself.
pub(super) fn split(line: &str) -> (&str, &str) {
    match line.split_once(' ') {
        Some((time, text)) if time.parse::<Timestamp>().is_ok() => (time, text),
        None if line.parse::<Timestamp>().is_ok() => (line, ""),
        _ => ("", line),
    }
}
