//! Reckoning.

use super::{ANY, Answer, Args, Function, plain};
use crate::template::literal;
use crate::template::value::Value;

pub(super) static TABLE: &[Function] = &[
    plain("int", 1, 1, |args| Ok(Value::Int(to_int(args.get(0))))),
    plain("int64", 1, 1, |args| Ok(Value::Int(to_int(args.get(0))))),
    plain("float64", 1, 1, |args| Ok(Value::Float(to_float(args.get(0))))),
    plain("atoi", 1, 1, |args| Ok(Value::Int(args.text(0)?.parse().unwrap_or(0)))),
    plain("add", 0, ANY, |args| fold(args, 0, i64::wrapping_add)),
    plain("add1", 1, 1, |args| Ok(Value::Int(to_int(args.get(0)).wrapping_add(1)))),
    plain("sub", 2, 2, |args| Ok(Value::Int(to_int(args.get(0)).wrapping_sub(to_int(args.get(1)))))),
    plain("mul", 1, ANY, |args| fold(args, 1, i64::wrapping_mul)),
    plain("div", 2, 2, |args| divide(args, i64::checked_div)),
    plain("mod", 2, 2, |args| divide(args, i64::checked_rem)),
    plain("max", 1, ANY, |args| fold(args, i64::MIN, i64::max)),
    plain("min", 1, ANY, |args| fold(args, i64::MAX, i64::min)),
    plain("floor", 1, 1, |args| Ok(Value::Float(to_float(args.get(0)).floor()))),
    plain("ceil", 1, 1, |args| Ok(Value::Float(to_float(args.get(0)).ceil()))),
    plain("round", 2, 2, round),
    plain("until", 1, 1, until),
    plain("untilStep", 3, 3, |args| steps(args, args.int(0)?, args.int(1)?, args.int(2)?)),
];

fn fold(args: &Args<'_>, start: i64, with: fn(i64, i64) -> i64) -> Answer {
    Ok(Value::Int(args.all().iter().map(to_int).fold(start, with)))
}

fn divide(args: &Args<'_>, with: fn(i64, i64) -> Option<i64>) -> Answer {
    let (one, other) = (to_int(args.get(0)), to_int(args.get(1)));
    with(one, other).map(Value::Int).ok_or_else(|| format!("{one} cannot be divided by {other}"))
}

/// Half is rounded away from zero.
fn round(args: &Args<'_>) -> Answer {
    let digits = i32::try_from(args.int(1)?).unwrap_or(0);
    let scale = 10_f64.powi(digits);
    Ok(Value::Float((to_float(args.get(0)) * scale).round() / scale))
}

fn until(args: &Args<'_>) -> Answer {
    let end = args.int(0)?;
    steps(args, 0, end, if end < 0 { -1 } else { 1 })
}

fn steps(args: &Args<'_>, start: i64, end: i64, step: i64) -> Answer {
    let mut items = Vec::new();
    let mut next = start;
    while step != 0 && (if step > 0 { next < end } else { next > end }) {
        args.budget.step()?;
        items.push(Value::Int(next));
        next = match next.checked_add(step) {
            Some(next) => next,
            None => break,
        };
    }
    args.give_list(items)
}

/// What is no number counts as zero, as in Sprig.
pub(super) fn to_int(value: &Value) -> i64 {
    match value {
        Value::Int(value) | Value::Whole(value) => *value,
        Value::Float(value) => *value as i64,
        Value::Bool(value) => i64::from(*value),
        Value::Text(text) => {
            let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
            // `5.00` is whole, `5.01` is no number.
            let digits = digits
                .split_once('.')
                .filter(|(_, zeros)| zeros.bytes().all(|zero| zero == b'0'))
                .map_or(digits, |(whole, _)| whole);
            let magnitude = literal::parse_int(digits).unwrap_or(0);
            i64::try_from(if text.starts_with('-') { -magnitude } else { magnitude }).unwrap_or(0)
        }
        _ => 0,
    }
}

fn to_float(value: &Value) -> f64 {
    match value {
        Value::Int(value) | Value::Whole(value) => *value as f64,
        Value::Float(value) => *value,
        Value::Bool(value) => f64::from(u8::from(*value)),
        Value::Text(text) => text.parse().unwrap_or(0.0),
        _ => 0.0,
    }
}
