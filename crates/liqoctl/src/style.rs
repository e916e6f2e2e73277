//! How things look: marks and colours, the same in all commands.

use std::io::IsTerminal;

use clap::ValueEnum;

/// When to use colours.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Colour {
    /// On a terminal
    Auto,
    /// Everywhere
    Always,
    /// Nowhere
    Never,
}

/// What a line is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mark {
    /// Done, or well.
    Good,
    /// Not as it should be, and not in the way either.
    Warning,
    /// Failed.
    Bad,
    /// Under way.
    Busy,
}

/// How one stream looks.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Style {
    colours: bool,
    terminal: bool,
}

const RESET: &str = "\x1b[0m";
const BOLD: &str = "\x1b[1m";
const DIM: &str = "\x1b[2m";
const RED: &str = "\x1b[31m";
const GREEN: &str = "\x1b[32m";
const YELLOW: &str = "\x1b[33m";
const CYAN: &str = "\x1b[36m";

impl Style {
    /// The look of this stream.
    pub(crate) fn of(stream: &impl IsTerminal, colour: Colour) -> Self {
        let terminal = stream.is_terminal();
        let colours = match colour {
            Colour::Auto => terminal,
            Colour::Always => true,
            Colour::Never => false,
        };
        Self { colours, terminal }
    }

    /// Neither colours nor a terminal.
    #[cfg(test)]
    pub(crate) const fn plain() -> Self {
        Self { colours: false, terminal: false }
    }

    /// Whether a line can be written anew.
    pub(crate) fn is_terminal(self) -> bool {
        self.terminal
    }

    /// The mark at the beginning of a line.
    pub(crate) fn mark(self, mark: Mark) -> String {
        let (sign, colour) = match mark {
            Mark::Good => ("✓", GREEN),
            Mark::Warning => ("!", YELLOW),
            Mark::Bad => ("✗", RED),
            Mark::Busy => ("…", CYAN),
        };
        self.paint(colour, sign)
    }

    /// A heading.
    pub(crate) fn bold(self, text: &str) -> String {
        self.paint(BOLD, text)
    }

    /// What is read last.
    pub(crate) fn dim(self, text: &str) -> String {
        self.paint(DIM, text)
    }

    fn paint(self, colour: &str, text: &str) -> String {
        if self.colours { format!("{colour}{text}{RESET}") } else { text.to_owned() }
    }
}

#[cfg(test)]
mod tests;
