//! Writing YAML, letter for letter as Go's library writes it wherever the text is not exotic, so that a checksum of
//! `toYaml` is Helm's checksum.

use std::cmp::Ordering;

use serde_json::{Map, Value as Json};

use super::ambiguous::is_ambiguous;
use crate::template::shortest_float;

const INDENT: usize = 2;

/// The document, with a line break at its end.
pub(crate) fn write(json: &Json) -> String {
    let mut text = String::new();
    block(json, 0, &mut text);
    text.push('\n');
    text
}

/// Writes a value at the current place; the lines that follow the first are indented by `indent`.
fn block(json: &Json, indent: usize, text: &mut String) {
    match json {
        Json::Array(items) if !items.is_empty() => {
            for (at, item) in items.iter().enumerate() {
                new_line(at, indent, text);
                text.push_str("- ");
                block(item, indent + INDENT, text);
            }
        }
        Json::Object(entries) if !entries.is_empty() => {
            for (at, (key, value)) in sorted(entries).into_iter().enumerate() {
                new_line(at, indent, text);
                text.push_str(&key_text(key));
                text.push(':');
                entry(value, indent, text);
            }
        }
        scalar => text.push_str(&single(scalar, indent)),
    }
}

/// What follows a key: a list starts at the key's own column, a map is indented.
fn entry(value: &Json, indent: usize, text: &mut String) {
    let inner = match value {
        Json::Array(items) if !items.is_empty() => indent,
        Json::Object(entries) if !entries.is_empty() => indent + INDENT,
        scalar => {
            text.push(' ');
            text.push_str(&single(scalar, indent + INDENT));
            return;
        }
    };
    new_line(1, inner, text);
    block(value, inner, text);
}

fn new_line(at: usize, indent: usize, text: &mut String) {
    if at > 0 {
        text.push('\n');
        text.extend(std::iter::repeat_n(' ', indent));
    }
}

/// A value on one line, or a text of several lines indented by `indent`.
fn single(json: &Json, indent: usize) -> String {
    match json {
        Json::Null => "null".into(),
        Json::Bool(value) => value.to_string(),
        Json::Number(number) if number.is_f64() => number.as_f64().map_or_else(String::new, shortest_float),
        Json::Number(number) => number.to_string(),
        Json::Array(_) => "[]".into(),
        Json::Object(_) => "{}".into(),
        Json::String(text) if text.contains('\n') && Shape::of(text).block => {
            literal(text, indent.max(INDENT))
        }
        Json::String(text) if text.contains('\n') => double_quoted(text),
        Json::String(text) => one_line(text),
    }
}

fn key_text(key: &str) -> String {
    if key.contains('\n') { double_quoted(key) } else { one_line(key) }
}

fn one_line(text: &str) -> String {
    let shape = Shape::of(text);
    if is_ambiguous(text) || !shape.single_quoted {
        double_quoted(text)
    } else if shape.plain {
        text.to_owned()
    } else {
        format!("'{}'", text.replace('\'', "''"))
    }
}

/// Which ways of writing a text would give it back unchanged.
struct Shape {
    plain: bool,
    single_quoted: bool,
    block: bool,
}

impl Shape {
    fn of(text: &str) -> Self {
        let special = text.chars().any(|next| next != '\n' && !is_printable(next));
        let outer_space = text.starts_with([' ', '\n']) || text.ends_with([' ', '\n']);
        let space_break = text.contains(" \n");
        let break_space = text.contains("\n ");
        Self {
            plain: !(special || outer_space || text.contains('\n') || has_indicators(text)),
            single_quoted: !(special || space_break || break_space),
            block: !(special || space_break || text.ends_with(' ')),
        }
    }
}

/// Whether a character stands where it would mean something to a reader.
fn has_indicators(text: &str) -> bool {
    let mut rest = text.chars();
    let first_means = match rest.next() {
        Some(
            '#' | ',' | '[' | ']' | '{' | '}' | '&' | '*' | '!' | '|' | '>' | '\'' | '"' | '%' | '@' | '`',
        ) => true,
        Some('?' | ':' | '-') => rest.as_str().is_empty() || rest.as_str().starts_with([' ', '\t']),
        _ => false,
    };
    let marker = text.starts_with("---") || text.starts_with("...");
    first_means || marker || text.contains(": ") || text.ends_with(':') || text.contains(" #")
}

