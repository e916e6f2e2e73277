//! Maps. `set`, `unset` and the merges change a map that others may hold as well, as in Go.

use std::collections::BTreeMap;

use super::{ANY, Answer, Args, Function, merge, plain};
use crate::template::budget::{ITEM_COST, MAP_COST};
use crate::template::format;
use crate::template::value::Value;

pub(super) static TABLE: &[Function] = &[
    plain("dict", 0, ANY, dict),
    plain("get", 2, 2, |args| {
        Ok(args.map(0)?.0.borrow().get(args.text(1)?).cloned().unwrap_or_else(|| Value::text("")))
    }),
    plain("set", 3, 3, set),
    plain("unset", 2, 2, |args| {
        args.map(0)?.0.borrow_mut().remove(args.text(1)?);
        Ok(args.get(0).clone())
    }),
    plain("hasKey", 2, 2, |args| Ok(Value::Bool(args.map(0)?.0.borrow().contains_key(args.text(1)?)))),
    plain("keys", 0, ANY, keys),
    plain("values", 1, 1, |args| args.give_list(args.map(0)?.0.borrow().values().cloned().collect())),
    plain("pluck", 1, ANY, pluck),
    plain("pick", 1, ANY, |args| filtered(args, true)),
    plain("omit", 1, ANY, |args| filtered(args, false)),
    plain("dig", 3, ANY, dig),
    plain("merge", 1, ANY, |args| merge::all_into_first(args, merge::Winner::Target)),
    plain("mergeOverwrite", 1, ANY, |args| merge::all_into_first(args, merge::Winner::Source)),
    plain("mustMerge", 1, ANY, |args| merge::all_into_first(args, merge::Winner::Target)),
    plain("mustMergeOverwrite", 1, ANY, |args| merge::all_into_first(args, merge::Winner::Source)),
    plain("deepCopy", 1, 1, |args| merge::copy(args.get(0), args.budget)),
    plain("mustDeepCopy", 1, 1, |args| merge::copy(args.get(0), args.budget)),
];

/// Keys and values in turn; a last key without value gets an empty text.
fn dict(args: &Args<'_>) -> Answer {
    args.budget.make(MAP_COST + args.count() * ITEM_COST)?;
    let mut entries = BTreeMap::new();
    for pair in args.all().chunks(2) {
        let (key, value) = (&pair[0], pair.get(1).cloned().unwrap_or_else(|| Value::text("")));
        entries.insert(format::show(key, args.budget)?, value);
    }
    Ok(Value::map(entries))
}

fn set(args: &Args<'_>) -> Answer {
    let key = args.text(1)?;
    args.budget.make(key.len() + ITEM_COST)?;
    args.map(0)?.0.borrow_mut().insert(key.to_owned(), args.get(2).clone());
    Ok(args.get(0).clone())
}

/// The keys of all the maps. Go gives them in any order, here they are sorted.
fn keys(args: &Args<'_>) -> Answer {
    let mut keys = Vec::new();
    for at in 0..args.count() {
        let map = args.map(at)?.0.borrow();
        args.budget.make(map.len() * ITEM_COST)?;
        keys.extend(map.keys().map(|key| Value::text(key.as_str())));
    }
    args.give_list(keys)
}

/// `pluck key map…`: what the maps have at that key.
fn pluck(args: &Args<'_>) -> Answer {
    let key = args.text(0)?;
    let mut found = Vec::new();
    for at in 1..args.count() {
        found.extend(args.map(at)?.0.borrow().get(key).cloned());
    }
    args.give_list(found)
}

/// The map with only the named keys, or with all others.
fn filtered(args: &Args<'_>, keep: bool) -> Answer {
    let map = args.map(0)?.0.borrow();
    args.budget.make(MAP_COST + map.len() * ITEM_COST)?;
    let named: Vec<&str> = (1..args.count()).map(|at| args.text(at)).collect::<Result<_, _>>()?;
    let kept = map.iter().filter(|(key, _)| named.contains(&key.as_str()) == keep);
    Ok(Value::map(kept.map(|(key, value)| (key.clone(), value.clone())).collect()))
}

/// `dig key… default map`
fn dig(args: &Args<'_>) -> Answer {
    let last = args.count() - 1;
    let fallback = args.get(last - 1);
    let mut value = Value::Map(args.map(last)?.clone());
    for at in 0..last - 1 {
        let Value::Map(map) = &value else {
            return Err(format!("there is no map in which to look for {:?}", args.text(at)?));
        };
        let next = map.0.borrow().get(args.text(at)?).cloned();
        let Some(next) = next else { return Ok(fallback.clone()) };
        value = next;
    }
    Ok(value)
}
