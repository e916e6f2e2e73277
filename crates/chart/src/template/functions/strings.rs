//! Texts.

use super::{ANY, Answer, Args, Function, plain};
use crate::template::budget::ITEM_COST;
use crate::template::format::{self, quote_go};
use crate::template::value::Value;

pub(super) static TABLE: &[Function] = &[
    plain("print", 0, ANY, |args| args.give_text(format::print(args.all(), args.budget)?)),
    plain("println", 0, ANY, |args| args.give_text(format::println(args.all(), args.budget)?)),
    plain("printf", 1, ANY, |args| {
        args.give_text(format::printf(args.text(0)?, &args.all()[1..], args.budget)?)
    }),
    plain("toString", 1, 1, |args| args.give_text(format::show(args.get(0), args.budget)?)),
    plain("toStrings", 1, 1, |args| {
        let texts = strings(args.get(0), args)?;
        args.give_list(texts.into_iter().map(Value::text).collect())
    }),
    plain("quote", 0, ANY, |args| each_quoted(args, quote_go)),
    plain("squote", 0, ANY, |args| each_quoted(args, |text| format!("'{text}'"))),
    plain("cat", 0, ANY, cat),
    plain("upper", 1, 1, |args| args.give_text(args.text(0)?.to_uppercase())),
    plain("lower", 1, 1, |args| args.give_text(args.text(0)?.to_lowercase())),
    plain("title", 1, 1, |args| args.give_text(title(args.text(0)?))),
    plain("trim", 1, 1, |args| args.give_text(args.text(0)?.trim())),
    plain("trimAll", 2, 2, |args| {
        let set: Vec<char> = args.text(0)?.chars().collect();
        args.give_text(args.text(1)?.trim_matches(set.as_slice()))
    }),
    plain("trimSuffix", 2, 2, |args| {
        let text = args.text(1)?;
        args.give_text(text.strip_suffix(args.text(0)?).unwrap_or(text))
    }),
    plain("trimPrefix", 2, 2, |args| {
        let text = args.text(1)?;
        args.give_text(text.strip_prefix(args.text(0)?).unwrap_or(text))
    }),
    plain("trunc", 2, 2, trunc),
    plain("substr", 3, 3, substr),
    plain("replace", 3, 3, replace),
    plain("contains", 2, 2, |args| Ok(Value::Bool(args.text(1)?.contains(args.text(0)?)))),
    plain("hasPrefix", 2, 2, |args| Ok(Value::Bool(args.text(1)?.starts_with(args.text(0)?)))),
    plain("hasSuffix", 2, 2, |args| Ok(Value::Bool(args.text(1)?.ends_with(args.text(0)?)))),
    plain("repeat", 2, 2, repeat),
    plain("nospace", 1, 1, |args| {
        args.give_text(args.text(0)?.chars().filter(|next| !next.is_whitespace()).collect::<String>())
    }),
    plain("indent", 2, 2, |args| indent(args, "")),
    plain("nindent", 2, 2, |args| indent(args, "\n")),
    plain("join", 2, 2, |args| {
        let separator = args.text(0)?;
        let texts = strings(args.get(1), args)?;
        args.budget.make(separator.len() * texts.len())?;
        args.give_text(texts.join(separator))
    }),
    plain("splitList", 2, 2, |args| {
        Ok(Value::list(split(args, args.text(1)?, usize::MAX)?.into_iter().map(Value::text).collect()))
    }),
    plain("split", 2, 2, |args| Ok(numbered(&split(args, args.text(1)?, usize::MAX)?))),
    plain("splitn", 3, 3, |args| {
        let most = usize::try_from(args.int(1)?).unwrap_or(usize::MAX);
        Ok(numbered(&split(args, args.text(2)?, most)?))
    }),
    plain("urlquery", 0, ANY, |args| args.give_text(url_query(&format::print(args.all(), args.budget)?))),
];

fn each_quoted(args: &Args<'_>, quote: fn(&str) -> String) -> Answer {
    let given = args.all().iter().filter(|value| !matches!(value, Value::Nil));
    let quoted: Result<Vec<_>, _> =
        given.map(|value| format::show(value, args.budget).map(|text| quote(&text))).collect();
    args.give_text(quoted?.join(" "))
}

