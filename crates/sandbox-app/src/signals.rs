//! Ending promptly, and reaping orphans, as PID 1 of a container.
//!
//! The kernel drops a SIGTERM for PID 1 of a namespace unless the process blocks or handles it, and the
//! runtime then waits the whole grace period before it kills. So the signals are blocked, which queues
//! them, and one thread takes them from the queue.

use std::time::Duration;

use nix::errno::Errno;
use nix::sys::signal::{SigSet, Signal};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};

/// How long to stay away from a queue that cannot be read, which only a broken kernel or a seccomp filter causes.
const AFTER_ERROR: Duration = Duration::from_secs(1);

/// The signals that end this process, caught in a queue instead of acting (or being ignored) at once.
#[derive(Debug)]
pub struct Termination(SigSet);

impl Termination {
    /// Starts catching. Must come before the first thread is started, because threads inherit the mask.
    pub fn catch() -> Result<Self, Errno> {
        let signals = SigSet::from_iter([Signal::SIGTERM, Signal::SIGINT, Signal::SIGCHLD]);
        signals.thread_block()?;
        Ok(Self(signals))
    }

    /// Returns when SIGTERM or SIGINT arrives, and reaps orphaned children until then.
    pub fn wait(&self) -> Signal {
        // Children that ended before the signals were caught have announced it to nobody.
        reap();
        loop {
            match self.0.wait() {
                Ok(Signal::SIGCHLD) => reap(),
                Ok(signal) => return signal,
                Err(Errno::EINTR) => {}
                Err(_) => std::thread::sleep(AFTER_ERROR),
            }
        }
    }
}

/// Takes every child that has ended: one SIGCHLD may stand for many of them.
fn reap() {
    while let Ok(status) = waitpid(None, Some(WaitPidFlag::WNOHANG)) {
        if status == WaitStatus::StillAlive {
            return;
        }
    }
}
