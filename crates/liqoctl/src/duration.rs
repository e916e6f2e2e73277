//! Durations as people write them: `100ms`, `1.5s`.

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

#[cfg(test)]
mod tests;
