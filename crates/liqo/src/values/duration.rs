//! Durations as Go reads and prints them.

use std::str::FromStr;
use std::time::Duration;

/// A duration such as `10h`, `1m30s`, `1.5s` or `10h0m0s`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Span(pub(crate) Duration);

/// Nothing here waits for longer than a year.
const LONGEST: Duration = Duration::from_secs(366 * 24 * 3600);

/// Units with their seconds; the longer name of two that begin alike comes first.
const UNITS: [(&str, f64); 8] = [
    ("ns", 1e-9),
    ("us", 1e-6),
    ("µs", 1e-6),
    ("μs", 1e-6),
    ("ms", 1e-3),
    ("s", 1.0),
    ("m", 60.0),
    ("h", 3600.0),
];

impl FromStr for Span {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let refuse = || "expected a duration such as 30s, 1m30s or 10h".to_owned();
        let seconds = if text == "0" { Some(0.0) } else { seconds(text) };
        let span = Duration::try_from_secs_f64(seconds.ok_or_else(refuse)?).map_err(|_| refuse())?;
        if span > LONGEST {
            return Err("expected a duration of at most a year".to_owned());
        }
        Ok(Self(span))
    }
}

fn seconds(text: &str) -> Option<f64> {
    let mut rest = text;
    let mut total = 0.0;
    loop {
        let digits = rest.find(|character: char| !character.is_ascii_digit() && character != '.')?;
        let (number, behind) = rest.split_at(digits);
        let (unit, factor) = UNITS.into_iter().find(|(unit, _)| behind.starts_with(unit))?;
        total += number.parse::<f64>().ok()? * factor;
        rest = behind.strip_prefix(unit)?;
        if rest.is_empty() {
            return Some(total);
        }
    }
}
