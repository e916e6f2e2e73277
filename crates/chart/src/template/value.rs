//! What a template reckons with: Go's dynamic values, as far as charts can see them.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::mem;
use std::rc::Rc;

use serde_json::{Number, Value as Json};

use super::budget::{Budget, MAP_COST};
use super::files::Files;

/// Lists and maps inside each other. `set` can put a map into itself, so walks need an end.
pub(crate) const MAX_NESTING: usize = 100;

/// The largest whole number up to which a float holds every whole number exactly.
const MAX_EXACT: f64 = 9_007_199_254_740_992.0;

/// A value of the template language.
#[derive(Debug, Clone)]
pub(crate) enum Value {
    /// Nothing: `nil`, and what a missing key gives.
    Nil,
    /// `true` or `false`.
    Bool(bool),
    /// A whole number of a template.
    Int(i64),
    /// A whole number of a YAML document. Helm has these as floats, and so `kindOf` says, but here they keep every
    /// digit and are printed without an exponent.
    Whole(i64),
    /// A number with a fraction.
    Float(f64),
    /// A text.
    Text(Rc<str>),
    /// A list; never changed once made.
    List(Rc<List>),
    /// A map, shared by all who hold it: `set` changes it for everyone.
    Map(Rc<Map>),
    /// `.Files`.
    Files(Rc<Files>),
    /// `.Capabilities.APIVersions`.
    ApiVersions(Rc<[String]>),
}

/// The items of a list.
#[derive(Debug, Default)]
pub(crate) struct List(pub(crate) Vec<Value>);

/// The entries of a map, sorted, as templates print and walk them.
#[derive(Debug, Default)]
pub(crate) struct Map(pub(crate) RefCell<BTreeMap<String, Value>>);

// A template can nest lists a million deep one by one; dropping that recursively would overflow the stack.
impl Drop for List {
    fn drop(&mut self) {
        dismantle(mem::take(&mut self.0));
    }
}

impl Drop for Map {
    fn drop(&mut self) {
        dismantle(mem::take(self.0.get_mut()).into_values().collect());
    }
}

fn dismantle(mut waiting: Vec<Value>) {
    while let Some(value) = waiting.pop() {
        match value {
            Value::List(mut list) => {
                if let Some(list) = Rc::get_mut(&mut list) {
                    waiting.append(&mut list.0);
                }
            }
            Value::Map(mut map) => {
                if let Some(map) = Rc::get_mut(&mut map) {
                    waiting.extend(mem::take(map.0.get_mut()).into_values());
                }
            }
            _ => {}
        }
    }
}

impl Value {
    pub(crate) fn text(text: impl Into<Rc<str>>) -> Self {
        Self::Text(text.into())
    }

    pub(crate) fn list(items: Vec<Value>) -> Self {
        Self::List(Rc::new(List(items)))
    }

    pub(crate) fn map(entries: BTreeMap<String, Value>) -> Self {
        Self::Map(Rc::new(Map(RefCell::new(entries))))
    }

    /// Whether `if` takes the branch.
    pub(crate) fn is_true(&self) -> bool {
        match self {
            Self::Nil => false,
            Self::Bool(value) => *value,
            Self::Int(value) | Self::Whole(value) => *value != 0,
            Self::Float(value) => *value != 0.0,
            Self::Text(value) => !value.is_empty(),
            Self::List(value) => !value.0.is_empty(),
            Self::Map(value) => !value.0.borrow().is_empty(),
            Self::Files(value) => !value.is_empty(),
            Self::ApiVersions(value) => !value.is_empty(),
        }
    }

