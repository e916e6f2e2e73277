//! The Kubernetes quantity: `500m`, `1.5Gi`, `2e3`.

use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::ops::Neg;

mod canonical;
mod error;
mod parse;
mod scale;
mod text;

#[cfg(test)]
mod tests;

pub(crate) use error::Excerpt;
pub use error::ParseQuantityError;
pub use scale::{Granularity, Ratio, RoundTo, Rounding};

/// Billionths in one unit: Kubernetes knows nothing finer.
const NANOS_PER_UNIT: i128 = 1_000_000_000;
const NANOS_PER_MILLI: i128 = 1_000_000;

/// The largest magnitude, 10²⁹ units. It leaves an `i128` of nanos room to notice an overflow, is far beyond
/// anything a cluster can have, and is a round number, so that a capped quantity looks capped.
const LIMIT: i128 = 10_i128.pow(38);

/// An exact amount of something, as Kubernetes writes it.
///
/// Two quantities are equal when their amounts are: `1Gi` equals `1024Mi`. The [`Format`] only decides how the
/// amount is written.
///
/// # Where it differs from Kubernetes' library
///
/// Texts are accepted, refused, rounded and written as `resource.Quantity` of k8s.io/apimachinery does it, which
/// thousands of recorded answers of that library check (`testdata/quantity-vectors.jsonl`). It differs on
/// purpose where the library's answer depends on how it stores the number inside, or is plainly wrong:
///
/// | what | the library | here |
/// |---|---|---|
/// | more than 10²⁹ units (`1e30`) | grows without limit | capped at [`Quantity::MAX`], as the library caps binary units at 2⁶³−1 |
/// | exponent beyond 32 bits (`1e4294967296`) | keeps the low 32 bits: `1` | taken at its word: capped, or rounded up to `1n` |
/// | 10²¹ and its multiples in decimal units, 2⁷⁰ in binary ones | written without a unit: `1000E` becomes `1` | stays at the largest unit: `1000E` |
/// | a text such as `+1` or `1.500` | `String()` may hand it back as it came | always written canonically: `1`, `1500m` |
/// | [`Quantity::value`] out of range of `i64` | 0 or the low 64 bits | the nearest `i64` |
/// | [`Quantity::value`] of a negative number written with many digits or a binary fraction (`-1.3Ki`, `-5Ei`) | rounded towards zero, or the low 64 bits | away from zero, as its documentation says |
/// | a JSON number of more than 15 digits with a fraction or beyond `u64` | read digit by digit | refused with the advice to quote it: JSON readers hand over a float |
#[derive(Clone, Copy)]
pub struct Quantity {
    nanos: i128,
    format: Format,
}

/// The family of units a quantity is written in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Format {
    /// Powers of 1024: `512Mi`.
    BinarySi,
    /// Powers of 1000: `500m`, `2`, `10G`.
    #[default]
    DecimalSi,
    /// Powers of ten as an exponent: `12e6`.
    DecimalExponent,
}

impl Quantity {
    /// Nothing.
    pub const ZERO: Self = Self { nanos: 0, format: Format::DecimalSi };
    /// The largest quantity, 10²⁹ units; a text that says more is capped here.
    pub const MAX: Self = Self { nanos: LIMIT, format: Format::DecimalSi };
    /// The most negative quantity, as far from zero as [`Quantity::MAX`].
    pub const MIN: Self = Self { nanos: -LIMIT, format: Format::DecimalSi };

    /// This many whole units: cores, bytes, GPUs.
    pub const fn from_units(units: i64, format: Format) -> Self {
        Self { nanos: units as i128 * NANOS_PER_UNIT, format }
    }

    /// This many thousandths of a unit: millicores.
    pub const fn from_millis(millis: i64, format: Format) -> Self {
        Self { nanos: millis as i128 * NANOS_PER_MILLI, format }
    }

