use proptest::prelude::*;

use super::{Currency, Period, Prices, Rate, unit_name};
use crate::quantity::{Format, Quantity};
use crate::resources::{ResourceName, Resources};

fn resources<const N: usize>(entries: [(&str, &str); N]) -> Resources {
    Resources::parse(entries).into_result().unwrap()
}

fn prices<const N: usize>(period: &str, entries: [(&str, &str); N]) -> Prices {
    Prices::new("EUR".parse().unwrap(), period.parse().unwrap(), resources(entries)).unwrap()
}

fn rate(amount: &str, period: &str) -> Rate {
    Rate::new(amount.parse().unwrap(), period.parse().unwrap()).unwrap()
}

#[test]
fn periods_convert_exactly() {
    for (a, b) in [
        (rate("1", "Hourly"), rate("24", "daily")),
        (rate("10", "Hourly"), rate("7300", "Monthly")),
        (rate("12", "Yearly"), rate("1", "MONTHLY")),
        (rate("7", "Weekly"), rate("1", "Daily")),
        (rate("0.25", "15m"), rate("1", "Hourly")),
    ] {
        assert_eq!(a, b);
    }
    for word in ["Hourly", "Daily", "Weekly", "Monthly", "Yearly", "15m"] {
        assert_eq!(word.parse::<Period>().unwrap().word(), word);
    }
    // A billionth apart over a month.
    assert!(rate("7300.000000001", "Monthly") > rate("10", "Hourly"));
    assert!(rate("7299.999999999", "Monthly") < rate("10", "Hourly"));
}

#[test]
fn a_list_costs_the_sum_of_its_parts() {
    let prices = prices("Hourly", [("cpu", "0.02"), ("memory", "0.004"), ("nvidia.com/gpu", "1.5")]);
    for (list, expected) in [
        (resources([]), "0 per hour"),
        (resources([("cpu", "2"), ("memory", "4Gi")]), "0.056 per hour"),
        (resources([("cpu", "250m")]), "0.005 per hour"),
        (resources([("memory", "1536Mi")]), "0.006 per hour"),
        (resources([("nvidia.com/gpu", "3"), ("pods", "110")]), "4.5 per hour"),
        // 0.004 / 2^30 is no whole number of billionths: shown rounded up, compared exactly.
        (resources([("memory", "1")]), "0.000000001 per hour"),
    ] {
        assert_eq!(prices.total(&list).unwrap().to_string(), expected, "{list}");
    }
}

#[test]
fn parts_of_a_billionth_are_not_lost() {
    let prices = prices("Hourly", [("memory", "1n")]);
    let half = prices.total(&resources([("memory", "512Mi")])).unwrap();
    let a_bit_more = prices.total(&resources([("memory", "536870913")])).unwrap();
    assert!(half < a_bit_more && a_bit_more < rate("1n", "Hourly"));
    // Half a billionth per hour is exactly 365 billionths per month.
    assert_eq!(half, rate("365n", "Monthly"));
}

#[test]
fn the_largest_that_is_allowed_can_be_compared() {
    let names: Vec<ResourceName> =
        (0..64).map(|index| format!("example.com/r{index}").parse().unwrap()).collect();
    let highest = names.iter().map(|name| (name.clone(), super::HIGHEST_PRICE));
    let prices = Prices::new("EUR".parse().unwrap(), Period::YEAR, highest).unwrap();
    let amount = Quantity::from_units(1_000_000_000_000_000_000, Format::DecimalSi);
    let all: Resources = names.iter().map(|name| (name.clone(), amount)).collect();
    let total = prices.total(&all).unwrap();
    assert!(total > rate("1e29", "Yearly") || total.nanos() > 0);
    assert_eq!(total.cmp(&total), std::cmp::Ordering::Equal);
    assert!(total > rate("1", "1s"));
}

#[test]
fn hostile_prices_and_amounts_are_refused() {
    let new = |name: &str, price: &str| {
        Prices::new("EUR".parse().unwrap(), Period::HOUR, [(name.parse().unwrap(), price.parse().unwrap())])
    };
    assert!(new("cpu", "-1").unwrap_err().to_string().contains("must not be negative"));
    assert!(new("cpu", "1e300").unwrap_err().to_string().contains("the highest allowed is 1G"));
    let many = (0..65).map(|index| (format!("example.com/r{index}").parse().unwrap(), Quantity::ZERO));
    assert!(
        Prices::new("EUR".parse().unwrap(), Period::HOUR, many)
            .unwrap_err()
            .to_string()
            .contains("at most 64")
    );

    let prices = prices("Hourly", [("cpu", "1")]);
    for amount in ["-1", "1e300", "1e16"] {
        let message = prices.total(&resources([("cpu", amount)])).unwrap_err().to_string();
        assert!(message.contains("cannot be priced"), "{message}");
    }
}

#[test]
fn currencies_and_periods_are_checked() {
    for text in ["EUR", "USD", "CREDITS", "X2X"] {
        assert_eq!(text.parse::<Currency>().unwrap().as_str(), text);
    }
    for text in ["", "EU", "eur", "€€€", "1EUR", "EUR ", "ABCDEFGHIJKLM"] {
        assert!(text.parse::<Currency>().unwrap_err().to_string().contains("is not a currency"), "{text}");
    }
    for text in ["", "0s", "0h", "-1h", "fortnightly"] {
        let message = text.parse::<Period>().unwrap_err().to_string();
        assert!(message.contains("Hourly, Daily, Weekly, Monthly and Yearly"), "{message}");
    }
    assert_eq!("90m".parse::<Period>().unwrap().to_string(), "1h30m");
}

#[test]
fn the_unit_of_a_price_has_a_name() {
    for (name, unit) in [
        ("cpu", "core"),
        ("memory", "GiB"),
        ("ephemeral-storage", "GiB"),
        ("hugepages-2Mi", "GiB"),
        ("pods", "one"),
        ("nvidia.com/gpu", "one"),
    ] {
        assert_eq!(unit_name(&name.parse().unwrap()), unit, "{name}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn rates_compare_as_exact_fractions(
        (a, b) in (0_u64..1 << 50, 0_u64..1 << 50), (s, t) in (1_u64..40_000_000, 1_u64..40_000_000),
    ) {
        let rate = |nanos: u64, seconds| {
            let amount = Quantity::from_nanos(nanos.into(), Format::DecimalSi).unwrap();
            Rate::new(amount, Period::from_seconds(seconds).unwrap()).unwrap()
        };
        let expected = (u128::from(a) * u128::from(t)).cmp(&(u128::from(b) * u128::from(s)));
        prop_assert_eq!(rate(a, s).cmp(&rate(b, t)), expected);
    }

    #[test]
    fn more_of_anything_never_costs_less(price in 0_i64..1_000_000, amount in 0_i64..1 << 50, more in 0_i64..1 << 40) {
        let name = "memory".parse::<ResourceName>().unwrap();
        let price = Quantity::from_nanos(price.into(), Format::DecimalSi).unwrap();
        let prices = Prices::new("EUR".parse().unwrap(), Period::HOUR, [(name.clone(), price)]).unwrap();
        let cost = |bytes| {
            let list: Resources = [(name.clone(), Quantity::from_units(bytes, Format::BinarySi))].into_iter().collect();
            prices.total(&list).unwrap()
        };
        prop_assert!(cost(amount) <= cost(amount + more));
    }
}
