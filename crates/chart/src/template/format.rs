//! Go's `fmt`: how values look as text.

use super::budget::Budget;
use super::value::{MAX_NESTING, Value, too_deep};

mod float;
mod verb;

pub(crate) use float::shortest as shortest_float;
pub(crate) use verb::printf;

/// A value as `%v` writes it.
pub(crate) fn show(value: &Value, budget: &Budget) -> Result<String, String> {
    let mut text = String::new();
    write(value, &mut text, budget, MAX_NESTING, &|value| plain(value))?;
    Ok(text)
}

/// Go's `Sprint`: a space between two values of which neither is a text.
pub(crate) fn print(values: &[Value], budget: &Budget) -> Result<String, String> {
    let mut text = String::new();
    let mut after_text = true;
    for value in values {
        let is_text = matches!(value, Value::Text(_));
        if !after_text && !is_text {
            text.push(' ');
        }
        text.push_str(&show(value, budget)?);
        after_text = is_text;
    }
    Ok(text)
}

/// Go's `Sprintln`: spaces between all, and a line break at the end.
pub(crate) fn println(values: &[Value], budget: &Budget) -> Result<String, String> {
    let texts = values.iter().map(|value| show(value, budget)).collect::<Result<Vec<_>, _>>()?;
    Ok(texts.join(" ") + "\n")
}

/// Go's `strconv.Quote`.
pub(crate) fn quote_go(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    for next in text.chars() {
        escape_into(next, '"', &mut quoted);
    }
    quoted.push('"');
    quoted
}

fn escape_into(next: char, quote: char, text: &mut String) {
    match next {
        '\\' => text.push_str("\\\\"),
        '\x07' => text.push_str("\\a"),
        '\x08' => text.push_str("\\b"),
        '\x0c' => text.push_str("\\f"),
        '\n' => text.push_str("\\n"),
        '\r' => text.push_str("\\r"),
        '\t' => text.push_str("\\t"),
        '\x0b' => text.push_str("\\v"),
        next if next == quote => {
            text.push('\\');
            text.push(quote);
        }
        next if is_printable(next) => text.push(next),
        next if next.is_ascii() => text.push_str(&format!("\\x{:02x}", u32::from(next))),
        next if u32::from(next) <= 0xffff => text.push_str(&format!("\\u{:04x}", u32::from(next))),
        next => text.push_str(&format!("\\U{:08x}", u32::from(next))),
    }
}

/// What Go prints as it is: no control characters, no space but the usual one, nothing invisible.
fn is_printable(next: char) -> bool {
    let invisible = matches!(u32::from(next), 0xad | 0x61c | 0x200b..=0x200f | 0x202a..=0x202e | 0x2060..=0x206f
        | 0xe000..=0xf8ff | 0xfeff | 0xfff0..=0xfffb | 0xfffe..=0xffff | 0xe0000..=0x10ffff);
    next == ' ' || !(next.is_control() || next.is_whitespace() || invisible)
}

/// Writes lists and maps with their brackets and each single value with `one`.
fn write(
    value: &Value,
    text: &mut String,
    budget: &Budget,
    levels: usize,
    one: &dyn Fn(&Value) -> String,
) -> Result<(), String> {
    let levels = levels.checked_sub(1).ok_or_else(too_deep)?;
    budget.step()?;
    match value {
        Value::List(list) => {
            text.push('[');
            for (at, item) in list.0.iter().enumerate() {
                if at > 0 {
                    text.push(' ');
                }
                write(item, text, budget, levels, one)?;
            }
            text.push(']');
        }
        Value::Map(map) => {
            text.push_str("map[");
            for (at, (key, item)) in map.0.borrow().iter().enumerate() {
                if at > 0 {
                    text.push(' ');
                }
                write(&Value::text(key.as_str()), text, budget, levels, one)?;
                text.push(':');
                write(item, text, budget, levels, one)?;
            }
            text.push(']');
        }
        single => {
            let single = one(single);
            budget.make(single.len())?;
            text.push_str(&single);
        }
    }
    Ok(())
}

/// A single value as `%v` writes it.
fn plain(value: &Value) -> String {
    match value {
        Value::Nil => "<nil>".into(),
        Value::Bool(value) => value.to_string(),
        Value::Int(value) | Value::Whole(value) => value.to_string(),
        Value::Float(value) => float::shortest(*value),
        Value::Text(text) => text.to_string(),
        Value::ApiVersions(versions) => format!("[{}]", versions.join(" ")),
        Value::Files(files) => format!("map[{} files]", files.0.len()),
        Value::List(_) | Value::Map(_) => String::new(),
    }
}

#[cfg(test)]
mod tests;
