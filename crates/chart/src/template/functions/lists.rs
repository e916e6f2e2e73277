//! Lists.

use super::compare::same;
use super::numbers::to_int;
use super::strings::strings;
use super::{ANY, Answer, Args, Function, plain};
use crate::template::value::Value;

pub(super) static TABLE: &[Function] = &[
    plain("list", 0, ANY, |args| args.give_list(args.all().to_vec())),
    plain("tuple", 0, ANY, |args| args.give_list(args.all().to_vec())),
    plain("len", 1, 1, len),
    plain("index", 1, ANY, index),
    plain("slice", 1, 3, slice),
    plain("first", 1, 1, |args| Ok(args.list(0)?.0.first().cloned().unwrap_or(Value::Nil))),
    plain("last", 1, 1, |args| Ok(args.list(0)?.0.last().cloned().unwrap_or(Value::Nil))),
    plain("rest", 1, 1, |args| part(args, |items| items.split_first().map(|(_, rest)| rest))),
    plain("initial", 1, 1, |args| part(args, |items| items.split_last().map(|(_, rest)| rest))),
    plain("append", 2, 2, |args| {
        args.give_list(args.list(0)?.0.iter().chain([args.get(1)]).cloned().collect())
    }),
    plain("prepend", 2, 2, |args| {
        args.give_list([args.get(1)].into_iter().chain(&args.list(0)?.0).cloned().collect())
    }),
    plain("concat", 0, ANY, concat),
    plain("reverse", 1, 1, |args| args.give_list(args.list(0)?.0.iter().rev().cloned().collect())),
    plain("compact", 1, 1, |args| {
        args.give_list(args.list(0)?.0.iter().filter(|item| item.is_true()).cloned().collect())
    }),
    plain("has", 2, 2, has),
    plain("without", 1, ANY, without),
    plain("uniq", 1, 1, uniq),
    plain("sortAlpha", 1, 1, |args| {
        let mut texts = strings(args.get(0), args)?;
        texts.sort_unstable();
        args.give_list(texts.into_iter().map(Value::text).collect())
    }),
];

fn len(args: &Args<'_>) -> Answer {
    let length = match args.get(0) {
        Value::Text(text) => text.len(),
        Value::Map(map) => map.0.borrow().len(),
        Value::Files(files) => files.0.len(),
        _ => args.list(0).map_err(|_| format!("{} has no length", args.get(0).noun()))?.0.len(),
    };
    Ok(Value::Int(i64::try_from(length).unwrap_or(i64::MAX)))
}

/// `index value key…`: into the value, and with each further key into what was found.
fn index(args: &Args<'_>) -> Answer {
    let mut value = args.get(0).clone();
    for key in args.all().iter().skip(1) {
        value = match (&value, key) {
            (Value::Map(map), Value::Text(key)) => map.0.borrow().get(&**key).cloned().unwrap_or(Value::Nil),
            (Value::List(list), Value::Int(at) | Value::Whole(at)) => {
                let item = usize::try_from(*at).ok().and_then(|at| list.0.get(at));
                item.cloned().ok_or_else(|| format!("index out of range: {at} of {} items", list.0.len()))?
            }
            (Value::Nil, _) => return Err("what is not set cannot be indexed".into()),
            (other, key) => return Err(format!("{} cannot be indexed with {}", other.noun(), key.noun())),
        };
    }
    Ok(value)
}

/// `slice list start end`, also of a text.
fn slice(args: &Args<'_>) -> Answer {
    let list = match args.get(0) {
        Value::Text(_) => None,
        _ => Some(args.list(0)?),
    };
    let length = list.as_ref().map_or_else(|| args.text(0).map(str::len), |list| Ok(list.0.len()))?;
    if length == 0 {
        return Ok(Value::Nil);
    }
    let bound = |at: usize, missing: usize| match args.get(at) {
        Value::Nil => Ok(missing),
        bound => usize::try_from(to_int(bound)).map_err(|_| "a bound is negative".to_owned()),
    };
    let (start, end) = (bound(1, 0)?, bound(2, length)?);
    let out_of_range = || format!("{start} to {end} is out of range: the length is {length}");
    match list {
        Some(list) => args.give_list(list.0.get(start..end).ok_or_else(out_of_range)?.to_vec()),
        None => args.give_text(args.text(0)?.get(start..end).ok_or_else(out_of_range)?),
    }
}

/// A part of the list; of an empty list it is empty too.
fn part(args: &Args<'_>, part: fn(&[Value]) -> Option<&[Value]>) -> Answer {
    args.give_list(part(&args.list(0)?.0).unwrap_or_default().to_vec())
}

fn concat(args: &Args<'_>) -> Answer {
    let mut items = Vec::new();
    for at in 0..args.count() {
        let list = args.list(at)?;
        args.budget.make(list.0.len())?;
        items.extend(list.0.iter().cloned());
    }
    args.give_list(items)
}

/// `has item list`
fn has(args: &Args<'_>) -> Answer {
    if matches!(args.get(1), Value::Nil) {
        return Ok(Value::Bool(false));
    }
    contains(&args.list(1)?.0, args.get(0), args).map(Value::Bool)
}

/// `without list item…`
fn without(args: &Args<'_>) -> Answer {
    let mut kept = Vec::new();
    for item in &args.list(0)?.0 {
        if !contains(&args.all()[1..], item, args)? {
            kept.push(item.clone());
        }
    }
    args.give_list(kept)
}

fn uniq(args: &Args<'_>) -> Answer {
    let mut kept = Vec::new();
    for item in &args.list(0)?.0 {
        if !contains(&kept, item, args)? {
            kept.push(item.clone());
        }
    }
    args.give_list(kept)
}

fn contains(items: &[Value], wanted: &Value, args: &Args<'_>) -> Result<bool, String> {
    for item in items {
        if same(item, wanted, args.budget)? {
            return Ok(true);
        }
    }
    Ok(false)
}
