//! Values: what a user gives to a chart, in files and as `--set`, and how it meets the chart's defaults.

use serde_json::{Map, Value};

use crate::yaml;

mod set;

pub use crate::yaml::YamlError;
pub use set::{SetError, set, set_string};

/// A values file that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ValuesError {
    /// It is no YAML.
    #[error("this is not YAML: {0}")]
    Syntax(#[from] YamlError),
    /// It is YAML, but no map.
    #[error("values must be a map of names to values, but this is {0}")]
    NoMap(&'static str),
}

/// Reads a values file. An empty one has no values.
pub fn load(text: &str) -> Result<Value, ValuesError> {
    match yaml::read(text)? {
        Value::Null => Ok(Value::Object(Map::new())),
        map @ Value::Object(_) => Ok(map),
        Value::Array(_) => Err(ValuesError::NoMap("a list")),
        Value::String(_) => Err(ValuesError::NoMap("a text")),
        Value::Number(_) => Err(ValuesError::NoMap("a number")),
        Value::Bool(_) => Err(ValuesError::NoMap("true or false")),
    }
}

/// Lays one user's values over others: maps are merged, everything else is replaced.
///
/// A null stays, because it has a meaning: it deletes a default of the chart, see [`coalesce`].
pub fn merge(base: &mut Value, over: &Value) {
    match (base, over) {
        (Value::Object(base), Value::Object(over)) => {
            for (key, value) in over {
                merge(base.entry(key.clone()).or_insert(Value::Null), value);
            }
        }
        (base, over) => *base = over.clone(),
    }
}

/// The chart's defaults with the user's values over them. A null of the user removes the default.
///
/// As in Helm, a map stays a map: where the chart has one and the user gives something else, or the other way round,
/// the user's is taken, and whether the chart can do with it is for the schema to say.
pub fn coalesce(defaults: &Value, user: &Value) -> Value {
    let (Value::Object(defaults), Value::Object(user)) = (defaults, user) else { return user.clone() };
    let mut values = user.clone();
    for (key, default) in defaults {
        match user.get(key) {
            None => drop(values.insert(key.clone(), default.clone())),
            Some(Value::Null) => drop(values.remove(key)),
            Some(given) => drop(values.insert(key.clone(), coalesce(default, given))),
        }
    }
    Value::Object(values)
}

#[cfg(test)]
mod tests;
