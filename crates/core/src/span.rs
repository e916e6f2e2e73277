//! Lengths of time as people write them: `30s`, `1h30m`, `30d`.

use std::fmt;
use std::num::NonZeroU64;
use std::str::FromStr;

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

use crate::quantity::Excerpt;

#[cfg(test)]
mod tests;

const UNITS: [(char, u64); 5] = [('w', 604_800), ('d', 86_400), ('h', 3_600), ('m', 60), ('s', 1)];

/// A hundred years: longer than anything here is meant to last, and far from the end of the calendar.
const LONGEST: u64 = 100 * 365 * 86_400;

/// A length of time in whole seconds, more than none and at most a hundred years.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Span(NonZeroU64);

/// A text that is no length of time.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{0} is not a length of time: write whole numbers with units, such as 30s, 90m, 1h30m, 30d or 2w; more than none \
     and at most 100 years"
)]
pub struct InvalidSpan(Excerpt);

impl Span {
    /// So many seconds; `None` for zero and for more than a hundred years.
    pub const fn from_seconds(seconds: u64) -> Option<Self> {
        match NonZeroU64::new(seconds) {
            Some(seconds) if seconds.get() <= LONGEST => Some(Self(seconds)),
            _ => None,
        }
    }

    /// The allowed length that is nearest to so many seconds.
    pub const fn clamped(seconds: u64) -> Self {
        let seconds = if seconds > LONGEST { LONGEST } else { seconds };
        match NonZeroU64::new(seconds) {
            Some(seconds) => Self(seconds),
            None => Self(NonZeroU64::MIN),
        }
    }

    /// The whole length in seconds.
    pub const fn seconds(self) -> u64 {
        self.0.get()
    }

    /// This long after `time`, or the end of the calendar.
    pub fn after(self, time: Timestamp) -> Timestamp {
        time.saturating_add(self.duration()).unwrap_or(Timestamp::MAX)
    }

    /// This long before `time`, or the beginning of the calendar.
    pub fn before(self, time: Timestamp) -> Timestamp {
        time.saturating_sub(self.duration()).unwrap_or(Timestamp::MIN)
    }

    /// The same length for reckoning.
    pub fn duration(self) -> SignedDuration {
        SignedDuration::from_secs(self.0.get().cast_signed())
    }
}

impl FromStr for Span {
    type Err = InvalidSpan;

    fn from_str(text: &str) -> Result<Self, InvalidSpan> {
        parse(text).and_then(Self::from_seconds).ok_or_else(|| InvalidSpan(Excerpt::of(text)))
    }
}

fn parse(text: &str) -> Option<u64> {
    let mut total = 0_u64;
    let mut rest = text;
    while !rest.is_empty() {
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        let (number, after) = rest.split_at(digits);
        let unit = after.chars().next()?;
        let (_, seconds) = UNITS.iter().find(|(letter, _)| *letter == unit)?;
        total = total.checked_add(number.parse::<u64>().ok()?.checked_mul(*seconds)?)?;
        rest = &after[1..];
    }
    Some(total)
}

impl TryFrom<String> for Span {
    type Error = InvalidSpan;

    fn try_from(text: String) -> Result<Self, InvalidSpan> {
        text.parse()
    }
}

impl From<Span> for String {
    fn from(span: Span) -> Self {
        span.to_string()
    }
}

impl fmt::Display for Span {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut rest = self.0.get();
        // Weeks only where they fit exactly: "30d" says more than "4w2d".
        let weeks = rest.is_multiple_of(UNITS[0].1);
        let mut text = String::new();
        for (letter, seconds) in UNITS.into_iter().skip(usize::from(!weeks)) {
            if rest >= seconds {
                text.push_str(&format!("{}{letter}", rest / seconds));
                rest %= seconds;
            }
        }
        formatter.pad(&text)
    }
}
