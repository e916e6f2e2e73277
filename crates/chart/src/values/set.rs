//! Helm's `--set`: `name=value`, `outer.inner=value`, `list[0]=value`, `list={a,b}`, apart by commas; a backslash takes
//! a character's meaning away.

use serde_json::{Map, Value};

/// The largest index of a list, so that a typing error does not fill the memory.
const MAX_INDEX: usize = 65_536;

/// How deep a name may go.
const MAX_DEPTH: usize = 30;

/// A `--set` that cannot be understood.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("cannot set {argument:?}: {reason} (at character {at})")]
pub struct SetError {
    argument: String,
    /// Counted from one.
    at: usize,
    reason: String,
}

/// Sets what the argument says. Whole numbers, `true`, `false` and `null` are what they look like; the rest is text.
pub fn set(values: &mut Value, argument: &str) -> Result<(), SetError> {
    apply(values, argument, guess_type)
}

/// Sets what the argument says, all as text.
pub fn set_string(values: &mut Value, argument: &str) -> Result<(), SetError> {
    apply(values, argument, Value::String)
}

/// All or nothing: on an error the values stay as they were.
fn apply(values: &mut Value, argument: &str, as_value: fn(String) -> Value) -> Result<(), SetError> {
    let mut reader = Reader { argument, rest: argument, as_value };
    let mut changed = values.clone();
    while !reader.rest.is_empty() {
        let path = reader.path()?;
        let value = reader.value()?;
        place(&mut changed, &path, value).map_err(|reason| reader.error(reason))?;
    }
    *values = changed;
    Ok(())
}

fn guess_type(text: String) -> Value {
    match text.to_ascii_lowercase().as_str() {
        "true" => return Value::Bool(true),
        "false" => return Value::Bool(false),
        "null" => return Value::Null,
        "0" => return Value::from(0),
        _ => {}
    }
    // What starts with a zero is rather a zip code or a digest than a number.
    let whole = text.parse::<i64>().ok().filter(|_| !text.starts_with('0'));
    whole.map_or(Value::String(text), Value::from)
}

/// A step on the way to a value.
#[derive(Debug, Clone)]
enum Step {
    Key(String),
    Index(usize),
}

struct Reader<'a> {
    argument: &'a str,
    rest: &'a str,
    as_value: fn(String) -> Value,
}

impl Reader<'_> {
    /// Reads a name up to and including its `=`.
    fn path(&mut self) -> Result<Vec<Step>, SetError> {
        let mut path = Vec::new();
        loop {
            let (name, mut end) = self.until("=[,.");
            if name.is_empty() {
                return Err(self.error("a name is missing"));
            }
            path.push(Step::Key(name));
            while end == Some('[') {
                path.push(self.index()?);
                end = self.next();
            }
            if path.len() > MAX_DEPTH {
                return Err(self.error(format!("the name is more than {MAX_DEPTH} levels deep")));
            }
            match end {
                Some('=') => return Ok(path),
                Some('.') => {}
                Some(',') | None => {
                    return Err(self.error(format!(
                        "{} has no value; a comma inside a value is written \\,",
                        shown(&path)
                    )));
                }
                Some(other) => return Err(self.error(format!("unexpected {other:?} after an index"))),
            }
        }
    }

    /// Reads an index, whose `[` is already read.
    fn index(&mut self) -> Result<Step, SetError> {
        let (index, end) = self.until("]");
        if end.is_none() {
            return Err(self.error("] is missing"));
        }
        match index.parse::<usize>() {
            Ok(index) if index <= MAX_INDEX => Ok(Step::Index(index)),
            Ok(_) => Err(self.error(format!("the index {index} is larger than {MAX_INDEX}"))),
            Err(_) => Err(self.error(format!("{index:?} is not an index of a list"))),
        }
    }

    /// Reads a value and the comma behind it.
    fn value(&mut self) -> Result<Value, SetError> {
        let Some(list) = self.rest.strip_prefix('{') else {
            let (text, _) = self.until(",");
            return Ok((self.as_value)(text));
        };
        self.rest = list;
        let mut items = Vec::new();
        loop {
            let (text, end) = self.until(",}");
            items.push((self.as_value)(text));
            match end {
                Some(',') => {}
                Some(_) => break,
                None => return Err(self.error("a list must end with }")),
            }
        }
        match self.next() {
            Some(',') | None => Ok(Value::Array(items)),
            Some(other) => Err(self.error(format!("unexpected {other:?} after a list"))),
        }
    }

    /// Reads up to and including one of the characters, which it tells; none at the end of the argument.
    fn until(&mut self, ends: &str) -> (String, Option<char>) {
        let mut text = String::new();
        while let Some(next) = self.next() {
            match next {
                '\\' => text.extend(self.next()),
                next if ends.contains(next) => return (text, Some(next)),
                next => text.push(next),
            }
        }
        (text, None)
    }

    fn next(&mut self) -> Option<char> {
        let mut rest = self.rest.chars();
        let next = rest.next();
        self.rest = rest.as_str();
        next
    }

    /// An error at what was read last.
    fn error(&self, reason: impl Into<String>) -> SetError {
        let read = &self.argument[..self.argument.len() - self.rest.len()];
        SetError {
            argument: self.argument.to_owned(),
            at: read.chars().count().max(1),
            reason: reason.into(),
        }
    }
}

/// Puts a value where the path leads, making the maps and lists on the way.
fn place(target: &mut Value, path: &[Step], value: Value) -> Result<(), String> {
    let mut target = target;
    for (at, step) in path.iter().enumerate() {
        let before = || shown(&path[..at]);
        target = match step {
            Step::Key(key) => {
                // Indexes out of order leave nothing behind in between, which may become a map now.
                if target.is_null() {
                    *target = Value::Object(Map::new());
                }
                let map = target.as_object_mut().ok_or_else(|| format!("{} is not a map", before()))?;
                map.entry(key.clone()).or_insert(Value::Null)
            }
            Step::Index(index) => {
                if target.is_null() {
                    *target = Value::Array(Vec::new());
                }
                let list = target.as_array_mut().ok_or_else(|| format!("{} is not a list", before()))?;
                if list.len() <= *index {
                    list.resize(index + 1, Value::Null);
                }
                &mut list[*index]
            }
        };
    }
    *target = value;
    Ok(())
}

fn shown(path: &[Step]) -> String {
    let mut text = String::new();
    for step in path {
        match step {
            Step::Key(key) if text.is_empty() => text.push_str(key),
            Step::Key(key) => text.push_str(&format!(".{key}")),
            Step::Index(index) => text.push_str(&format!("[{index}]")),
        }
    }
    if text.is_empty() { "what is given".into() } else { text }
}

#[cfg(test)]
mod tests;
