use super::{Decision, Limits, Offered, decide};
use crate::money::{Period, Prices, Rate};
use crate::resources::Resources;
use crate::testing::{list, time};

const NOW: &str = "2026-07-01T00:00:00Z";

fn prices(currency: &str, period: &str, per_unit: &str) -> Prices {
    Prices::new(currency.parse().unwrap(), period.parse().unwrap(), list(per_unit)).unwrap()
}

fn total(currency: &str, amount: &str, period: Period) -> Option<(crate::money::Currency, Rate)> {
    Some((currency.parse().unwrap(), Rate::new(amount.parse().unwrap(), period).unwrap()))
}

fn ask(limits: &Limits, resources: &str, prices: Option<&Prices>) -> Decision {
    let resources: Resources = list(resources);
    decide(limits, Offered { resources: &resources, prices, valid_until: None }, time(NOW))
}

fn refuse(text: &str) -> Decision {
    Decision::Refuse(text.to_owned())
}

fn manual(text: &str) -> Decision {
    Decision::Manual(text.to_owned())
}

#[test]
fn without_limits_everything_is_accepted_or_left_to_a_person() {
    let limits = Limits::default();
    let paid = prices("EUR", "Hourly", "cpu=5");
    assert_eq!(ask(&limits, "cpu=1", None), Decision::Accept);
    assert_eq!(ask(&limits, "cpu=1", Some(&paid)), Decision::Accept);
    let by_hand = Limits { automatic: false, ..limits };
    assert_eq!(ask(&by_hand, "cpu=1", None), manual("offers are accepted by hand here"));
}

#[test]
fn an_offer_must_be_enough() {
    let limits = Limits { at_least: list("cpu=2, memory=4Gi"), ..Limits::default() };
    assert_eq!(ask(&limits, "cpu=2, memory=4Gi", None), Decision::Accept);
    assert_eq!(
        ask(&limits, "cpu=1500m, memory=8Gi", None),
        refuse("the offer lacks cpu=500m of the least that is wanted")
    );
    assert_eq!(ask(&limits, "cpu=8", None), refuse("the offer lacks memory=4Gi of the least that is wanted"));
}

#[test]
fn an_offer_that_has_ended_is_too_late() {
    let resources = list("cpu=1");
    let until = |text: &str| Offered { resources: &resources, prices: None, valid_until: Some(time(text)) };
    let limits = Limits::default();
    assert_eq!(decide(&limits, until("2026-07-01T00:00:01Z"), time(NOW)), Decision::Accept);
    assert_eq!(decide(&limits, until(NOW), time(NOW)), refuse("the offer ended at 2026-07-01T00:00:00Z"));
}

#[test]
fn prices_of_different_periods_are_compared_exactly() {
    let limits = Limits {
        highest_prices: Some(prices("EUR", "Hourly", "cpu=0.01, memory=0.001")),
        ..Limits::default()
    };
    let offered = |period: &str, per_unit: &str| {
        ask(&limits, "cpu=4, memory=8Gi", Some(&prices("EUR", period, per_unit)))
    };
    assert_eq!(offered("Monthly", "cpu=7.3, memory=0.73"), Decision::Accept);
    assert_eq!(
        offered("Monthly", "cpu=7.300000001"),
        refuse("cpu costs EUR 7.300000001 per month, the highest accepted is 0.01 per hour")
    );
    assert_eq!(
        offered("Daily", "memory=0.025"),
        refuse("memory costs EUR 0.025 per day, the highest accepted is 0.001 per hour")
    );
    assert_eq!(
        offered("Hourly", "nvidia.com/gpu=1000"),
        Decision::Accept,
        "what is not offered costs nothing"
    );
}

#[test]
fn the_whole_has_a_limit_too() {
    let limits = Limits { highest_total: total("EUR", "100", Period::MONTH), ..Limits::default() };
    let hourly = |cpu: &str| ask(&limits, "cpu=10", Some(&prices("EUR", "Hourly", &format!("cpu={cpu}"))));
    assert_eq!(hourly("0.013"), Decision::Accept);
    assert_eq!(
        hourly("0.014"),
        refuse("all together costs EUR 0.14 per hour, the highest accepted is 100 per month")
    );
}

#[test]
fn currencies_are_not_guessed() {
    let dollars = prices("USD", "Hourly", "cpu=0.01");
    let euros_only = Limits { currencies: Some(["EUR".parse().unwrap()].into()), ..Limits::default() };
    assert_eq!(
        ask(&euros_only, "cpu=1", Some(&dollars)),
        refuse("the price is in USD, which is not paid in here")
    );
    assert_eq!(
        ask(&euros_only, "cpu=1", Some(&prices("USD", "Hourly", "cpu=0"))),
        Decision::Accept,
        "nothing is nothing everywhere"
    );
    let limited = Limits { highest_total: total("EUR", "100", Period::MONTH), ..Limits::default() };
    let doubt = "the price is in USD and its limit in EUR: somebody has to compare them";
    assert_eq!(ask(&limited, "cpu=1", Some(&dollars)), manual(doubt));
    let both = Limits { highest_prices: Some(prices("USD", "Hourly", "cpu=0.001")), ..limited };
    assert!(
        matches!(ask(&both, "cpu=1", Some(&dollars)), Decision::Refuse(_)),
        "a limit that is broken is broken"
    );
}

#[test]
fn hostile_offers_are_refused() {
    let limits = Limits::default();
    for resources in ["cpu=-1", "cpu=1, memory=-1e300"] {
        assert!(
            matches!(ask(&limits, resources, None), Decision::Refuse(reason) if reason.contains("makes no sense"))
        );
    }
    let paid = prices("EUR", "Hourly", "cpu=1");
    assert!(
        matches!(ask(&limits, "cpu=1e300", Some(&paid)), Decision::Refuse(reason) if reason.contains("cannot be priced"))
    );
}
