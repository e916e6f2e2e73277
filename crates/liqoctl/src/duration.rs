//! Durations as people write them: `100ms`, `1.5s`, `10m`, `1h30m`.

use std::time::Duration;

/// A delay beyond this is a cut; TCP has long given up.
const LONGEST: Duration = Duration::from_secs(60);

/// Units, and their seconds.
type Units = &'static [(&'static str, f64)];

const OF_DELAYS: Units = &[("us", 1e-6), ("ms", 1e-3), ("s", 1.0)];
const OF_SPANS: Units = &[("ms", 1e-3), ("s", 1.0), ("m", 60.0), ("h", 3600.0), ("d", 86_400.0)];

/// Parses a delay for the network.
pub(crate) fn parse_delay(text: &str) -> Result<Duration, String> {
    let delay =
        read(text, OF_DELAYS).ok_or_else(|| format!("{text:?} is no delay; write it like 100ms or 1.5s"))?;
    if delay.is_zero() || delay > LONGEST {
        return Err(format!("{text:?}: a delay is more than nothing and at most {} s", LONGEST.as_secs()));
    }
    Ok(delay)
}

/// A wait or an age beyond this is a slip of the finger.
const LONGEST_SPAN: Duration = Duration::from_secs(366 * 24 * 60 * 60);

/// Parses a span of time as kubectl takes it, with days besides: `30s`, `10m`, `1h30m`, `2d`.
pub(crate) fn parse_span(text: &str) -> Result<Duration, String> {
    let span = read(text, OF_SPANS)
        .ok_or_else(|| format!("{text:?} is no duration; write it like 30s, 10m or 1h30m"))?;
    if span.is_zero() || span > LONGEST_SPAN {
        return Err(format!(
            "{text:?}: more than nothing and at most a year is expected, like 30s, 10m or 1h30m"
        ));
    }
    Ok(span)
}

/// Numbers with units, one after the other; `None` if it is anything else.
fn read(text: &str, units: Units) -> Option<Duration> {
    let letter = |c: char| c.is_ascii_alphabetic();
    let (mut rest, mut seconds) = (text, 0.0);
    while !rest.is_empty() {
        let (number, more) = rest.split_at(rest.find(letter)?);
        let (unit, more) = more.split_at(more.find(|c| !letter(c)).unwrap_or(more.len()));
        let (_, factor) = units.iter().find(|(known, _)| *known == unit)?;
        seconds += number.parse::<f64>().ok().filter(|number| !number.is_sign_negative())? * factor;
        rest = more;
    }
    let read = Duration::try_from_secs_f64(seconds).ok();
    read.filter(|_| !text.is_empty())
}

#[cfg(test)]
mod tests;
