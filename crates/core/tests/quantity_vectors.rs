//! Our quantity against the recorded answers of k8s.io/apimachinery, the library Kubernetes itself uses.
//!
//! `tools/quantity-vectors` makes the answers. Where ours differ on purpose (the table in `quantity.rs`), a vector
//! must be of the kind that the table names and our answer must be what the table says.
#![expect(clippy::panic, reason = "a test stops where it goes wrong, in its helpers too")]

use std::cmp::Ordering;

use liqo_core::{Format, Quantity};
use serde::Deserialize;

const VECTORS: &str = include_str!("../testdata/quantity-vectors.jsonl");
/// So many must be answered without any exception.
const FEWEST_SAME: usize = 5_000;

const NANOS_PER_UNIT: i128 = 1_000_000_000;
const NANOS_PER_MILLI: i128 = 1_000_000;

#[derive(Deserialize)]
#[serde(untagged)]
enum Vector {
    Refused { parse: String, error: String },
    Parsed(Parsed),
    Paired(Paired),
}

#[derive(Deserialize)]
struct Parsed {
    parse: String,
    echo: Option<String>,
    value: i64,
    milli: i64,
    #[serde(flatten)]
    answer: Answer,
}

#[derive(Deserialize)]
struct Paired {
    a: String,
    b: String,
    cmp: i8,
    sum: Answer,
    diff: Answer,
}

/// What the library says about one quantity.
#[derive(Deserialize)]
struct Answer {
    canonical: String,
    format: String,
    amount: String,
}

/// How a vector came out when it came out right.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum Outcome {
    Same,
    Capped,
    LongExponent,
    UnitKept,
    ValueSaturated,
    NegativeValue,
}

#[test]
fn every_answer_of_the_kubernetes_library_is_ours_or_a_named_exception() {
    let vectors: Vec<(&str, Vector)> = VECTORS.lines().map(|line| (line, read(line))).collect();
    let mut outcomes = std::collections::BTreeMap::<Outcome, usize>::new();
    let mut failures = Vec::new();
    for (line, vector) in &vectors {
        match check(vector) {
            Ok(outcome) => *outcomes.entry(outcome).or_default() += 1,
            Err(failure) => failures.push(format!("{failure}\n  in {line}")),
        }
    }
    assert!(
        failures.is_empty(),
        "{} of {} vectors fail, the first are:\n{}",
        failures.len(),
        vectors.len(),
        failures[..failures.len().min(20)].join("\n")
    );
    println!("{} vectors: {outcomes:?}", vectors.len());
    let same = outcomes[&Outcome::Same];
    assert!(same >= FEWEST_SAME, "only {same} vectors are answered alike: {outcomes:?}");
}

fn read(line: &str) -> Vector {
    serde_json::from_str(line).unwrap_or_else(|error| panic!("{error} in {line}"))
}

fn check(vector: &Vector) -> Result<Outcome, String> {
    match vector {
        Vector::Refused { parse, error } => match parse.parse::<Quantity>() {
            Ok(ours) => Err(format!("we read {ours}, the library refuses it ({error})")),
            Err(_) => Ok(Outcome::Same),
        },
        Vector::Parsed(parsed) => check_parsed(parsed),
        Vector::Paired(paired) => check_paired(paired),
    }
}

fn check_parsed(vector: &Parsed) -> Result<Outcome, String> {
    let ours: Quantity = vector.parse.parse().map_err(|error| format!("we refuse it: {error}"))?;
    if let Some(echo) = &vector.echo {
        ensure(echo == &vector.parse, || format!("{echo} is neither canonical nor what was parsed"))?;
    }
    if has_long_exponent(&vector.parse) {
        ensure(is_capped(ours), || format!("{ours} is not capped"))?;
        return Ok(Outcome::LongExponent);
    }
    let text = check_answer(ours, &vector.answer)?;
    let value = check_rounded(ours, NANOS_PER_UNIT, ours.value(), vector.value)?;
    let milli = check_rounded(ours, NANOS_PER_MILLI, ours.milli_value(), vector.milli)?;
    Ok([text, value, milli].into_iter().find(|outcome| *outcome != Outcome::Same).unwrap_or(Outcome::Same))
}

fn check_paired(vector: &Paired) -> Result<Outcome, String> {
    let [a, b] = [&vector.a, &vector.b].map(|text| {
        text.parse::<Quantity>().unwrap_or_else(|error| panic!("a pair has a bad text: {error}"))
    });
    let order = match a.cmp(&b) {
        Ordering::Less => -1,
        Ordering::Equal => 0,
        Ordering::Greater => 1,
    };
    if is_capped(a) || is_capped(b) {
        // Two capped quantities are equal to us, so that only the opposite order would be wrong.
        ensure(order * vector.cmp >= 0, || format!("we compare {a} and {b} as {order}"))?;
        return Ok(Outcome::Capped);
    }
    ensure(order == vector.cmp, || format!("we compare {a} and {b} as {order}"))?;
    let sum = check_result(a.checked_add(b), &vector.sum).map_err(|failure| format!("sum: {failure}"))?;
    let difference =
        check_result(a.checked_sub(b), &vector.diff).map_err(|failure| format!("difference: {failure}"))?;
    Ok(if sum == Outcome::Same { difference } else { sum })
}

