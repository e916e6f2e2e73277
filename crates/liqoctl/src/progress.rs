//! Steps of a longer work, on standard error: a line per step, with the mark of how it ended.
//!
//! On a terminal the step under way is shown at once and its line is written anew until it ends. Elsewhere only ends
//! are written, so that logs of a pipeline have one line per step.

use std::io::Write;

use crate::style::{Mark, Style};

/// Goes back to the beginning of the line and empties it.
const REWRITE: &str = "\r\x1b[2K";

/// Steps of a longer work.
pub(crate) struct Progress<W: Write = std::io::Stderr> {
    style: Style,
    out: W,
    /// A line that is to be written anew is on the terminal.
    open: bool,
}

impl Progress {
    /// Steps on standard error.
    pub(crate) fn new(style: Style) -> Self {
        Self::to(style, std::io::stderr())
    }
}

impl<W: Write> Progress<W> {
    fn to(style: Style, out: W) -> Self {
        Self { style, out, open: false }
    }

    /// What is under way, or how far it is.
    pub(crate) fn busy(&mut self, text: &str) {
        if self.style.is_terminal() {
            self.write(format_args!("{REWRITE}{} {text}", self.style.mark(Mark::Busy)));
            self.open = true;
        }
    }

    /// What is still under way, for logs, in which lines are not written anew.
    pub(crate) fn remind(&mut self, text: &str) {
        if !self.style.is_terminal() {
            self.line(Mark::Busy, text);
        }
    }

    /// A step has ended well.
    pub(crate) fn done(&mut self, text: &str) {
        self.line(Mark::Good, text);
    }

    /// A step has ended, with something to know about it.
    pub(crate) fn warn(&mut self, text: &str) {
        self.line(Mark::Warning, text);
    }

    /// A step has failed.
    pub(crate) fn failed(&mut self, text: &str) {
        self.line(Mark::Bad, text);
    }

    /// More about the line above.
    pub(crate) fn detail(&mut self, text: &str) {
        let indented: String = text.lines().map(|line| format!("    {line}\n")).collect();
        let start = if self.open { REWRITE } else { "" };
        self.write(format_args!("{start}{}", self.style.dim(&indented)));
        self.open = false;
    }

    fn line(&mut self, mark: Mark, text: &str) {
        let start = if self.open { REWRITE } else { "" };
        self.write(format_args!("{start}{} {text}\n", self.style.mark(mark)));
        self.open = false;
    }

    /// Nobody is left to tell when standard error is closed; the work goes on.
    fn write(&mut self, text: std::fmt::Arguments<'_>) {
        let _ = self.out.write_fmt(text).and_then(|()| self.out.flush());
    }
}

impl<W: Write> Drop for Progress<W> {
    /// Leaves the cursor at the beginning of a line, whatever comes next.
    fn drop(&mut self) {
        if self.open {
            self.write(format_args!("\n"));
        }
    }
}

#[cfg(test)]
mod tests;
