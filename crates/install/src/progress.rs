//! Telling the one who waits how far it is.

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
