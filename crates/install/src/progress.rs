//! Telling the one who waits how far it is.

use std::time::Duration;

use tokio::time::Instant;

/// Takes what is to be told. One line is one event; where it goes is the program's choice.
pub trait Progress: Send + Sync {
    /// What is under way, or how far it is; may be told many times a second.
    fn busy(&self, text: &str);
    /// A step has ended well.
    fn done(&self, text: &str);
    /// Something to know that stops nothing.
    fn warn(&self, text: &str);
    /// More about the line before.
    fn detail(&self, text: &str);
}

/// Tells nobody.
#[derive(Debug, Clone, Copy, Default)]
pub struct Silent;

impl Progress for Silent {
    fn busy(&self, _: &str) {}
    fn done(&self, _: &str) {}
    fn warn(&self, _: &str) {}
    fn detail(&self, _: &str) {}
}

/// A step that took longer than this says how long.
const WORTH_TELLING: Duration = Duration::from_secs(2);

/// What a step did, and how long it took if that was long.
pub(crate) fn with_time(text: &str, started: Instant) -> String {
    let took = started.elapsed();
    if took < WORTH_TELLING { text.to_owned() } else { format!("{text} ({:.1} s)", took.as_secs_f64()) }
}
