use super::{Format, Granularity, Quantity, Ratio, RoundTo, Rounding};

fn quantity(text: &str) -> Quantity {
    text.parse().unwrap_or_else(|error| panic!("{error}"))
}

fn refusal(text: &str) -> String {
    match text.parse::<Quantity>() {
        Ok(quantity) => panic!("{text:?} was read as {quantity}"),
        Err(error) => error.to_string(),
    }
}

#[test]
fn every_unit_means_its_power() {
    let cases = [
        ("1n", 1),
        ("1u", 1_000),
        ("1m", 1_000_000),
        ("1", 10_i128.pow(9)),
        ("1k", 10_i128.pow(12)),
        ("1M", 10_i128.pow(15)),
        ("1G", 10_i128.pow(18)),
        ("1T", 10_i128.pow(21)),
        ("1P", 10_i128.pow(24)),
        ("1E", 10_i128.pow(27)),
        ("1Ki", 10_i128.pow(9) << 10),
        ("1Mi", 10_i128.pow(9) << 20),
        ("1Gi", 10_i128.pow(9) << 30),
        ("1Ti", 10_i128.pow(9) << 40),
        ("1Pi", 10_i128.pow(9) << 50),
        ("1Ei", 10_i128.pow(9) << 60),
        ("1e3", 10_i128.pow(12)),
        ("1E3", 10_i128.pow(12)),
        ("1E-3", 1_000_000),
        ("1e+2", 10_i128.pow(11)),
    ];
    for (text, nanos) in cases {
        assert_eq!(quantity(text).nanos(), nanos, "{text}");
    }
}

#[test]
fn amounts_are_written_in_the_largest_unit_without_a_fraction() {
    let cases = [
        ("1.5", "1500m"),
        ("1.5Gi", "1536Mi"),
        ("1024Mi", "1Gi"),
        ("0.5Ki", "512"),
        ("1.3Ki", "1331200m"),
        ("1000", "1k"),
        ("1500k", "1500k"),
        ("0.1", "100m"),
        ("12e6", "12e6"),
        ("1e1", "10"),
        ("1e-3", "1e-3"),
        ("-2048", "-2048"),
        ("-2048Ki", "-2Mi"),
        ("-0", "0"),
        ("0Gi", "0"),
        ("1000E", "1000E"),
    ];
    for (text, canonical) in cases {
        assert_eq!(quantity(text).to_string(), canonical, "{text}");
    }
}

#[test]
fn finer_than_nano_is_rounded_away_from_zero() {
    assert_eq!(quantity("0.1n"), quantity("1n"));
    assert_eq!(quantity("-0.1n"), quantity("-1n"));
    assert_eq!(quantity("1.0000000001"), quantity("1000000001n"));
    assert_eq!(quantity("1e-999999999"), quantity("1n"));
    assert_eq!(quantity("0e-999999999"), Quantity::ZERO);
}

#[test]
fn hostile_texts_are_capped_or_refused_at_once() {
    assert_eq!(quantity("1e999999999"), Quantity::MAX);
    assert_eq!(quantity("-1e9223372036854775807"), Quantity::MIN);
    assert_eq!(quantity(&"9".repeat(1_000_000)), Quantity::MAX);
    assert_eq!(quantity(&format!("0.{}1Ki", "0".repeat(1_000_000))), quantity("1n"));
    assert_eq!(quantity(&format!("0.{}1e1000001", "0".repeat(1_000_000))), quantity("1"));
    assert_eq!(quantity("8Ei").nanos(), i128::from(i64::MAX) * 1_000_000_000);
    refusal("1e99999999999999999999");

    let message = refusal(&format!("1{}", "x".repeat(1_000_000)));
    assert!(message.len() < 400, "the message has {} bytes", message.len());
}

#[test]
fn the_limits_are_quantities_like_others() {
    assert_eq!(Quantity::MAX.to_string(), "100000000000E");
    assert_eq!(quantity("100000000000E"), Quantity::MAX);
    assert_eq!(Quantity::MAX.with_format(Format::DecimalExponent).to_string(), "100e27");
    assert_eq!(-Quantity::MAX, Quantity::MIN);
    assert_eq!(Quantity::from_nanos(Quantity::MAX.nanos() + 1, Format::DecimalSi), None);
    assert_eq!(Quantity::MAX.checked_add(quantity("1n")), None);
    assert_eq!(Quantity::MIN.checked_sub(quantity("1n")), None);
    assert_eq!(Quantity::MAX.saturating_add(Quantity::MAX), Quantity::MAX);
}