fn is_printable(next: char) -> bool {
    matches!(next, '\u{20}'..='\u{7e}' | '\u{a0}'..='\u{2027}' | '\u{202a}'..='\u{d7ff}' | '\u{e000}'..='\u{fefe}'
        | '\u{ff00}'..='\u{fffd}')
}

/// `|`, with the hints that keep spaces at the start and line breaks at the end.
fn literal(text: &str, indent: usize) -> String {
    let mut written = String::from("|");
    if text.starts_with([' ', '\n']) {
        written.push_str(&INDENT.to_string());
    }
    let body = text.strip_suffix('\n');
    match body {
        None => written.push('-'),
        Some(body) if body.is_empty() || body.ends_with('\n') => written.push('+'),
        Some(_) => {}
    }
    for line in body.unwrap_or(text).split('\n') {
        written.push('\n');
        if !line.is_empty() {
            written.extend(std::iter::repeat_n(' ', indent));
            written.push_str(line);
        }
    }
    written
}

fn double_quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for next in text.chars() {
        match next {
            '"' => quoted.push_str("\\\""),
            '\\' => quoted.push_str("\\\\"),
            '\0' => quoted.push_str("\\0"),
            '\x07' => quoted.push_str("\\a"),
            '\x08' => quoted.push_str("\\b"),
            '\t' => quoted.push_str("\\t"),
            '\n' => quoted.push_str("\\n"),
            '\x0b' => quoted.push_str("\\v"),
            '\x0c' => quoted.push_str("\\f"),
            '\r' => quoted.push_str("\\r"),
            '\x1b' => quoted.push_str("\\e"),
            '\u{85}' => quoted.push_str("\\N"),
            '\u{2028}' => quoted.push_str("\\L"),
            '\u{2029}' => quoted.push_str("\\P"),
            next if is_printable(next) => quoted.push(next),
            next if u32::from(next) <= 0xff => quoted.push_str(&format!("\\x{:02X}", u32::from(next))),
            next if u32::from(next) <= 0xffff => quoted.push_str(&format!("\\u{:04X}", u32::from(next))),
            next => quoted.push_str(&format!("\\U{:08X}", u32::from(next))),
        }
    }
    quoted.push('"');
    quoted
}

fn sorted(entries: &Map<String, Json>) -> Vec<(&String, &Json)> {
    let mut entries: Vec<_> = entries.iter().collect();
    entries.sort_by(|(one, _), (other, _)| key_order(one, other));
    entries
}

/// Go's order of keys: numbers inside them by their size, and letters after everything else.
fn key_order(one: &str, other: &str) -> Ordering {
    let (one, other): (Vec<char>, Vec<char>) = (one.chars().collect(), other.chars().collect());
    let Some(at) = one.iter().zip(&other).position(|(one, other)| one != other) else {
        return one.len().cmp(&other.len());
    };
    match (one[at].is_alphabetic(), other[at].is_alphabetic()) {
        (true, true) => return one[at].cmp(&other[at]),
        (true, false) => return Ordering::Greater,
        (false, true) => return Ordering::Less,
        (false, false) => {}
    }
    // A zero behind other digits is part of their number, so what follows it must not be taken for a small one.
    let inside = (one[at] == '0' || other[at] == '0')
        && one[..at].iter().rev().take_while(|next| next.is_ascii_digit()).any(|digit| *digit != '0');
    let ((one_number, one_end), (other_number, other_end)) =
        (number(&one, at, inside), number(&other, at, inside));
    one_number.cmp(&other_number).then(one_end.cmp(&other_end)).then(one[at].cmp(&other[at]))
}

/// The number that starts here, and where it ends.
fn number(text: &[char], start: usize, inside: bool) -> (u128, usize) {
    let digits = text[start..].iter().map_while(|next| next.to_digit(10));
    let end = start + digits.clone().count();
    let fold = |number: u128, digit: u32| number.saturating_mul(10).saturating_add(u128::from(digit));
    (digits.fold(u128::from(inside), fold), end)
}
