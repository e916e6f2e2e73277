//! Durations as people write them: `100ms`, `1.5s`, `10m`, `1h30m`.

use std::time::Duration;

/// A delay beyond this is a cut; TCP has long given up.
const LONGEST: Duration = Duration::from_secs(60);

/// Parses a delay for the network.
pub(crate) fn parse_delay(text: &str) -> Result<Duration, String> {
    let refuse = || format!("{text:?} is no delay; write it like 100ms or 1.5s");
    let (number, unit) = text.split_at(text.find(|c: char| c.is_ascii_alphabetic()).ok_or_else(refuse)?);
    let unit = match unit {
        "us" => 1e-6,
        "ms" => 1e-3,
        "s" => 1.0,
        _ => return Err(refuse()),
    };
    let seconds = number.parse::<f64>().map_err(|_| refuse())? * unit;
    let delay = Duration::try_from_secs_f64(seconds).map_err(|_| refuse())?;
    if delay.is_zero() || delay > LONGEST {
        return Err(format!("{text:?}: a delay is more than nothing and at most {} s", LONGEST.as_secs()));
    }
    Ok(delay)
}

/// A wait or an age beyond this is a slip of the finger.
const LONGEST_SPAN: Duration = Duration::from_secs(366 * 24 * 60 * 60);

/// Parses a span of time as kubectl takes it, with days besides: `30s`, `10m`, `1h30m`, `2d`.
pub(crate) fn parse_span(text: &str) -> Result<Duration, String> {
    let refuse = || format!("{text:?} is no duration; write it like 30s, 10m or 1h30m");
    let mut rest = text;
    let mut seconds = 0.0;
    while !rest.is_empty() {
        let (number, more) = rest.split_at(rest.find(|c: char| c.is_ascii_alphabetic()).ok_or_else(refuse)?);
        let end = more.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(more.len());
        let (unit, more) = more.split_at(end);
        let unit = match unit {
            "ms" => 1e-3,
            "s" => 1.0,
            "m" => 60.0,
            "h" => 3600.0,
            "d" => 86_400.0,
            _ => return Err(refuse()),
        };
        seconds += number.parse::<f64>().map_err(|_| refuse())? * unit;
        rest = more;
    }
    let span = Duration::try_from_secs_f64(seconds).map_err(|_| refuse())?;
    if span.is_zero() || span > LONGEST_SPAN {
        return Err(format!(
            "{text:?}: more than nothing and at most a year is expected, like 30s, 10m or 1h30m"
        ));
    }
    Ok(span)
}

#[cfg(test)]
mod tests;
