//! Worlds for the tests of plans.

use serde_json::{Value, json};

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