#[test]
fn refusals_say_what_is_wrong_and_what_would_be_right() {
    let cases = [
        ("", "there is no number in it"),
        ("1GB", "\"GB\" is not a unit; G is for powers of 1000, Gi for powers of 1024"),
        ("1K", "\"K\" is not a unit; k is for powers of 1000, Ki for powers of 1024"),
        ("1e", "\"e\" is not a unit (n u m k M G T P E, Ki Mi Gi Ti Pi Ei, e3)"),
        ("1 Gi", "character 2 is ' '"),
        ("é1", "character 1 is 'é'"),
        ("1.2.3", "character 4 is '.'"),
        ("Ei", "there is no number before the unit"),
        ("1\u{1b}[2J", "character 2 is '\\u{1b}'"),
    ];
    for (text, reason) in cases {
        let message = refusal(text);
        assert!(message.starts_with(&format!("{text:?} is not a quantity: {reason}")), "{message}");
        assert!(message.ends_with("500m, 2, 1.5Gi, 10G or 2e3"), "{message}");
    }
}

#[test]
fn value_and_milli_value_round_away_from_zero_and_stay_in_range() {
    let cases = [
        ("0", 0, 0),
        ("1n", 1, 1),
        ("-1n", -1, -1),
        ("1500m", 2, 1500),
        ("-1500m", -2, -1500),
        ("1.0001", 2, 1001),
        ("-1.3Ki", -1332, -1_331_200),
        ("8Ei", i64::MAX, i64::MAX),
        ("1e20", i64::MAX, i64::MAX),
        ("-1e20", i64::MIN, i64::MIN),
        ("9223372036854775807", i64::MAX, i64::MAX),
        ("9223372036854775807m", 9_223_372_036_854_776, i64::MAX),
    ];
    for (text, value, milli) in cases {
        assert_eq!((quantity(text).value(), quantity(text).milli_value()), (value, milli), "{text}");
    }
}

#[test]
fn equality_order_and_hash_go_by_amount() {
    use std::collections::HashSet;
    assert_eq!(quantity("1Gi"), quantity("1024Mi"));
    assert_eq!(quantity("1k"), quantity("1e3"));
    assert!(quantity("1Ki") > quantity("1k"));
    assert!(quantity("-1") < quantity("-999m"));
    assert_eq!(["1000m", "1", "1e0"].map(quantity).into_iter().collect::<HashSet<_>>().len(), 1);
    assert_eq!(["-3", "0", "2m"].map(|text| quantity(text).signum()), [-1, 0, 1]);
}

#[test]
fn a_result_is_written_like_its_first_operand_unless_that_is_zero() {
    let sum = |a, b| quantity(a).checked_add(quantity(b)).map(|sum| sum.to_string());
    let difference = |a, b| quantity(a).checked_sub(quantity(b)).map(|difference| difference.to_string());
    assert_eq!(sum("1Gi", "1G").as_deref(), Some("2073741824"));
    assert_eq!(sum("1Gi", "1073741824").as_deref(), Some("2Gi"));
    assert_eq!(sum("0", "1Gi").as_deref(), Some("1Gi"));
    assert_eq!(sum("1k", "1e3").as_deref(), Some("2k"));
    assert_eq!(difference("1e3", "1k").as_deref(), Some("0"));
    assert_eq!(difference("0", "1Mi").as_deref(), Some("-1Mi"));
}

#[test]
fn subtracting_to_zero_stops_there() {
    assert_eq!(quantity("3").sub_to_zero(quantity("1")), quantity("2"));
    assert_eq!(quantity("1").sub_to_zero(quantity("3")), Quantity::ZERO);
    assert_eq!(quantity("-1").sub_to_zero(quantity("3")), Quantity::ZERO);
}

