//! Worlds for the tests of plans.

use serde_json::{Value, json};

pub(crate) mod server;
pub(crate) mod side;
pub(crate) mod world;

pub(crate) use world::{Fate, World};

/// What a merge patch does.
pub(crate) fn merge(base: &mut Value, patch: &Value) {
    match (base, patch) {
        (Value::Object(base), Value::Object(patch)) => {
            for (key, value) in patch {
                if value.is_null() {
                    base.remove(key);
                } else {
                    merge(base.entry(key.clone()).or_insert(Value::Null), value);
                }
            }
        }
        (base, patch) => {
            *base = patch.clone();
            if base.is_object() {
                // What is inserted whole must lose its nulls, too.
                let inserted = std::mem::replace(base, json!({}));
                merge(base, &inserted);
            }
        }
    }
}

/// The kind that a step is about, in the plural.
pub(crate) fn plural(step: &crate::steps::Step) -> String {
    step.target.to_string().rsplit('/').nth(1).unwrap_or_default().to_owned()
}
