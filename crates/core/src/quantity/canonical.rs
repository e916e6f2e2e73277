//! Writing a quantity: the largest unit that needs no fraction.

use std::fmt;

use super::{Format, NANOS_PER_UNIT, Quantity};

const DECIMAL_UNITS: [&str; 10] = ["n", "u", "m", "", "k", "M", "G", "T", "P", "E"];
const BINARY_UNITS: [&str; 7] = ["", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];

/// Where the empty unit stands among the decimal ones: nanos are three steps of a thousand below it.
const NANO_STEPS: usize = 3;

/// Below this many units a binary quantity has no binary unit to show.
const SMALLEST_BINARY: u128 = 1024;

impl fmt::Display for Quantity {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_zero() {
            return formatter.pad("0");
        }
        let text = match self.format {
            Format::BinarySi => self.whole_binary_units().map_or_else(|| self.decimal_text(), binary_text),
            Format::DecimalSi => self.decimal_text(),
            Format::DecimalExponent => self.exponent_text(),
        };
        let sign = if self.is_negative() { "-" } else { "" };
        // Padded as a whole, so that tables can align it.
        formatter.pad(&format!("{sign}{text}"))
    }
}

impl Quantity {
    /// The magnitude in units if binary units can show it exactly; small and fractional amounts fall back to
    /// decimal units.
    fn whole_binary_units(self) -> Option<u128> {
        let nanos = self.nanos.unsigned_abs();
        let units = nanos / NANOS_PER_UNIT.unsigned_abs();
        (nanos.is_multiple_of(NANOS_PER_UNIT.unsigned_abs()) && units >= SMALLEST_BINARY).then_some(units)
    }

    fn decimal_text(self) -> String {
        let (mantissa, steps) = remove_factors(self.nanos.unsigned_abs(), 1000, DECIMAL_UNITS.len() - 1);
        format!("{mantissa}{}", DECIMAL_UNITS[steps])
    }

    fn exponent_text(self) -> String {
        let (mantissa, steps) = remove_factors(self.nanos.unsigned_abs(), 1000, usize::MAX);
        match steps.cmp(&NANO_STEPS) {
            std::cmp::Ordering::Less => format!("{mantissa}e-{}", 3 * (NANO_STEPS - steps)),
            std::cmp::Ordering::Equal => mantissa.to_string(),
            std::cmp::Ordering::Greater => format!("{mantissa}e{}", 3 * (steps - NANO_STEPS)),
        }
    }
}

fn binary_text(units: u128) -> String {
    let (mantissa, steps) = remove_factors(units, SMALLEST_BINARY, BINARY_UNITS.len() - 1);
    format!("{mantissa}{}", BINARY_UNITS[steps])
}

/// Divides by `factor` as often as that leaves no remainder, at most `limit` times; `amount` is not zero.
fn remove_factors(amount: u128, factor: u128, limit: usize) -> (u128, usize) {
    let mut mantissa = amount;
    let mut times = 0;
    while times < limit && mantissa.is_multiple_of(factor) {
        mantissa /= factor;
        times += 1;
    }
    (mantissa, times)
}