fn check_result(ours: Option<Quantity>, theirs: &Answer) -> Result<Outcome, String> {
    match ours {
        Some(ours) => check_answer(ours, theirs),
        None => {
            ensure(exact_nanos(&theirs.amount).is_none(), || "ours overflows".to_owned())?;
            Ok(Outcome::Capped)
        }
    }
}

fn check_answer(ours: Quantity, theirs: &Answer) -> Result<Outcome, String> {
    ensure(ours.format() == format_named(&theirs.format), || format!("our format is {:?}", ours.format()))?;
    let Some(nanos) = exact_nanos(&theirs.amount) else {
        ensure(is_capped(ours), || format!("{ours} is not capped"))?;
        ensure(ours.is_negative() == theirs.amount.starts_with('-'), || {
            format!("{ours} has the wrong sign")
        })?;
        return Ok(Outcome::Capped);
    };
    ensure(ours.nanos() == nanos, || format!("our amount is {} nanos, not {nanos}", ours.nanos()))?;
    if ours.to_string() == theirs.canonical {
        return Ok(Outcome::Same);
    }
    ensure(is_beyond_all_units(ours), || format!("we write {ours}"))?;
    // The exception is only one if their text lost the amount and ours has it.
    ensure(theirs.canonical.parse() != Ok(ours), || "their text is right, too".to_owned())?;
    ensure(ours.to_string().parse() == Ok(ours), || format!("{ours} is not what we wrote"))?;
    Ok(Outcome::UnitKept)
}

fn check_rounded(quantity: Quantity, unit: i128, ours: i64, theirs: i64) -> Result<Outcome, String> {
    let nanos = quantity.nanos();
    let magnitude = (nanos.abs() + unit - 1) / unit;
    let exact = if nanos < 0 { -magnitude } else { magnitude };
    let saturated = exact.clamp(i64::MIN.into(), i64::MAX.into());
    ensure(i128::from(ours) == saturated, || format!("{ours} should be {saturated}"))?;
    if ours == theirs {
        Ok(Outcome::Same)
    } else if exact != saturated {
        Ok(Outcome::ValueSaturated)
    } else {
        // The library takes a negative number in its wide form for a small one.
        let misread = nanos < 0 && (nanos % unit != 0 || nanos < i64::MIN.into());
        ensure(misread, || format!("we say {ours}, the library {theirs}"))?;
        Ok(Outcome::NegativeValue)
    }
}

/// The exact amount in nanos; `None` if it is beyond our limit.
fn exact_nanos(amount: &str) -> Option<i128> {
    let (mantissa, exponent) = amount.split_once('e')?;
    if mantissa == "0" {
        return Some(0);
    }
    let power = 10_i128.checked_pow(exponent.parse::<i64>().ok()?.checked_add(9)?.try_into().ok()?)?;
    let nanos = mantissa.parse::<i128>().ok()?.checked_mul(power)?;
    (nanos.abs() <= Quantity::MAX.nanos()).then_some(nanos)
}

fn has_long_exponent(text: &str) -> bool {
    text.split_once(['e', 'E'])
        .and_then(|(_, exponent)| exponent.parse::<i64>().ok())
        .is_some_and(|exponent| i32::try_from(exponent).is_err())
}

fn is_capped(quantity: Quantity) -> bool {
    [Quantity::MAX, Quantity::MIN].contains(&quantity)
}

/// Whether the amount is a multiple of the unit that would come after the largest one.
fn is_beyond_all_units(quantity: Quantity) -> bool {
    let next = match quantity.format() {
        Format::BinarySi => NANOS_PER_UNIT << 70,
        Format::DecimalSi => NANOS_PER_UNIT * 10_i128.pow(21),
        Format::DecimalExponent => return false,
    };
    quantity.nanos() % next == 0
}

fn format_named(name: &str) -> Format {
    match name {
        "BinarySI" => Format::BinarySi,
        "DecimalSI" => Format::DecimalSi,
        "DecimalExponent" => Format::DecimalExponent,
        other => panic!("the library has a new format, {other}"),
    }
}

fn ensure(holds: bool, failure: impl FnOnce() -> String) -> Result<(), String> {
    if holds { Ok(()) } else { Err(failure()) }
}
