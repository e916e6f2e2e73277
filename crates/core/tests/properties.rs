//! What must hold for all quantities and all lists.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test stops where it goes wrong, in its helpers too"
)]

use liqo_core::{Format, Granularity, Partial, Quantity, Ratio, ResourceName, Resources, RoundTo, Rounding};
use proptest::collection::btree_map;
use proptest::prelude::*;

const NANOS_PER_UNIT: i128 = 1_000_000_000;

/// Beyond this, reading a binary text caps it.
const BINARY_LIMIT: i128 = i64::MAX as i128 * NANOS_PER_UNIT;

fn any_format() -> impl Strategy<Value = Format> {
    prop_oneof![Just(Format::BinarySi), Just(Format::DecimalSi), Just(Format::DecimalExponent)]
}

/// Amounts of all magnitudes, often round ones.
fn any_nanos(limit: i128) -> impl Strategy<Value = i128> {
    prop_oneof![
        -limit..=limit,
        -10_000_000_000_000_i128..=10_000_000_000_000,
        (-2000_i128..=2000, 0_u32..30).prop_map(|(digits, power)| digits * 10_i128.pow(power)),
        (-2000_i128..=2000, 0_u32..50).prop_map(|(digits, power)| (digits << power) * NANOS_PER_UNIT),
    ]
    .prop_map(move |nanos| nanos.clamp(-limit, limit))
}

fn any_quantity() -> impl Strategy<Value = Quantity> {
    (any_nanos(Quantity::MAX.nanos()), any_format()).prop_map(|(nanos, format)| {
        let limit = if format == Format::BinarySi { BINARY_LIMIT } else { Quantity::MAX.nanos() };
        Quantity::from_nanos(nanos.clamp(-limit, limit), format).unwrap()
    })
}

/// Small enough that three of them cannot overflow.
fn small_quantity() -> impl Strategy<Value = Quantity> {
    (any_nanos(Quantity::MAX.nanos() / 4), any_format())
        .prop_map(|(nanos, format)| Quantity::from_nanos(nanos, format).unwrap())
}

fn any_round_to() -> impl Strategy<Value = RoundTo> {
    let granularity = prop_oneof![
        Just(Granularity::Nano),
        Just(Granularity::Micro),
        Just(Granularity::Milli),
        Just(Granularity::Whole),
    ];
    (granularity, any_rounding()).prop_map(|(granularity, rounding)| RoundTo::new(granularity, rounding))
}

fn any_rounding() -> impl Strategy<Value = Rounding> {
    prop_oneof![Just(Rounding::TowardZero), Just(Rounding::AwayFromZero), Just(Rounding::Nearest)]
}

fn any_resources() -> impl Strategy<Value = Resources> {
    let name = prop::sample::select(vec!["cpu", "memory", "pods", "nvidia.com/gpu", "hugepages-2Mi"]);
    btree_map(name, any_quantity(), 0..5).prop_map(|amounts| {
        amounts.into_iter().map(|(name, amount)| (name.parse::<ResourceName>().unwrap(), amount)).collect()
    })
}

fn step(granularity: Granularity) -> i128 {
    match granularity {
        Granularity::Nano => 1,
        Granularity::Micro => 1_000,
        Granularity::Milli => 1_000_000,
        Granularity::Whole => NANOS_PER_UNIT,
    }
}