    /// Go's name of the kind, as `kindOf` tells it.
    pub(crate) fn kind(&self) -> &'static str {
        match self {
            Self::Nil => "invalid",
            Self::Bool(_) => "bool",
            Self::Int(_) => "int",
            Self::Whole(_) | Self::Float(_) => "float64",
            Self::Text(_) => "string",
            Self::List(_) | Self::ApiVersions(_) => "slice",
            Self::Map(_) | Self::Files(_) => "map",
        }
    }

    /// Go's name of the type, as `typeOf` tells it.
    pub(crate) fn type_name(&self) -> &'static str {
        match self {
            Self::Nil => "<nil>",
            Self::List(_) => "[]interface {}",
            Self::Map(_) => "map[string]interface {}",
            Self::Files(_) => "engine.files",
            Self::ApiVersions(_) => "chartutil.VersionSet",
            other => other.kind(),
        }
    }

    /// What people call such a value, for messages.
    pub(crate) fn noun(&self) -> &'static str {
        match self {
            Self::Nil => "nothing",
            Self::Bool(_) => "true or false",
            Self::Int(_) | Self::Whole(_) | Self::Float(_) => "a number",
            Self::Text(_) => "a text",
            Self::List(_) | Self::ApiVersions(_) => "a list",
            Self::Map(_) | Self::Files(_) => "a map",
        }
    }

    /// Reads a YAML or JSON document's value.
    pub(crate) fn from_json(json: &Json) -> Self {
        match json {
            Json::Null => Self::Nil,
            Json::Bool(value) => Self::Bool(*value),
            Json::Number(number) => from_number(number),
            Json::String(text) => Self::text(text.as_str()),
            Json::Array(items) => Self::list(items.iter().map(Self::from_json).collect()),
            Json::Object(entries) => {
                Self::map(entries.iter().map(|(key, value)| (key.clone(), Self::from_json(value))).collect())
            }
        }
    }

    /// As JSON, for `toYaml`, `toJson` and their like.
    pub(crate) fn to_json(&self, budget: &Budget) -> Result<Json, String> {
        self.to_json_within(budget, MAX_NESTING)
    }

    fn to_json_within(&self, budget: &Budget, levels: usize) -> Result<Json, String> {
        let levels = levels.checked_sub(1).ok_or_else(too_deep)?;
        budget.step()?;
        Ok(match self {
            Self::Nil => Json::Null,
            Self::Bool(value) => Json::Bool(*value),
            Self::Int(value) | Self::Whole(value) => Json::from(*value),
            Self::Float(value) => from_float(*value)?,
            Self::Text(text) => {
                budget.make(text.len())?;
                Json::from(&**text)
            }
            Self::List(list) => Json::Array(
                list.0.iter().map(|item| item.to_json_within(budget, levels)).collect::<Result<_, _>>()?,
            ),
            Self::Map(map) => {
                budget.make(MAP_COST)?;
                let entry = |(key, value): (&String, &Value)| {
                    budget.make(key.len())?;
                    Ok((key.clone(), value.to_json_within(budget, levels)?))
                };
                Json::Object(map.0.borrow().iter().map(entry).collect::<Result<_, String>>()?)
            }
            Self::Files(files) => files.as_config()?,
            Self::ApiVersions(versions) => versions.iter().map(String::as_str).collect(),
        })
    }
}

pub(crate) fn too_deep() -> String {
    format!("lists and maps are more than {MAX_NESTING} deep; is a map inside itself?")
}

fn from_number(number: &Number) -> Value {
    if let Some(whole) = number.as_i64() {
        return Value::Whole(whole);
    }
    let float = number.as_f64().unwrap_or(f64::NAN);
    if float.fract() == 0.0 && float.abs() < MAX_EXACT {
        Value::Whole(float as i64)
    } else {
        Value::Float(float)
    }
}

/// Go writes a float without fraction as a whole number.
fn from_float(float: f64) -> Result<Json, String> {
    if float.fract() == 0.0 && float.abs() < MAX_EXACT {
        return Ok(Json::from(float as i64));
    }
    Number::from_f64(float)
        .map(Json::Number)
        .ok_or_else(|| format!("{float} cannot be written as YAML or JSON"))
}
