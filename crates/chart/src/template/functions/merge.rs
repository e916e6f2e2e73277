//! Merging maps into each other, as Sprig does.

use std::collections::BTreeMap;
use std::rc::Rc;

use super::{Answer, Args};
use crate::template::budget::{Budget, ITEM_COST, MAP_COST};
use crate::template::value::{MAX_NESTING, Map, Value, too_deep};

/// Whose value stays if both maps have one.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Winner {
    /// The map that is merged into, except for what is empty there.
    Target,
    /// The map that is merged.
    Source,
}

/// Merges all arguments into the first.
pub(super) fn all_into_first(args: &Args<'_>, winner: Winner) -> Answer {
    let target = args.map(0)?;
    for at in 1..args.count() {
        merge(target, args.map(at)?, winner, args.budget, MAX_NESTING)?;
    }
    Ok(args.get(0).clone())
}

fn merge(
    target: &Rc<Map>,
    source: &Rc<Map>,
    winner: Winner,
    budget: &Budget,
    levels: usize,
) -> Result<(), String> {
    let levels = levels.checked_sub(1).ok_or_else(too_deep)?;
    // A copy, because both may be the same map.
    let source = source.0.borrow().clone();
    budget.make(MAP_COST + source.len() * ITEM_COST)?;
    for (key, new) in source {
        let old = target.0.borrow().get(&key).cloned();
        match (old, new) {
            (Some(Value::Map(old)), Value::Map(new)) => merge(&old, &new, winner, budget, levels)?,
            (Some(old), _) if winner == Winner::Target && old.is_true() => {}
            (None, Value::Nil) if winner == Winner::Target => {}
            (_, new) => {
                target.0.borrow_mut().insert(key, new);
            }
        }
    }
    Ok(())
}

/// A copy that shares nothing.
pub(super) fn copy(value: &Value, budget: &Budget) -> Answer {
    copy_within(value, budget, MAX_NESTING)
}

fn copy_within(value: &Value, budget: &Budget, levels: usize) -> Answer {
    let levels = levels.checked_sub(1).ok_or_else(too_deep)?;
    budget.make(ITEM_COST)?;
    Ok(match value {
        Value::List(list) => Value::list(
            list.0.iter().map(|item| copy_within(item, budget, levels)).collect::<Result<_, _>>()?,
        ),
        Value::Map(map) => {
            budget.make(MAP_COST)?;
            let copied =
                |(key, value): (&String, &Value)| Ok((key.clone(), copy_within(value, budget, levels)?));
            Value::map(map.0.borrow().iter().map(copied).collect::<Result<BTreeMap<_, _>, String>>()?)
        }
        other => other.clone(),
    })
}
