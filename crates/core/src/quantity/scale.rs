//! Scaling by a fraction, with the rounding said aloud: "90 % of one GPU" is one or none because somebody chose.

use std::fmt;

use super::{NANOS_PER_UNIT, Quantity};

/// A fraction that quantities are scaled by, such as 9/10. Always in lowest terms.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Ratio {
    numerator: u64,
    denominator: u64,
}

/// The step a result is a whole number of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Granularity {
    /// Billionths, the finest a quantity can be.
    Nano,
    /// Millionths.
    Micro,
    /// Thousandths: CPU is shared in millicores.
    Milli,
    /// Whole units: bytes, pods, GPUs.
    Whole,
}

/// Where a result goes that lies between two steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Rounding {
    /// To the smaller amount: never give more than the share.
    TowardZero,
    /// To the larger amount: never give less than the share.
    AwayFromZero,
    /// To the nearer one; from the middle, to the larger amount.
    Nearest,
}

/// How a result is rounded: to which step, and in which direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RoundTo {
    /// The step.
    pub granularity: Granularity,
    /// The direction.
    pub rounding: Rounding,
}

impl Ratio {
    /// All of it.
    pub const ONE: Self = Self { numerator: 1, denominator: 1 };

    /// `numerator / denominator`; `None` if the denominator is zero.
    pub fn new(numerator: u64, denominator: u64) -> Option<Self> {
        let divisor = greatest_common_divisor(numerator, denominator);
        (denominator != 0)
            .then(|| Self { numerator: numerator / divisor, denominator: denominator / divisor })
    }

    /// So many hundredths; more than 100 is allowed (overcommitment).
    pub fn percent(percent: u32) -> Self {
        let divisor = greatest_common_divisor(percent.into(), 100);
        Self { numerator: u64::from(percent) / divisor, denominator: 100 / divisor }
    }

    /// The upper number.
    pub const fn numerator(self) -> u64 {
        self.numerator
    }

    /// The lower number, never zero.
    pub const fn denominator(self) -> u64 {
        self.denominator
    }
}

impl fmt::Display for Ratio {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}/{}", self.numerator, self.denominator)
    }
}

impl Granularity {
    pub(crate) const fn nanos(self) -> u128 {
        match self {
            Self::Nano => 1,
            Self::Micro => 1_000,
            Self::Milli => 1_000_000,
            Self::Whole => NANOS_PER_UNIT.unsigned_abs(),
        }
    }
}

impl Rounding {
    fn goes_up(self, remainder: u128, divisor: u128) -> bool {
        match self {
            Self::TowardZero => false,
            Self::AwayFromZero => remainder > 0,
            Self::Nearest => remainder >= divisor - remainder,
        }
    }
}

impl RoundTo {
    /// Rounds to a multiple of `granularity` in the direction of `rounding`.
    pub const fn new(granularity: Granularity, rounding: Rounding) -> Self {
        Self { granularity, rounding }
    }
}

impl Quantity {
    /// This quantity times `ratio`, rounded once and exactly as told; `None` beyond [`Quantity::MAX`].
    pub fn scale(self, ratio: Ratio, to: RoundTo) -> Option<Self> {
        self.scale_to(ratio, to.granularity.nanos(), to.rounding)
    }

    /// This quantity times `ratio`, rounded once to a multiple of `portion` billionths; `None` beyond
    /// [`Quantity::MAX`] and where the fraction has too many digits to be reckoned with.
    pub(crate) fn scale_to(self, ratio: Ratio, portion: u128, rounding: Rounding) -> Option<Self> {
        let divisor = u128::from(ratio.denominator).checked_mul(portion)?;
        if divisor == 0 || divisor >= 1 << 96 {
            return None;
        }
        let (portions, remainder) = multiply_divide(self.nanos.unsigned_abs(), ratio.numerator, divisor)?;
        let up = rounding.goes_up(remainder, divisor);
        let magnitude = i128::try_from(portions.checked_add(u128::from(up))?.checked_mul(portion)?).ok()?;
        Self::from_nanos(if self.is_negative() { -magnitude } else { magnitude }, self.format)
    }

    /// The multiple of a step next to this quantity; `None` beyond [`Quantity::MAX`].
    pub fn round(self, to: RoundTo) -> Option<Self> {
        self.scale(Ratio::ONE, to)
    }
}

/// Quotient and remainder of `amount * factor / divisor`; `None` if the quotient needs more than 128 bits.
///
/// The product may need 192 bits, so that the division goes down in digits of 32 bits. A divisor below 2^96
/// leaves remainders that take another digit without overflowing; the caller sees to that.
fn multiply_divide(amount: u128, factor: u64, divisor: u128) -> Option<(u128, u128)> {
    const LOW_HALF: u128 = u64::MAX as u128;
    let factor = u128::from(factor);

    let low = (amount & LOW_HALF) * factor;
    let high = (amount >> 64) * factor + (low >> 64);
    let (mut quotient, mut remainder) = (high / divisor, high % divisor);
    for digit in [(low & LOW_HALF) >> 32, low & u128::from(u32::MAX)] {
        let rest = (remainder << 32) | digit;
        quotient = quotient.checked_mul(1 << 32)?.checked_add(rest / divisor)?;
        remainder = rest % divisor;
    }
    Some((quotient, remainder))
}

fn greatest_common_divisor(a: u64, b: u64) -> u64 {
    let (mut a, mut b) = (a, b);
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}
