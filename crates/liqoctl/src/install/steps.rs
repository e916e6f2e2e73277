//! Progress and interruption, for the commands that change a cluster.

use std::process::ExitCode;
use std::time::Duration;

use anyhow::Result;
use liqo_install::{InstallError, Progress as Told};
use parking_lot::Mutex;
use tokio::signal::unix::{SignalKind, signal};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::progress::Progress;
use crate::style::Style;

/// Exit code of a command that was interrupted, as shells count.
const INTERRUPTED: u8 = 130;
/// The time that is left to give back what is held.
const GOODBYE: Duration = Duration::from_secs(5);
/// A step that took longer than this says how long.
const WORTH_TELLING: Duration = Duration::from_secs(2);

/// Steps on standard error.
pub(crate) struct Steps {
    progress: Mutex<Progress>,
    began: Mutex<Instant>,
    style: Style,
}

impl Steps {
    pub(crate) fn new(style: Style) -> Self {
        Self { progress: Mutex::new(Progress::new(style)), began: Mutex::new(Instant::now()), style }
    }

    /// A step of this program's own begins.
    pub(super) fn begin(&self, text: &str) {
        *self.began.lock() = Instant::now();
        self.busy(text);
    }

    /// It has ended well.
    pub(super) fn step(&self, text: &str) {
        let took = self.began.lock().elapsed();
        let time =
            if took < WORTH_TELLING { String::new() } else { format!(" ({:.1} s)", took.as_secs_f64()) };
        self.done(&format!("{text}{time}"));
    }

    /// Something that went wrong before it began.
    pub(super) fn failed(&self, text: &str) {
        self.progress.lock().failed(text);
    }

    pub(crate) fn note(&self, text: &str) {
        self.warn(text);
    }

    /// The last words.
    pub(crate) fn end(&self, text: &str) {
        let mut lines = text.lines();
        let first = lines.next().unwrap_or_default();
        eprintln!("{}", self.style.bold(first));
        lines.for_each(|line| eprintln!("{line}"));
    }
}

impl Told for Steps {
    fn busy(&self, text: &str) {
        self.progress.lock().busy(text);
    }

    fn done(&self, text: &str) {
        self.progress.lock().done(text);
    }

    fn warn(&self, text: &str) {
        self.progress.lock().warn(text);
    }

    fn detail(&self, text: &str) {
        self.progress.lock().detail(text);
    }
}

/// Works until it is done or somebody has had enough. What is held is given back, in a bounded time; a second signal does
/// not wait for that.
pub(crate) async fn interruptible(
    steps: &Steps,
    work: impl AsyncFnOnce(CancellationToken) -> Result<ExitCode>,
) -> Result<ExitCode> {
    let stop = CancellationToken::new();
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    let mut hang_up = signal(SignalKind::hangup())?;
    let mut asked = async || {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
            _ = hang_up.recv() => {}
        }
    };
    let mut working = std::pin::pin!(work(stop.clone()));
    let done = tokio::select! {
        done = &mut working => done,
        () = asked() => {
            stop.cancel();
            tokio::select! {
                done = tokio::time::timeout(GOODBYE, &mut working) => done.unwrap_or(Err(InstallError::Interrupted.into())),
                () = asked() => Err(InstallError::Interrupted.into()),
            }
        }
    };
    match done {
        Err(error)
            if matches!(error.downcast_ref(), Some(InstallError::Interrupted)) || stop.is_cancelled() =>
        {
            steps.failed(&InstallError::Interrupted.to_string());
            Ok(ExitCode::from(INTERRUPTED))
        }
        done => done,
    }
}
