//! Logs that go on: lines as they come, through restarts and new pods.

use std::collections::HashSet;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use super::stream::Log;
use super::{LogError, LogRequest, Sink, Source, Told};
use crate::installation::Installation;

/// How often new pods are looked for, and a log that ended is opened again: a restart takes about as long.
const INTERVAL: Duration = Duration::from_secs(1);
/// How long a log may be silent before is asked whether its container still runs: a kubelet may miss that it ended, and
/// then never ends the log.
const SILENT: Duration = Duration::from_secs(5);
/// Lines that wait to be shown; a slow terminal slows the reading down.
const WAITING: usize = 1024;

/// Tells lines until nobody wants to hear more.
pub(super) async fn tell(
    installation: &Installation,
    request: &LogRequest,
    tell: &mut impl Sink,
) -> Result<(), LogError> {
    let (sender, mut lines) = mpsc::channel(WAITING);
    let mut readers = JoinSet::new();
    let mut known: HashSet<Source> = HashSet::new();
    let mut look = tokio::time::interval(INTERVAL);
    // What was written before a pod appeared under our eyes is all new.
    let mut first = true;
    loop {
        tokio::select! {
            Some(told) = lines.recv() => tell(&told)?,
            _ = look.tick() => {
                // While there is no pod at all, or the API server is away, there will be one again.
                let Ok((sources, _)) = installation.log_sources(request).await else { continue };
                let new: Vec<Source> = sources.into_iter().filter(|source| known.insert(source.clone())).collect();
                tell(&Told::Sources(new.clone()))?;
                for source in new {
                    let request = if first { request.clone() } else { LogRequest::default() };
                    let reader = Reader { pods: installation.pods_api(), source, request, sender: sender.clone() };
                    readers.spawn(reader.read());
                }
                first = false;
            }
            Some(ended) = readers.join_next(), if !readers.is_empty() => {
                if let Ok(source) = ended {
                    known.remove(&source);
                }
            }
        }
    }
}

struct Reader {
    pods: Api<Pod>,
    source: Source,
    request: LogRequest,
    sender: mpsc::Sender<Told>,
}

impl Reader {
    /// Reads one container's log, opened again after each restart, until its pod is gone.
    async fn read(self) -> Source {
        let mut last = None;
        loop {
            match Log::open(&self.pods, &self.source, &self.request, true, last).await {
                Ok(mut log) => {
                    if self.pass_on(&mut log, &mut last).await.is_err() {
                        return self.source;
                    }
                }
                Err(kube::Error::Api(status)) if status.code == 404 => return self.source,
                // The container is not started yet, or the node is away for a moment.
                Err(error) => tracing::debug!(pod = self.source.pod, %error, "no log yet"),
            }
            tokio::time::sleep(INTERVAL).await;
            if self.is_gone().await {
                return self.source;
            }
        }
    }

    /// Passes lines on until the log ends. The API begins at whole seconds, so some lines come a second time.
    async fn pass_on(
        &self,
        log: &mut Log,
        last: &mut Option<Timestamp>,
    ) -> Result<(), mpsc::error::SendError<Told>> {
        let life = self.life().await;
        loop {
            let line = match tokio::time::timeout(SILENT, log.next()).await {
                Ok(Ok(Some(line))) => line,
                // A cut in the middle is like an end: it is opened again.
                Ok(_) => return Ok(()),
                Err(_) if self.life().await == life => continue,
                Err(_) => return Ok(()),
            };
            let time = line.time.parse::<Timestamp>().ok();
            if time.is_some() && time <= *last {
                continue;
            }
            *last = time.or(*last);
            self.sender.send(Told::Line(line)).await?;
        }
    }

    /// How often the container was started again, where that is known.
    async fn life(&self) -> Option<i32> {
        let pod = self.pods.get(&self.source.pod).await.ok()?;
        let containers = pod.status?.container_statuses?;
        containers.iter().find(|it| it.name == self.source.container).map(|it| it.restart_count)
    }

    /// Whether the pod is no more, or another has its name.
    async fn is_gone(&self) -> bool {
        match self.pods.get_metadata(&self.source.pod).await {
            Ok(pod) => pod.metadata.uid.as_deref() != Some(&self.source.uid),
            Err(kube::Error::Api(status)) => status.code == 404,
            Err(_) => false,
        }
    }
}
