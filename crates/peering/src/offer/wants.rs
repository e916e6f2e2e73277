//! What a consumer wants of a provider, and what it accepts.

use liqo_api::Borrowing;
use liqo_api::borrowing::{Total, UnitPrices};
use liqo_core::Resources;
use liqo_core::acceptance::Limits;
use liqo_core::money::{Currency, Prices, Rate};

use super::{Problems, amounts};

/// What is wanted and accepted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Wants {
    /// What is accepted.
    pub limits: Limits,
    /// The most that is wanted of some resources; of others, what is offered is taken.
    pub wanted: Resources,
}

impl Wants {
    /// What is wanted of a peer: what its ForeignCluster says, else what the ClusterConfig says, else the flag.
    ///
    /// A limit that cannot be read is an error: an offer must not be taken because its limit was garbled.
    pub fn read(of_peer: &Borrowing, general: &Borrowing, automatic: bool) -> Result<Self, Problems> {
        let borrowing = of_peer.clone().or(general);
        let mut problems = Problems::default();
        let mut list = |field: &str, texts| {
            let (resources, wrong) = amounts(texts);
            wrong.iter().for_each(|problem| problems.add(field, problem));
            resources
        };
        let (wanted, at_least) =
            (list("borrowing.wanted", &borrowing.wanted), list("borrowing.minimum", &borrowing.minimum));
        let currencies = borrowing.currencies.iter();
        let currencies: Vec<Option<Currency>> =
            currencies.map(|text| problems.keep("borrowing.currencies", text.parse())).collect();
        let limits = Limits {
            automatic: borrowing.automatic.unwrap_or(automatic),
            at_least,
            currencies: (!currencies.is_empty()).then(|| currencies.into_iter().flatten().collect()),
            highest_prices: borrowing
                .maximum_prices
                .as_ref()
                .and_then(|prices| highest(prices, &mut problems)),
            highest_total: borrowing.maximum_total.as_ref().and_then(|total| total_of(total, &mut problems)),
        };
        if problems.0.is_empty() { Ok(Self { limits, wanted }) } else { Err(problems) }
    }
}

fn highest(prices: &UnitPrices, problems: &mut Problems) -> Option<Prices> {
    let field = "borrowing.maximumPrices";
    let currency = problems.keep(field, prices.currency.parse());
    let period = problems.keep(field, prices.period.parse());
    let texts = prices.per_unit.iter().map(|(name, price)| (name, price.0.trim()));
    let per_unit = problems.keep(field, Resources::parse(texts).into_result());
    problems.keep(field, Prices::new(currency?, period?, per_unit?))
}

fn total_of(total: &Total, problems: &mut Problems) -> Option<(Currency, Rate)> {
    let field = "borrowing.maximumTotal";
    let currency = problems.keep(field, total.currency.parse())?;
    let period = problems.keep(field, total.period.parse())?;
    let amount = problems.keep(field, total.amount.0.trim().parse())?;
    let rate = Rate::new(amount, period).ok_or("the amount must not be negative");
    problems.keep(field, rate).map(|rate| (currency, rate))
}
