//! An amount of money per period, exact.

use std::cmp::Ordering;
use std::fmt;

use super::Period;
use crate::quantity::Quantity;

/// The common denominator of all costs: thousandths of cores and 2³⁰ths of GiB are whole numbers of it.
const PARTS: u128 = 1000 << 30;
const NANOS_PER_UNIT: u128 = 1_000_000_000;

/// Steps in the unit that a price is for.
#[derive(Clone, Copy)]
pub(super) enum Unit {
    One,
    Thousand,
    Gibi,
}

/// So much money per period. Rates of different periods compare by what they cost in the long run: 24 per day equals
/// 1 per hour.
#[derive(Clone, Copy, Debug)]
pub struct Rate {
    /// Whole billionths of the currency's unit.
    nanos: u128,
    /// What is left, in `1 / PARTS` of a billionth; less than `PARTS`.
    parts: u128,
    period: Period,
}

impl Rate {
    pub(super) const fn nothing(period: Period) -> Self {
        Self { nanos: 0, parts: 0, period }
    }

    /// So much per period; `None` if it is negative.
    pub fn new(amount: Quantity, period: Period) -> Option<Self> {
        u128::try_from(amount.nanos()).ok().map(|nanos| Self { nanos, parts: 0, period })
    }

    /// A price, which is never negative.
    pub(super) fn of_price(price: Quantity, period: Period) -> Self {
        Self { nanos: price.nanos().unsigned_abs(), parts: 0, period }
    }

    /// Adds the cost of so many steps of a resource; `None` beyond all reckoning.
    pub(super) fn plus(self, price: Quantity, steps: u128, unit: Unit) -> Option<Self> {
        let divisor = match unit {
            Unit::One => 1,
            Unit::Thousand => 1000,
            Unit::Gibi => 1 << 30,
        };
        let product = price.nanos().unsigned_abs().checked_mul(steps)?;
        let parts = self.parts + product % divisor * (PARTS / divisor);
        let nanos = self.nanos.checked_add(product / divisor)?.checked_add(parts / PARTS)?;
        Some(Self { nanos, parts: parts % PARTS, period: self.period })
    }

    /// The period.
    pub const fn period(self) -> Period {
        self.period
    }

    /// Whether it is free.
    pub const fn is_zero(self) -> bool {
        self.nanos == 0 && self.parts == 0
    }

    /// The amount per period in billionths of the currency's unit, a part of one counting as a whole one.
    pub const fn nanos(self) -> u128 {
        self.nanos.saturating_add((self.parts > 0) as u128)
    }

    /// This rate's billionths times so many seconds, as (high, low, parts).
    fn times(self, seconds: u64) -> (u128, u128, u128) {
        let seconds = u128::from(seconds);
        let parts = self.parts * seconds;
        let (high, low) = widening_multiply(self.nanos, seconds);
        let (low, carry) = low.overflowing_add(parts / PARTS);
        (high + u128::from(carry), low, parts % PARTS)
    }
}

/// The product in two halves; `factor` is below 2^64.
const fn widening_multiply(amount: u128, factor: u128) -> (u128, u128) {
    const LOW_HALF: u128 = u64::MAX as u128;
    let low = (amount & LOW_HALF) * factor;
    let high = (amount >> 64) * factor + (low >> 64);
    (high >> 64, (high << 64) | (low & LOW_HALF))
}

impl Ord for Rate {
    fn cmp(&self, other: &Self) -> Ordering {
        self.times(other.period.seconds()).cmp(&other.times(self.period.seconds()))
    }
}

impl PartialOrd for Rate {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Rate {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Rate {}

impl fmt::Display for Rate {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (units, nanos) = (self.nanos() / NANOS_PER_UNIT, self.nanos() % NANOS_PER_UNIT);
        let decimals = format!("{nanos:09}");
        let decimals = decimals.trim_end_matches('0');
        let point = if decimals.is_empty() { "" } else { "." };
        write!(formatter, "{units}{point}{decimals} per {}", self.period)
    }
}
