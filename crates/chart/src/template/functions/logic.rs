//! Defaults, choices and refusals.

use super::{Answer, Args, Function, plain};
use crate::template::value::{Map, Value};

pub(super) static TABLE: &[Function] = &[
    plain("not", 1, 1, |args| Ok(Value::Bool(!args.get(0).is_true()))),
    plain("default", 1, 2, default),
    plain("empty", 1, 1, |args| Ok(Value::Bool(!args.get(0).is_true()))),
    plain("coalesce", 0, super::ANY, |args| Ok(first_filled(args.all()))),
    plain("ternary", 3, 3, |args| Ok(args.get(usize::from(!args.bool(2)?)).clone())),
    plain("all", 0, super::ANY, |args| Ok(Value::Bool(args.all().iter().all(Value::is_true)))),
    plain("any", 0, super::ANY, |args| Ok(Value::Bool(args.all().iter().any(Value::is_true)))),
    // As `helm template` does: nothing is asked of a cluster, so that the chart is the same everywhere.
    plain("lookup", 4, 4, |_| Ok(Value::Map(Map::default().into()))),
];

fn default(args: &Args<'_>) -> Answer {
    let fallback = args.get(0);
    Ok(if args.get(1).is_true() { args.get(1) } else { fallback }.clone())
}

fn first_filled(values: &[Value]) -> Value {
    values.iter().find(|value| value.is_true()).cloned().unwrap_or(Value::Nil)
}

/// `fail "message"`
pub(super) fn fail(args: &Args<'_>) -> Answer {
    Err(args.text(0)?.to_owned())
}

/// `required "message" value`
pub(super) fn required(args: &Args<'_>) -> Answer {
    match args.get(1) {
        Value::Nil => fail(args),
        Value::Text(text) if text.is_empty() => fail(args),
        given => Ok(given.clone()),
    }
}
