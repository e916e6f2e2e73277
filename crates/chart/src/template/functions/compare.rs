//! Comparisons, as text/template has them.

use std::cmp::Ordering;

use super::{ANY, Answer, Args, Function, plain};
use crate::template::budget::Budget;
use crate::template::value::{MAX_NESTING, Value, too_deep};

pub(super) static TABLE: &[Function] = &[
    plain("eq", 2, ANY, eq),
    plain("ne", 2, 2, |args| Ok(Value::Bool(!equal(args.get(0), args.get(1))?))),
    plain("lt", 2, 2, |args| ordered(args, Ordering::is_lt)),
    plain("le", 2, 2, |args| ordered(args, Ordering::is_le)),
    plain("gt", 2, 2, |args| ordered(args, Ordering::is_gt)),
    plain("ge", 2, 2, |args| ordered(args, Ordering::is_ge)),
];

/// Whether the first argument equals any of the others.
fn eq(args: &Args<'_>) -> Answer {
    let others = args.all().iter().skip(1);
    for other in others {
        if equal(args.get(0), other)? {
            return Ok(Value::Bool(true));
        }
    }
    Ok(Value::Bool(false))
}

fn equal(one: &Value, other: &Value) -> Result<bool, String> {
    match (one, other) {
        (Value::Nil, Value::Nil) => Ok(true),
        (Value::Nil, _) | (_, Value::Nil) => Ok(false),
        (Value::Bool(one), Value::Bool(other)) => Ok(one == other),
        _ => compare(one, other).map(Ordering::is_eq),
    }
}

fn ordered(args: &Args<'_>, wanted: fn(Ordering) -> bool) -> Answer {
    compare(args.get(0), args.get(1)).map(|order| Value::Bool(wanted(order)))
}

/// Helm refuses to compare `2` of the values with `2` of the template, because the former is a float there; nothing
/// is gained by that.
fn compare(one: &Value, other: &Value) -> Result<Ordering, String> {
    let incomparable = || format!("{} cannot be compared with {}", one.noun(), other.noun());
    match (one, other) {
        (Value::Text(one), Value::Text(other)) => Ok(one.cmp(other)),
        (Value::Int(one) | Value::Whole(one), Value::Int(other) | Value::Whole(other)) => Ok(one.cmp(other)),
        _ => {
            let (one, other) =
                (number(one).ok_or_else(incomparable)?, number(other).ok_or_else(incomparable)?);
            one.partial_cmp(&other).ok_or_else(incomparable)
        }
    }
}

fn number(value: &Value) -> Option<f64> {
    match value {
        Value::Int(value) | Value::Whole(value) => Some(*value as f64),
        Value::Float(value) => Some(*value),
        _ => None,
    }
}

/// Whether two values are the same through and through, for functions that look for one in a list.
pub(super) fn same(one: &Value, other: &Value, budget: &Budget) -> Result<bool, String> {
    same_within(one, other, budget, MAX_NESTING)
}

fn same_within(one: &Value, other: &Value, budget: &Budget, levels: usize) -> Result<bool, String> {
    let levels = levels.checked_sub(1).ok_or_else(too_deep)?;
    budget.step()?;
    match (one, other) {
        (Value::List(one), Value::List(other)) => {
            if one.0.len() != other.0.len() {
                return Ok(false);
            }
            all(one.0.iter().zip(&other.0).map(|(one, other)| same_within(one, other, budget, levels)))
        }
        (Value::Map(one), Value::Map(other)) => {
            let (one, other) = (one.0.borrow(), other.0.borrow());
            if !one.keys().eq(other.keys()) {
                return Ok(false);
            }
            all(one.values().zip(other.values()).map(|(one, other)| same_within(one, other, budget, levels)))
        }
        // A number of the values is a float, so it is none of the template's whole numbers: Helm says nothing there.
        _ => Ok(one.kind() == other.kind() && equal(one, other).unwrap_or(false)),
    }
}

fn all(mut results: impl Iterator<Item = Result<bool, String>>) -> Result<bool, String> {
    results.try_fold(true, |so_far, next| Ok(so_far && next?))
}
