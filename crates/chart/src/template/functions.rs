//! The functions that templates can call: those of Go's text/template, of Sprig and of Helm.

use std::rc::Rc;

use super::budget::{Budget, ITEM_COST};
use super::value::{List, Map, Value};

mod compare;
mod encoding;
mod lists;
mod logic;
mod maps;
mod merge;
mod numbers;
mod regexes;
mod semver;
mod strings;
mod types;

pub(crate) use semver::satisfies;

/// What a function gives, or the reason why it cannot.
pub(crate) type Answer = Result<Value, String>;

/// More arguments than anyone writes.
const ANY: usize = usize::MAX;

/// A function by its name.
#[derive(Debug)]
pub(crate) struct Function {
    pub(crate) name: &'static str,
    least: usize,
    most: usize,
    pub(crate) action: Action,
}

/// What calling a function does.
#[derive(Debug)]
pub(crate) enum Action {
    /// Reckons with its arguments.
    Plain(fn(&Args<'_>) -> Answer),
    /// Like a plain one, but its error is a message of the chart to the user.
    Spoken(fn(&Args<'_>) -> Answer),
    /// Evaluates its arguments only as far as needed.
    And,
    /// Evaluates its arguments only as far as needed.
    Or,
    /// Runs a named template.
    Include,
    /// Runs a text as a template.
    Tpl,
}

const fn plain(name: &'static str, least: usize, most: usize, call: fn(&Args<'_>) -> Answer) -> Function {
    Function { name, least, most, action: Action::Plain(call) }
}

static SPECIAL: [Function; 6] = [
    Function { name: "and", least: 1, most: ANY, action: Action::And },
    Function { name: "or", least: 1, most: ANY, action: Action::Or },
    Function { name: "include", least: 2, most: 2, action: Action::Include },
    Function { name: "tpl", least: 2, most: 2, action: Action::Tpl },
    Function { name: "fail", least: 1, most: 1, action: Action::Spoken(logic::fail) },
    Function { name: "required", least: 2, most: 2, action: Action::Spoken(logic::required) },
];

static TABLES: [&[Function]; 10] = [
    &SPECIAL,
    logic::TABLE,
    compare::TABLE,
    strings::TABLE,
    numbers::TABLE,
    lists::TABLE,
    maps::TABLE,
    encoding::TABLE,
    regexes::TABLE,
    types::TABLE,
];

/// The function of this name.
pub(crate) fn find(name: &str) -> Option<&'static Function> {
    TABLES.iter().copied().flatten().find(|function| function.name == name)
}

impl Function {
    /// Whether the number of arguments is right.
    pub(crate) fn check(&self, arguments: &[Value]) -> Result<(), String> {
        let count = arguments.len();
        if (self.least..=self.most).contains(&count) {
            return Ok(());
        }
        let wanted = match (self.least, self.most) {
            (least, most) if least == most => format!("{least}"),
            (least, ANY) => format!("at least {least}"),
            (least, most) => format!("{least} to {most}"),
        };
        Err(format!("wrong number of arguments: wants {wanted}, got {count}"))
    }
}

/// The arguments of a call.
#[derive(Debug)]
pub(crate) struct Args<'a> {
    values: &'a [Value],
    pub(crate) budget: &'a Budget,
}

impl<'a> Args<'a> {
    pub(crate) fn new(values: &'a [Value], budget: &'a Budget) -> Self {
        Self { values, budget }
    }

    pub(crate) fn all(&self) -> &'a [Value] {
        self.values
    }

    pub(crate) fn count(&self) -> usize {
        self.values.len()
    }

    /// An argument; nothing if it is not given.
    pub(crate) fn get(&self, at: usize) -> &'a Value {
        self.values.get(at).unwrap_or(&Value::Nil)
    }

    /// An argument that must be a text. Reading it is paid for here.
    pub(crate) fn text(&self, at: usize) -> Result<&'a str, String> {
        match self.get(at) {
            Value::Text(text) => {
                self.budget.read(text.len())?;
                Ok(text)
            }
            other => Err(wrong(at, "a text", other)),
        }
    }

    /// An argument that must be a whole number.
    pub(crate) fn int(&self, at: usize) -> Result<i64, String> {
        match self.get(at) {
            Value::Int(value) | Value::Whole(value) => Ok(*value),
            other => Err(wrong(at, "a whole number", other)),
        }
    }

    /// An argument that must be `true` or `false`.
    pub(crate) fn bool(&self, at: usize) -> Result<bool, String> {
        match self.get(at) {
            Value::Bool(value) => Ok(*value),
            other => Err(wrong(at, "true or false", other)),
        }
    }

    /// An argument that must be a list. Reading it is paid for here.
    pub(crate) fn list(&self, at: usize) -> Result<Rc<List>, String> {
        let list = match self.get(at) {
            Value::List(list) => Rc::clone(list),
            Value::ApiVersions(all) => {
                Rc::new(List(all.iter().map(|one| Value::text(one.as_str())).collect()))
            }
            other => return Err(wrong(at, "a list", other)),
        };
        self.budget.read(list.0.len() * ITEM_COST)?;
        Ok(list)
    }

    /// An argument that must be a map.
    pub(crate) fn map(&self, at: usize) -> Result<&'a Rc<Map>, String> {
        match self.get(at) {
            Value::Map(map) => Ok(map),
            other => Err(wrong(at, "a map", other)),
        }
    }

    /// Gives a text, which is paid for here.
    pub(crate) fn give_text(&self, text: impl Into<Rc<str>>) -> Answer {
        let text = text.into();
        self.budget.make(text.len())?;
        Ok(Value::Text(text))
    }

    /// Gives a list, which is paid for here.
    pub(crate) fn give_list(&self, items: Vec<Value>) -> Answer {
        self.budget.make(items.len() * ITEM_COST)?;
        Ok(Value::list(items))
    }
}

fn wrong(at: usize, wanted: &str, got: &Value) -> String {
    format!("argument {} must be {wanted}, but is {}", at + 1, got.noun())
}

#[cfg(test)]
mod tests;
