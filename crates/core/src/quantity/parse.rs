//! Reading a quantity.
//!
//! Time is linear in the text and memory constant, whatever the text says: `1e999999999` is as cheap as `1`.

use std::str::FromStr;

use super::error::{Excerpt, ParseQuantityError, Reason};
use super::{Format, LIMIT, NANOS_PER_UNIT, Quantity};

/// Binary quantities are capped at what an `i64` holds, as Kubernetes does it.
const BINARY_LIMIT: i128 = i64::MAX as i128 * NANOS_PER_UNIT;

/// Decimal places of a quantity.
const NANO_DIGITS: i64 = 9;

/// A text taken apart: `-12.50Mi` is negative, `12`, `50`, `Mi`.
struct Parts<'a> {
    negative: bool,
    whole: &'a str,
    fraction: &'a str,
    unit: &'a str,
}

#[derive(Clone, Copy)]
enum Unit {
    Decimal { exponent: i64, format: Format },
    Binary { shift: u32 },
}

impl FromStr for Quantity {
    type Err = ParseQuantityError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let refuse = |reason| ParseQuantityError::new(text, reason);
        if text.is_empty() {
            return Err(refuse(Reason::Empty));
        }
        let parts = Parts::of(text);
        let unit = Unit::of(parts.unit).ok_or_else(|| refuse(unit_reason(text, parts.unit)))?;
        if parts.has_no_digit() && !unit.may_stand_alone() {
            return Err(refuse(Reason::NoNumber));
        }
        Ok(parts.amount_in(unit))
    }
}

impl<'a> Parts<'a> {
    fn of(text: &'a str) -> Self {
        let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
        let (whole, rest) = split_digits(unsigned);
        let (fraction, unit) = rest.strip_prefix('.').map_or(("", rest), split_digits);
        Self { negative: text.starts_with('-'), whole, fraction, unit }
    }

    fn has_no_digit(&self) -> bool {
        self.whole.is_empty() && self.fraction.is_empty()
    }

    fn amount_in(&self, unit: Unit) -> Quantity {
        let (magnitude, format) = match unit {
            Unit::Decimal { exponent, format } => (self.decimal_nanos(exponent), format),
            Unit::Binary { shift } => {
                let nanos = self.binary_nanos(shift);
                // Less than one unit has no binary form; Kubernetes forgets that it was asked for one.
                let format =
                    if (1..NANOS_PER_UNIT).contains(&nanos) { Format::DecimalSi } else { Format::BinarySi };
                (nanos, format)
            }
        };
        Quantity { nanos: if self.negative { -magnitude } else { magnitude }, format }
    }

    /// The digits times 10^exponent in nanos: rounded up if finer than that, capped if larger than the limit.
    fn decimal_nanos(&self, exponent: i64) -> i128 {
        let digits = || digit_values(self.whole).chain(digit_values(self.fraction));
        let given = length(self.whole).saturating_add(length(self.fraction));
        let kept = length(self.whole).saturating_add(exponent).saturating_add(NANO_DIGITS).max(0);

        let mut nanos = 0_i128;
        for digit in digits().take(usize::try_from(kept).unwrap_or(usize::MAX)) {
            nanos = nanos.saturating_mul(10).saturating_add(digit);
            if nanos > LIMIT {
                return LIMIT;
            }
        }
        if nanos > 0 {
            for _ in given..kept {
                nanos = nanos.saturating_mul(10);
                if nanos > LIMIT {
                    return LIMIT;
                }
            }
        }
        let cut_off = digits().skip(usize::try_from(kept).unwrap_or(usize::MAX)).any(|digit| digit > 0);
        (nanos + i128::from(cut_off)).min(LIMIT)
    }

    /// The digits times 2^shift in nanos: rounded up if finer than that, capped if larger than the limit.
    fn binary_nanos(&self, shift: u32) -> i128 {
        let unit_nanos = NANOS_PER_UNIT << shift;

        let mut whole = 0;
        for digit in digit_values(self.whole) {
            whole = whole * 10 + digit;
            if whole > BINARY_LIMIT / unit_nanos {
                return BINARY_LIMIT;
            }
        }

        // Multiplies the fraction as on paper, last digit first: what is carried past the point is the whole
        // part of the product, and any digit left behind means that the product has a fraction itself.
        let mut carry = 0;
        let mut cut_off = false;
        for digit in digit_values(self.fraction).rev() {
            carry += digit * unit_nanos;
            cut_off |= carry % 10 != 0;
            carry /= 10;
        }
        (whole * unit_nanos + carry + i128::from(cut_off)).min(BINARY_LIMIT)
    }
}

impl Unit {
    fn of(text: &str) -> Option<Self> {
        let decimal = |exponent| Some(Self::Decimal { exponent, format: Format::DecimalSi });
        let binary = |shift| Some(Self::Binary { shift });
        match text {
            "n" => decimal(-9),
            "u" => decimal(-6),
            "m" => decimal(-3),
            "" => decimal(0),
            "k" => decimal(3),
            "M" => decimal(6),
            "G" => decimal(9),
            "T" => decimal(12),
            "P" => decimal(15),
            "E" => decimal(18),
            "Ki" => binary(10),
            "Mi" => binary(20),
            "Gi" => binary(30),
            "Ti" => binary(40),
            "Pi" => binary(50),
            "Ei" => binary(60),
            _ => {
                let exponent = text.strip_prefix(['e', 'E'])?.parse().ok()?;
                Some(Self::Decimal { exponent, format: Format::DecimalExponent })
            }
        }
    }

    /// Whether Kubernetes reads the unit without a number as zero. It has no reason to, and no clear rule, but an
    /// object that it admits must not be unreadable to us.
    fn may_stand_alone(self) -> bool {
        match self {
            Self::Decimal { exponent, .. } => exponent >= -NANO_DIGITS,
            Self::Binary { shift } => shift <= 40,
        }
    }
}

fn split_digits(text: &str) -> (&str, &str) {
    text.split_at(text.bytes().take_while(u8::is_ascii_digit).count())
}

fn digit_values(digits: &str) -> impl DoubleEndedIterator<Item = i128> {
    digits.bytes().map(|digit| i128::from(digit - b'0'))
}

fn length(digits: &str) -> i64 {
    i64::try_from(digits.len()).unwrap_or(i64::MAX)
}

/// What to say about a unit that is none: often it is only one character that does not belong there.
fn unit_reason(text: &str, unit: &str) -> Reason {
    let belongs = |character: char| character.is_ascii_alphanumeric() || "+-".contains(character);
    let before = text.chars().count() - unit.chars().count();
    match unit.chars().enumerate().find(|(_, character)| !belongs(*character)) {
        Some((index, character)) => Reason::Character { character, position: before + index + 1 },
        None => Reason::Unit(Excerpt::of(unit)),
    }
}