#[test]
fn the_rounding_decides_what_ninety_percent_of_a_gpu_is() {
    let share = |text, percent, granularity, rounding| {
        quantity(text)
            .scale(Ratio::percent(percent), RoundTo::new(granularity, rounding))
            .map(|share| share.to_string())
            .unwrap()
    };
    use Granularity::{Micro, Milli, Nano, Whole};
    use Rounding::{AwayFromZero, Nearest, TowardZero};

    assert_eq!(share("1", 90, Whole, TowardZero), "0");
    assert_eq!(share("1", 90, Whole, AwayFromZero), "1");
    assert_eq!(share("1", 90, Whole, Nearest), "1");
    assert_eq!(share("1", 50, Whole, Nearest), "1");
    assert_eq!(share("1", 49, Whole, Nearest), "0");
    assert_eq!(share("1", 90, Milli, TowardZero), "900m");
    assert_eq!(share("333m", 50, Milli, TowardZero), "166m");
    assert_eq!(share("333m", 50, Milli, AwayFromZero), "167m");
    assert_eq!(share("333m", 50, Micro, TowardZero), "166500u");
    assert_eq!(share("1n", 50, Nano, TowardZero), "0");
    assert_eq!(share("3Gi", 50, Whole, TowardZero), "1536Mi");
    assert_eq!(share("-1", 90, Whole, TowardZero), "0");
    assert_eq!(share("-1", 90, Whole, AwayFromZero), "-1");
    assert_eq!(share("-1", 50, Whole, Nearest), "-1");
    assert_eq!(share("2", 150, Whole, TowardZero), "3");
}

#[test]
fn scaling_is_exact_where_the_product_needs_more_than_128_bits() {
    let exact = RoundTo::new(Granularity::Nano, Rounding::TowardZero);
    let most = Ratio::new(u64::MAX - 1, u64::MAX).unwrap();
    // 10^38 - ceil(10^38 / (2^64 - 1))
    assert_eq!(
        Quantity::MAX.scale(most, exact).unwrap().nanos(),
        10_i128.pow(38) - 10_i128.pow(38) / i128::from(u64::MAX) - 1
    );
    assert_eq!(Quantity::MAX.scale(Ratio::new(u64::MAX, u64::MAX).unwrap(), exact), Some(Quantity::MAX));
    assert_eq!(Quantity::MAX.scale(Ratio::percent(101), exact), None);
    assert_eq!(Quantity::MAX.scale(Ratio::new(u64::MAX, 1).unwrap(), exact), None);
}

#[test]
fn a_ratio_is_kept_in_lowest_terms() {
    assert_eq!(Ratio::new(90, 100), Some(Ratio::percent(90)));
    assert_eq!(Ratio::percent(90).to_string(), "9/10");
    assert_eq!(Ratio::percent(100), Ratio::ONE);
    assert_eq!(Ratio::new(0, 7), Some(Ratio::percent(0)));
    assert_eq!(Ratio::new(1, 0), None);
    assert_eq!(Ratio::new(0, 0), None);
}

#[test]
fn tables_can_align_quantities() {
    assert_eq!(format!("{:>6}|{:<6}|", quantity("2Gi"), quantity("-1k")), "   2Gi|-1k   |");
}

#[test]
fn json_is_written_as_a_canonical_string() {
    assert_eq!(serde_json::to_string(&quantity("1.5Gi")).unwrap(), "\"1536Mi\"");
}

#[test]
fn json_strings_numbers_and_null_are_read_as_kubernetes_reads_them() {
    let cases = [
        ("\"500m\"", "500m"),
        ("\" 2Gi \"", "2Gi"),
        ("2", "2"),
        ("-3", "-3"),
        ("18446744073709551615", "18446744073709551615"),
        ("0.1", "100m"),
        ("1.5", "1500m"),
        ("2.675", "2675m"),
        ("1e3", "1k"),
        ("1e300", "100000000000E"),
        ("1e-300", "1n"),
        ("-0.0", "0"),
        ("123456789.012345", "123456789012345u"),
        ("null", "0"),
    ];
    for (json, canonical) in cases {
        let quantity: Quantity = serde_json::from_str(json).unwrap_or_else(|error| panic!("{json}: {error}"));
        assert_eq!(quantity.to_string(), canonical, "{json}");
    }
}

#[test]
fn a_json_number_that_lost_digits_is_refused_rather_than_wrong() {
    for json in ["18446744073709551616", "0.12345678901234567"] {
        let message = serde_json::from_str::<Quantity>(json).unwrap_err().to_string();
        assert!(message.contains("put it in quotes"), "{json}: {message}");
    }
    for json in ["true", "[]", "{}", "\"\"", "\"1GB\""] {
        assert!(serde_json::from_str::<Quantity>(json).is_err(), "{json}");
    }
}
