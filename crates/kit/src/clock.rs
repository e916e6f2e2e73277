//! The one clock of a room, which a test may set.

use jiff::{SignedDuration, Timestamp};
use tokio::sync::watch;

/// Tells the time. Clones agree.
#[derive(Clone, Debug, Default)]
pub struct Clock(Option<watch::Receiver<SignedDuration>>);

impl Clock {
    /// The machine's.
    pub fn system() -> Self {
        Self(None)
    }

    /// One that differs from the machine's by what is sent, for tests of what takes months.
    pub fn shifted() -> (watch::Sender<SignedDuration>, Self) {
        let (sender, receiver) = watch::channel(SignedDuration::ZERO);
        (sender, Self(Some(receiver)))
    }

    /// The time.
    pub fn now(&self) -> Timestamp {
        let shift = self.0.as_ref().map_or(SignedDuration::ZERO, |shift| *shift.borrow());
        let now = Timestamp::now();
        now.checked_add(shift).unwrap_or(now)
    }

    /// Resolves when the clock was set.
    pub async fn changed(&mut self) {
        if let Some(shift) = &mut self.0
            && shift.changed().await.is_ok()
        {
            return;
        }
        std::future::pending::<()>().await;
    }
}
