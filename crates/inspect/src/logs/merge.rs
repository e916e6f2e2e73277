//! Several logs as one, in the order of their times.

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Pod;
use kube::Api;

use super::stream::Log;
use super::{Line, LogError, LogRequest, Remark, Sink, Source, Told};

struct Open {
    log: Log,
    next: Line,
}

/// Tells all lines that are there.
pub(super) async fn tell(
    pods: &Api<Pod>,
    request: &LogRequest,
    sources: Vec<Source>,
    tell: &mut impl Sink,
) -> Result<(), LogError> {
    let mut open = Vec::new();
    let mut readable = false;
    for source in sources {
        match begin(pods, request, &source).await {
            Ok(first) => {
                readable = true;
                open.extend(first);
            }
            Err(why) => tell(&Told::Remark(Remark::Unreadable { source, why }))?,
        }
    }
    if !readable {
        return Err(LogError::Unreadable);
    }
    while let Some(index) = oldest(open.iter().map(|it: &Open| it.next.time.as_str())) {
        let next = open[index].log.next().await;
        match next {
            Ok(Some(next)) => tell(&Told::Line(std::mem::replace(&mut open[index].next, next)))?,
            Ok(None) => tell(&Told::Line(open.remove(index).next))?,
            Err(error) => {
                let line = open.remove(index).next;
                let source = line.source.clone();
                tell(&Told::Line(line))?;
                tell(&Told::Remark(Remark::Unreadable { source, why: error.to_string() }))?;
            }
        }
    }
    Ok(())
}

/// Opens a log and reads its first line; none of an empty log.
async fn begin(pods: &Api<Pod>, request: &LogRequest, source: &Source) -> Result<Option<Open>, String> {
    let mut log = Log::open(pods, source, request, false, None).await.map_err(|error| explain(&error))?;
    let first = log.next().await.map_err(|error| error.to_string())?;
    Ok(first.map(|next| Open { log, next }))
}

/// The API server's words, without the client's wrapping.
pub(super) fn explain(error: &kube::Error) -> String {
    match error {
        kube::Error::Api(status) => status.message.clone(),
        error => error.to_string(),
    }
}

/// The one whose time is first; one without a time goes before all others.
pub(super) fn oldest<'a>(times: impl Iterator<Item = &'a str>) -> Option<usize> {
    let times = times.map(|time| time.parse::<Timestamp>().ok());
    times.enumerate().min_by_key(|(_, time)| *time).map(|(index, _)| index)
}