fn cat(args: &Args<'_>) -> Answer {
    let given = args.all().iter().filter(|value| !matches!(value, Value::Nil));
    let texts: Result<Vec<_>, _> = given.map(|value| format::show(value, args.budget)).collect();
    args.give_text(texts?.join(" "))
}

/// The items of a list as texts, without those that are nothing; anything else is one item.
pub(super) fn strings(value: &Value, args: &Args<'_>) -> Result<Vec<String>, String> {
    let items = match value {
        Value::Nil => return Ok(Vec::new()),
        Value::List(list) => list.0.as_slice(),
        other => std::slice::from_ref(other),
    };
    let given = items.iter().filter(|item| !matches!(item, Value::Nil));
    given.map(|item| format::show(item, args.budget)).collect()
}

/// Every word with a capital; the rest of it stays.
fn title(text: &str) -> String {
    let mut inside = false;
    let mut titled = String::with_capacity(text.len());
    for next in text.chars() {
        if inside {
            titled.push(next);
        } else {
            titled.extend(next.to_uppercase());
        }
        inside = next.is_alphanumeric() || next == '_';
    }
    titled
}

/// The first bytes, or for a negative number the last ones; never a part of a character.
fn trunc(args: &Args<'_>) -> Answer {
    let (count, text) = (args.int(0)?, args.text(1)?);
    let length = usize::try_from(count.unsigned_abs()).unwrap_or(usize::MAX);
    if length >= text.len() {
        return args.give_text(text);
    }
    args.give_text(if count < 0 {
        &text[text.ceil_char_boundary(text.len() - length)..]
    } else {
        &text[..text.floor_char_boundary(length)]
    })
}

/// Bytes from start to end; a negative start is the beginning, a negative or too large end is the end.
fn substr(args: &Args<'_>) -> Answer {
    let text = args.text(2)?;
    let start = usize::try_from(args.int(0)?).unwrap_or(0);
    let end = usize::try_from(args.int(1)?).unwrap_or(text.len()).min(text.len());
    if start > end {
        return Err(format!("{start} to {end} is no part of a text of {} bytes", text.len()));
    }
    args.give_text(&text[text.floor_char_boundary(start)..text.floor_char_boundary(end)])
}

fn replace(args: &Args<'_>) -> Answer {
    let (old, new, text) = (args.text(0)?, args.text(1)?, args.text(2)?);
    let places = if old.is_empty() { text.len() + 1 } else { text.matches(old).count() };
    args.budget.make(places.saturating_mul(new.len()))?;
    args.give_text(text.replace(old, new))
}

fn repeat(args: &Args<'_>) -> Answer {
    let (count, text) = (args.int(0)?, args.text(1)?);
    let count = usize::try_from(count).map_err(|_| format!("cannot repeat a text {count} times"))?;
    args.budget.make(count.saturating_mul(text.len()))?;
    args.give_text(text.repeat(count))
}

fn indent(args: &Args<'_>, before: &str) -> Answer {
    let (width, text) = (args.int(0)?, args.text(1)?);
    let width = usize::try_from(width).map_err(|_| format!("cannot indent by {width}"))?;
    args.budget.make(text.matches('\n').count().saturating_add(1).saturating_mul(width))?;
    let space = " ".repeat(width);
    args.give_text(format!("{before}{space}{}", text.replace('\n', &format!("\n{space}"))))
}

/// Splits at the separator that is the first argument.
fn split<'a>(args: &Args<'_>, text: &'a str, most: usize) -> Result<Vec<&'a str>, String> {
    let separator = args.text(0)?;
    args.budget.make((text.matches(separator).count() + 1) * ITEM_COST)?;
    if separator.is_empty() {
        return Ok(text.split("").filter(|part| !part.is_empty()).collect());
    }
    Ok(text.splitn(most, separator).collect())
}

/// A map `_0`, `_1`, … of the parts.
fn numbered(parts: &[&str]) -> Value {
    let named = parts.iter().enumerate().map(|(at, part)| (format!("_{at}"), Value::text(*part)));
    Value::map(named.collect())
}

fn url_query(text: &str) -> String {
    let mut escaped = String::new();
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => {
                escaped.push(char::from(byte));
            }
            b' ' => escaped.push('+'),
            other => escaped.push_str(&format!("%{other:02X}")),
        }
    }
    escaped
}