/// Each name of the partial's two halves, to see that none is lost and none is in both.
fn names(partial: &Partial) -> Vec<String> {
    let problems = partial.problems.iter().map(|problem| match problem {
        liqo_core::ResourceProblem::Short { resource, .. }
        | liqo_core::ResourceProblem::Overflow { resource } => resource.to_string(),
        other => panic!("arithmetic cannot have the problem {other}"),
    });
    let mut names: Vec<String> =
        partial.resources.iter().map(|(name, _)| name.to_string()).chain(problems).collect();
    names.sort();
    names
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_is_written_is_read_back(quantity in any_quantity()) {
        let text = quantity.to_string();
        let read: Quantity = text.parse().unwrap();
        prop_assert_eq!(read, quantity);
        // A text without a unit does not tell its family.
        prop_assert_eq!(read.with_format(quantity.format()).to_string(), text);
    }

    #[test]
    fn json_keeps_the_amount(quantity in any_quantity()) {
        let json = serde_json::to_string(&quantity).unwrap();
        prop_assert_eq!(serde_json::from_str::<Quantity>(&json).unwrap(), quantity);
    }

    #[test]
    fn no_text_panics_and_every_accepted_one_is_stable(text in prop_oneof![
        ".*",
        "[+-]?[0-9.]{0,50}[eEinumkKMGTP]{0,3}[+-]?[0-9]{0,22}",
        "[+-]?[0-9]{0,60}\\.?[0-9]{0,60}(e[+-]?[0-9]{1,19}|[KMGTPE]i|[numkMGTPE])?",
    ]) {
        if let Ok(quantity) = text.parse::<Quantity>() {
            prop_assert_eq!(quantity.to_string().parse::<Quantity>(), Ok(quantity));
            prop_assert!(quantity >= Quantity::MIN && quantity <= Quantity::MAX);
        }
    }

    #[test]
    fn decimal_texts_mean_their_digits(units in 0_u64..1_000_000_000_000, nanos in 0_u32..1_000_000_000, negative: bool) {
        let sign = if negative { "-" } else { "" };
        let quantity: Quantity = format!("{sign}{units}.{nanos:09}").parse().unwrap();
        let magnitude = i128::from(units) * NANOS_PER_UNIT + i128::from(nanos);
        prop_assert_eq!(quantity.nanos(), if negative { -magnitude } else { magnitude });
    }

    #[test]
    fn binary_fractions_are_exact_or_rounded_up(thousandths in 0_i128..10_000_000, shift in 1_u32..=6) {
        let unit = ["Ki", "Mi", "Gi", "Ti", "Pi", "Ei"][shift as usize - 1];
        let quantity: Quantity =
            format!("{}.{:03}{unit}", thousandths / 1000, thousandths % 1000).parse().unwrap();
        let times_thousand = (thousandths << (10 * shift)) * NANOS_PER_UNIT;
        prop_assert_eq!(quantity.nanos(), ((times_thousand + 999) / 1000).min(BINARY_LIMIT));
    }

    #[test]
    fn order_is_the_order_of_amounts(a in any_quantity(), b in any_quantity()) {
        prop_assert_eq!(a.cmp(&b), a.nanos().cmp(&b.nanos()));
        prop_assert_eq!(a == b, a.nanos() == b.nanos());
    }

    #[test]
    fn sums_are_exact_or_refused(a in any_quantity(), b in any_quantity()) {
        let exact = a.nanos().saturating_add(b.nanos());
        prop_assert_eq!(a.checked_add(b).map(Quantity::nanos), (exact.unsigned_abs() <= Quantity::MAX.nanos().unsigned_abs()).then_some(exact));
        prop_assert_eq!(a.checked_add(b), b.checked_add(a));
        prop_assert_eq!(a.checked_sub(b), a.checked_add(-b));
        prop_assert_eq!(a.checked_sub(b).map(|difference| -difference), b.checked_sub(a));
        prop_assert_eq!(a.saturating_add(b).nanos(), exact.clamp(Quantity::MIN.nanos(), Quantity::MAX.nanos()));
    }

    #[test]
    fn sums_do_not_depend_on_the_order(a in small_quantity(), b in small_quantity(), c in small_quantity()) {
        let left = a.checked_add(b).unwrap().checked_add(c).unwrap();
        let right = a.checked_add(b.checked_add(c).unwrap()).unwrap();
        prop_assert_eq!(left, right);
        prop_assert_eq!(left.checked_sub(c).unwrap().checked_sub(b).unwrap(), a);
    }

    #[test]
    fn value_is_the_next_whole_number_away_from_zero(quantity in any_quantity()) {
        let value = i128::from(quantity.value());
        if (i128::from(i64::MIN)..=i128::from(i64::MAX)).contains(&(quantity.nanos() / NANOS_PER_UNIT)) {
            let excess = value * NANOS_PER_UNIT - quantity.nanos();
            prop_assert!((0..NANOS_PER_UNIT).contains(&(excess * i128::from(quantity.signum()))) || value == i128::from(i64::MAX));
        } else {
            prop_assert!(value == i128::from(i64::MAX) || value == i128::from(i64::MIN));
        }
    }

    #[test]
    fn a_share_is_within_a_step_of_the_exact_one_on_the_side_chosen(
        nanos in any_nanos(10_i128.pow(28)), numerator in 0_u64..=1_000_000, denominator in 1_u64..=1_000_000, to in any_round_to(),
    ) {
        let quantity = Quantity::from_nanos(nanos, Format::DecimalSi).unwrap();
        let share = quantity.scale(Ratio::new(numerator, denominator).unwrap(), to).unwrap();
        let step = step(to.granularity);
        prop_assert_eq!(share.nanos() % step, 0);

        // Both sides times the denominator, so that nothing is rounded here.
        let exact = nanos.abs() * i128::from(numerator);
        let excess = share.nanos().abs() * i128::from(denominator) - exact;
        let whole_step = step * i128::from(denominator);
        let on_the_right_side = match to.rounding {
            Rounding::TowardZero => -whole_step < excess && excess <= 0,
            Rounding::AwayFromZero => 0 <= excess && excess < whole_step,
            Rounding::Nearest => -whole_step < 2 * excess && 2 * excess <= whole_step,
        };
        prop_assert!(on_the_right_side, "{share} is {excess} from the exact share, in steps of {whole_step}");
        prop_assert!(share.is_zero() || share.signum() == quantity.signum());
    }

    #[test]
    fn scaling_never_panics_and_whole_shares_add_up(
        quantity in any_quantity(), numerator: u64, denominator in 1_u64.., to in any_round_to(),
    ) {
        let _ = quantity.scale(Ratio::new(numerator, denominator).unwrap(), to);

        let part = numerator % denominator;
        let share = |of, rounding| {
            quantity.scale(Ratio::new(of, denominator).unwrap(), RoundTo::new(Granularity::Nano, rounding)).unwrap()
        };
        let rest = share(denominator - part, Rounding::AwayFromZero);
        prop_assert_eq!(share(part, Rounding::TowardZero).checked_add(rest), Some(quantity));
    }

    #[test]
    fn lists_reckon_each_resource_for_itself(a in any_resources(), b in any_resources()) {
        let sum = a.checked_add(&b);
        let left = a.checked_sub(&b);
        for (name, amount) in sum.resources.iter() {
            prop_assert_eq!(Some(amount), a.amount(name.as_str()).checked_add(b.amount(name.as_str())));
        }
        for (name, amount) in left.resources.iter() {
            prop_assert_eq!(Some(amount), a.amount(name.as_str()).checked_sub(b.amount(name.as_str())));
            prop_assert!(!amount.is_negative());
        }
        let both: Vec<String> = a.max(&b).iter().map(|(name, _)| name.to_string()).collect();
        prop_assert_eq!(names(&sum), both.clone());
        prop_assert_eq!(names(&left), both);
    }

    #[test]
    fn what_fits_lacks_nothing_and_adding_what_lacks_makes_it_fit(wanted in any_resources(), capacity in any_resources()) {
        let lacking = wanted.lacking_in(&capacity);
        prop_assert_eq!(wanted.fits_in(&capacity), lacking.is_empty());
        if let Ok(enough) = capacity.checked_add(&lacking).into_result() {
            // An amount lacking from the far negative end is itself capped.
            let capped = lacking.iter().any(|(_, amount)| amount == Quantity::MAX);
            prop_assert!(capped || wanted.fits_in(&enough));
        }
        prop_assert!(wanted.min(&capacity).fits_in(&capacity.max(&Resources::new())));
    }

    #[test]
    fn lists_survive_json_and_reading_by_text(list in any_resources()) {
        let json = serde_json::to_string(&list).unwrap();
        prop_assert_eq!(&serde_json::from_str::<Resources>(&json).unwrap(), &list);
        let texts: Vec<(String, String)> =
            list.iter().map(|(name, amount)| (name.to_string(), amount.to_string())).collect();
        prop_assert_eq!(Resources::parse(texts).into_result().unwrap(), list);
    }

    #[test]
    fn no_name_panics_and_every_accepted_one_is_kept(text in prop_oneof![".*", "[a-zA-Z0-9._/-]{0,70}"]) {
        if let Ok(name) = text.parse::<ResourceName>() {
            prop_assert_eq!(name.as_str(), text);
        }
    }
}
