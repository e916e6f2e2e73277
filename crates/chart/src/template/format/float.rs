//! Numbers with a fraction, as Go writes them.

/// Go's `%g` writes an exponent from this one on if it chooses the number of digits itself.
const LARGE: i32 = 6;
/// Below this exponent `%g` writes it.
const SMALL: i32 = -4;

/// `%g`: as few digits as tell the number apart from its neighbours.
pub(crate) fn shortest(value: f64) -> String {
    let scientific = format!("{value:e}");
    let Some((digits, exponent)) = split(&scientific) else { return not_finite(value) };
    if (SMALL..LARGE).contains(&exponent) { format!("{value}") } else { with_exponent(digits, exponent) }
}

/// `%.3g`: this many digits, without zeros at the end.
pub(super) fn significant(value: f64, digits: usize) -> String {
    let digits = digits.max(1);
    let scientific = format!("{value:.*e}", digits - 1);
    let Some((mantissa, exponent)) = split(&scientific) else { return not_finite(value) };
    let trim = |number: &str| match number.contains('.') {
        true => number.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => number.to_owned(),
    };
    if exponent < SMALL || exponent >= digits as i32 {
        return with_exponent(&trim(mantissa), exponent);
    }
    let fraction = usize::try_from(digits as i32 - 1 - exponent).unwrap_or(0);
    trim(&format!("{value:.fraction$}"))
}

/// `%e`
pub(super) fn scientific(value: f64, precision: usize) -> String {
    let scientific = format!("{value:.precision$e}");
    split(&scientific).map_or_else(|| not_finite(value), |(digits, exponent)| with_exponent(digits, exponent))
}

/// `%f`
pub(super) fn fixed(value: f64, precision: usize) -> String {
    if value.is_finite() { format!("{value:.precision$}") } else { not_finite(value) }
}

fn split(scientific: &str) -> Option<(&str, i32)> {
    let (digits, exponent) = scientific.split_once('e')?;
    Some((digits, exponent.parse().ok()?))
}

fn with_exponent(digits: &str, exponent: i32) -> String {
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{digits}e{sign}{:02}", exponent.unsigned_abs())
}

fn not_finite(value: f64) -> String {
    if value.is_nan() {
        "NaN".into()
    } else if value > 0.0 {
        "+Inf".into()
    } else {
        "-Inf".into()
    }
}
