//! Prices, and what a list of resources costs: exact, whatever the period.
//!
//! A price is for one **unit** of a resource and one **period**. The unit is a core of CPU, a GiB of everything that
//! is counted in bytes (a byte's price would have too many zeros to write), and one of everything else.
//!
//! A month is 730 hours and a year 8760, as on the bills of clouds, so that periods convert exactly: 10 per hour is
//! 7300 per month. Leap years and long months are nobody's advantage.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::quantity::{Excerpt, Quantity};
use crate::resources::{ResourceName, Resources};
use crate::span::{InvalidSpan, Span};

mod rate;

#[cfg(test)]
mod tests;

pub use rate::Rate;

/// The highest price of a unit, a thousand million: beyond it somebody mistyped or wants to make us overflow.
const HIGHEST_PRICE: Quantity = Quantity::from_units(1_000_000_000, crate::Format::DecimalSi);

/// Resources with a price; as many as a list of resources may have in an object.
const MOST_PRICES: usize = 64;

/// The largest amount that can be priced, in the resource's own [step](ResourceName::granularity): an exabyte of
/// memory, a million million cores.
const LARGEST_AMOUNT: u128 = 1_000_000_000_000_000_000;

/// A currency: `EUR`, `USD`, or a name of one's own such as `CREDITS`. Cheap to clone.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Currency(Arc<str>);

/// What a price is for: an hour, a month, or any other length of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Period(Span);

/// What a unit of each resource costs per period. A resource without a price is free.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Prices {
    currency: Currency,
    period: Period,
    per_unit: BTreeMap<ResourceName, Quantity>,
}

/// Prices that nobody should reckon with, or amounts that cannot be priced.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(transparent)]
pub struct InvalidPrice(#[from] Reason);

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
enum Reason {
    #[error(
        "{0} is not a currency: expected 3 to 12 capital letters or digits, beginning with a letter, such as EUR"
    )]
    Currency(Excerpt),
    #[error("{0}; or one of Hourly, Daily, Weekly, Monthly and Yearly")]
    Period(InvalidSpan),
    /// It would pay the buyer.
    #[error("the price of {0} is {1}; it must not be negative")]
    Negative(ResourceName, Quantity),
    #[error("the price of {0} is {1}; the highest allowed is {HIGHEST_PRICE}")]
    High(ResourceName, Quantity),
    #[error("{0} resources have a price; at most {MOST_PRICES} are allowed")]
    Many(usize),
    #[error("{1} of {0} cannot be priced: the amount must be between zero and an exabyte or its like")]
    Amount(ResourceName, Quantity),
}

impl Currency {
    /// The currency as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for Currency {
    type Err = InvalidPrice;

    fn from_str(text: &str) -> Result<Self, InvalidPrice> {
        let fine = (3..=12).contains(&text.len())
            && text.starts_with(|first: char| first.is_ascii_uppercase())
            && text.bytes().all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit());
        fine.then(|| Self(text.into())).ok_or_else(|| Reason::Currency(Excerpt::of(text)).into())
    }
}

impl TryFrom<String> for Currency {
    type Error = InvalidPrice;

    fn try_from(text: String) -> Result<Self, InvalidPrice> {
        text.parse()
    }
}

impl From<Currency> for String {
    fn from(currency: Currency) -> Self {
        currency.as_str().to_owned()
    }
}

impl fmt::Display for Currency {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(&self.0)
    }
}

impl fmt::Debug for Currency {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.as_str(), formatter)
    }
}

impl Period {
    /// 60 minutes.
    pub const HOUR: Self = Self(Span::clamped(3_600));
    /// 24 hours.
    pub const DAY: Self = Self(Span::clamped(86_400));
    /// 7 days.
    pub const WEEK: Self = Self(Span::clamped(604_800));
    /// 730 hours, a twelfth of a year.
    pub const MONTH: Self = Self(Span::clamped(730 * 3_600));
    /// 365 days.
    pub const YEAR: Self = Self(Span::clamped(365 * 86_400));

    const NAMED: [(&'static str, &'static str, Self); 5] = [
        ("Hourly", "hour", Self::HOUR),
        ("Daily", "day", Self::DAY),
        ("Weekly", "week", Self::WEEK),
        ("Monthly", "month", Self::MONTH),
        ("Yearly", "year", Self::YEAR),
    ];

