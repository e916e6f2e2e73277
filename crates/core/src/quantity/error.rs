//! Why a text is not a quantity, in words for the person who wrote it.

use std::fmt;

/// A text longer than this is cut in messages: it may come from anywhere and have any length.
const SHOWN_CHARACTERS: usize = 40;

/// A text that is not a quantity, and what is wrong with it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{text} is not a quantity: {reason}. Write a number and, if needed, a unit: 500m, 2, 1.5Gi, 10G or 2e3"
)]
pub struct ParseQuantityError {
    text: Excerpt,
    reason: Reason,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Reason {
    /// There is no text at all.
    Empty,
    /// A character that no quantity has at this place (counted in characters, from 1).
    Character { character: char, position: usize },
    /// What follows the number is no unit.
    Unit(Excerpt),
    /// A unit without a number before it.
    NoNumber,
    /// A JSON number that does not carry all its digits.
    Inexact,
}

impl ParseQuantityError {
    pub(super) fn new(text: &str, reason: Reason) -> Self {
        Self { text: Excerpt::of(text), reason }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => write!(formatter, "there is no number in it"),
            Self::Character { character, position } => {
                write!(formatter, "character {position} is {character:?}, which no number or unit has there")
            }
            Self::Unit(unit) => match unit.similar_units() {
                Some((decimal, binary)) => write!(
                    formatter,
                    "{unit} is not a unit; {decimal} is for powers of 1000, {binary} for powers of 1024"
                ),
                None => write!(formatter, "{unit} is not a unit (n u m k M G T P E, Ki Mi Gi Ti Pi Ei, e3)"),
            },
            Self::NoNumber => write!(formatter, "there is no number before the unit"),
            Self::Inexact => write!(
                formatter,
                "a number without quotes carries only 15 digits exactly; put it in quotes to keep them all"
            ),
        }
    }
}

/// The beginning of a text from outside, safe to print.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Excerpt {
    shown: Box<str>,
    cut: bool,
}

impl Excerpt {
    pub(crate) fn of(text: &str) -> Self {
        let shown: String = text.chars().take(SHOWN_CHARACTERS).collect();
        Self { cut: shown.len() < text.len(), shown: shown.into_boxed_str() }
    }

    /// The units somebody who wrote `GB` or `K` can have meant.
    fn similar_units(&self) -> Option<(&'static str, &'static str)> {
        match self.shown.chars().next()? {
            'k' | 'K' => Some(("k", "Ki")),
            'm' | 'M' => Some(("M", "Mi")),
            'g' | 'G' => Some(("G", "Gi")),
            't' | 'T' => Some(("T", "Ti")),
            'p' | 'P' => Some(("P", "Pi")),
            _ => None,
        }
    }
}

impl fmt::Display for Excerpt {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Debug escapes what would garble a terminal or a log line.
        write!(formatter, "{:?}{}", self.shown, if self.cut { "…" } else { "" })
    }
}