    /// This many billionths of a unit; `None` beyond [`Quantity::MIN`] and [`Quantity::MAX`].
    pub fn from_nanos(nanos: i128, format: Format) -> Option<Self> {
        (-LIMIT..=LIMIT).contains(&nanos).then_some(Self { nanos, format })
    }

    /// The exact amount in billionths of a unit.
    pub const fn nanos(self) -> i128 {
        self.nanos
    }

    /// How this quantity is written.
    pub const fn format(self) -> Format {
        self.format
    }

    /// The same amount, written in another way.
    #[must_use]
    pub const fn with_format(self, format: Format) -> Self {
        Self { format, ..self }
    }

    /// The amount in whole units, rounded away from zero (so that "a bit" is never nothing), and the nearest
    /// `i64` if there are more than that holds.
    pub fn value(self) -> i64 {
        saturate(divide_away_from_zero(self.nanos, NANOS_PER_UNIT))
    }

    /// The amount in thousandths, rounded and limited as [`Quantity::value`].
    pub fn milli_value(self) -> i64 {
        saturate(divide_away_from_zero(self.nanos, NANOS_PER_MILLI))
    }

    /// Whether there is nothing.
    pub const fn is_zero(self) -> bool {
        self.nanos == 0
    }

    /// Whether there is more than nothing.
    pub const fn is_positive(self) -> bool {
        self.nanos > 0
    }

    /// Whether there is less than nothing.
    pub const fn is_negative(self) -> bool {
        self.nanos < 0
    }

    /// -1, 0 or 1: the sign of the amount.
    pub const fn signum(self) -> i8 {
        self.nanos.signum() as i8
    }

    /// The sum, or `None` beyond [`Quantity::MAX`]. It is written like `self`, or like `other` if `self` is zero.
    pub fn checked_add(self, other: Self) -> Option<Self> {
        Self::from_nanos(self.nanos.checked_add(other.nanos)?, self.format_with(other))
    }

    /// The difference, or `None` beyond the limits. It is written like `self`, or like `other` if `self` is zero.
    pub fn checked_sub(self, other: Self) -> Option<Self> {
        self.checked_add(-other)
    }

    /// The sum, or the limit that it is beyond.
    #[must_use]
    pub fn saturating_add(self, other: Self) -> Self {
        let nanos = self.nanos.saturating_add(other.nanos).clamp(-LIMIT, LIMIT);
        Self { nanos, format: self.format_with(other) }
    }

    /// What is left after taking `other` away: the difference, or zero if there is not enough.
    #[must_use]
    pub fn sub_to_zero(self, other: Self) -> Self {
        let left = self.saturating_add(-other);
        Self { nanos: left.nanos.max(0), ..left }
    }

    /// Zero has no format of its own to keep.
    const fn format_with(self, other: Self) -> Format {
        if self.is_zero() { other.format } else { self.format }
    }
}

fn divide_away_from_zero(amount: i128, divisor: i128) -> i128 {
    let quotient = amount / divisor;
    if amount % divisor == 0 { quotient } else { quotient + amount.signum() }
}

fn saturate(amount: i128) -> i64 {
    i64::try_from(amount).unwrap_or(if amount < 0 { i64::MIN } else { i64::MAX })
}

impl Neg for Quantity {
    type Output = Self;

    fn neg(self) -> Self {
        // The limits are symmetric, so that this cannot overflow.
        Self { nanos: -self.nanos, ..self }
    }
}

impl Default for Quantity {
    fn default() -> Self {
        Self::ZERO
    }
}

impl PartialEq for Quantity {
    fn eq(&self, other: &Self) -> bool {
        self.nanos == other.nanos
    }
}

impl Eq for Quantity {}

impl Hash for Quantity {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.nanos.hash(state);
    }
}

impl PartialOrd for Quantity {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Quantity {
    fn cmp(&self, other: &Self) -> Ordering {
        self.nanos.cmp(&other.nanos)
    }
}

impl fmt::Debug for Quantity {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Quantity({self})")
    }
}