    /// So many seconds; `None` for zero and for more than a hundred years.
    pub fn from_seconds(seconds: u64) -> Option<Self> {
        Span::from_seconds(seconds).map(Self)
    }

    /// The length in seconds.
    pub const fn seconds(self) -> u64 {
        self.0.seconds()
    }

    /// The word by which it is written in an object: `Hourly`, or a length of time such as `15m`.
    pub fn word(self) -> String {
        let named = Self::NAMED.iter().find(|(_, _, period)| *period == self);
        named.map_or_else(|| self.0.to_string(), |(word, _, _)| (*word).to_owned())
    }
}

impl FromStr for Period {
    type Err = InvalidPrice;

    fn from_str(text: &str) -> Result<Self, InvalidPrice> {
        match Self::NAMED.iter().find(|(name, _, _)| name.eq_ignore_ascii_case(text)) {
            Some((_, _, period)) => Ok(*period),
            None => Ok(Self(text.parse().map_err(Reason::Period)?)),
        }
    }
}

impl fmt::Display for Period {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match Self::NAMED.iter().find(|(_, _, period)| period == self) {
            Some((_, noun, _)) => formatter.pad(noun),
            None => self.0.fmt(formatter),
        }
    }
}

impl Prices {
    /// Prices that can be reckoned with: none negative, none absurd, not too many.
    pub fn new(
        currency: Currency,
        period: Period,
        per_unit: impl IntoIterator<Item = (ResourceName, Quantity)>,
    ) -> Result<Self, InvalidPrice> {
        let per_unit: BTreeMap<_, _> = per_unit.into_iter().collect();
        if per_unit.len() > MOST_PRICES {
            return Err(Reason::Many(per_unit.len()).into());
        }
        for (name, price) in &per_unit {
            if price.is_negative() {
                return Err(Reason::Negative(name.clone(), *price).into());
            }
            if *price > HIGHEST_PRICE {
                return Err(Reason::High(name.clone(), *price).into());
            }
        }
        Ok(Self { currency, period, per_unit })
    }

    /// The currency.
    pub const fn currency(&self) -> &Currency {
        &self.currency
    }

    /// What the prices are for.
    pub const fn period(&self) -> Period {
        self.period
    }

    /// The prices in order of the resources' names.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&ResourceName, Quantity)> {
        self.per_unit.iter().map(|(name, price)| (name, *price))
    }

    /// What a unit of `name` costs; zero if it is free.
    pub fn of(&self, name: &str) -> Rate {
        self.get(name).unwrap_or(Rate::nothing(self.period))
    }

    /// What a unit of `name` costs, if it has a price.
    pub fn get(&self, name: &str) -> Option<Rate> {
        self.per_unit.get(name).map(|price| Rate::of_price(*price, self.period))
    }

    /// The same prices for the resources that `keep` says yes to.
    #[must_use]
    pub fn only(&self, keep: impl Fn(&ResourceName) -> bool) -> Self {
        let kept = self.per_unit.iter().filter(|(name, _)| keep(name));
        Self { per_unit: kept.map(|(name, price)| (name.clone(), *price)).collect(), ..self.clone() }
    }

    /// What all of `resources` cost together.
    pub fn total(&self, resources: &Resources) -> Result<Rate, InvalidPrice> {
        resources.iter().try_fold(Rate::nothing(self.period), |total, (name, amount)| {
            let price = self.per_unit.get(name.as_str()).copied().unwrap_or_default();
            let invalid = || InvalidPrice(Reason::Amount(name.clone(), amount));
            let step = name.granularity().nanos();
            // A part of a step is paid as a whole one, though amounts in contracts have none.
            let steps = u128::try_from(amount.nanos()).map_err(|_| invalid())?.div_ceil(step);
            if steps > LARGEST_AMOUNT {
                return Err(invalid());
            }
            total.plus(price, steps, unit(name)).ok_or_else(invalid)
        })
    }
}

/// Steps in the unit that a price is for.
fn unit(name: &ResourceName) -> rate::Unit {
    match name.granularity().nanos() {
        1_000_000 => rate::Unit::Thousand,
        _ if name.is_bytes() => rate::Unit::Gibi,
        _ => rate::Unit::One,
    }
}

/// What one unit of the resource is called in a price: "core", "GiB" or "one".
pub fn unit_name(name: &ResourceName) -> &'static str {
    match unit(name) {
        rate::Unit::Thousand => "core",
        rate::Unit::Gibi => "GiB",
        rate::Unit::One => "one",
    }
}
