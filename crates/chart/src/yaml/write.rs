//! Writing YAML, letter for letter as Go's library writes it wherever the text is not exotic, so that a checksum of
//! `toYaml` is Helm's checksum.

use std::cmp::Ordering;

use serde_json::{Map, Value as Json};

use super::ambiguous::is_ambiguous;
use crate::template::shortest_float;

mod scalar;

use scalar::{Scalar, is_printable};

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
                one_line(key, &mut Scalar::key(text));
                text.push(':');
                entry(value, indent, text);
            }
        }
        single => scalar(single, indent.max(INDENT), text),
    }
}

/// What follows a key: a list starts at the key's own column, a map is indented.
fn entry(value: &Json, indent: usize, text: &mut String) {
    let inner = match value {
        Json::Array(items) if !items.is_empty() => indent,
        Json::Object(entries) if !entries.is_empty() => indent + INDENT,
        single => {
            text.push(' ');
            return scalar(single, indent + INDENT, text);
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

/// A value without others in it; a text of several lines has all but the first indented by `indent`.
fn scalar(json: &Json, indent: usize, text: &mut String) {
    match json {
        Json::Null => text.push_str("null"),
        Json::Bool(value) => text.push_str(&value.to_string()),
        Json::Number(number) if number.is_f64() => {
            text.push_str(&number.as_f64().map_or_else(String::new, shortest_float));
        }
        Json::Number(number) => text.push_str(&number.to_string()),
        Json::Array(_) => text.push_str("[]"),
        Json::Object(_) => text.push_str("{}"),
        Json::String(lines) if lines.contains('\n') && Shape::of(lines).block => literal(lines, indent, text),
        Json::String(line) => one_line(line, &mut Scalar::value(text, indent)),
    }
}

/// A text without line breaks, except where its line gets too long.
fn one_line(text: &str, out: &mut Scalar<'_>) {
    let shape = Shape::of(text);
    if is_ambiguous(text) || !shape.single_quoted || text.contains('\n') {
        out.double_quoted(text);
    } else if shape.plain {
        out.plain(text);
    } else {
        out.single_quoted(text);
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

/// `|`, with the hints that keep spaces at the start and line breaks at the end.
fn literal(lines: &str, indent: usize, text: &mut String) {
    text.push('|');
    if lines.starts_with([' ', '\n']) {
        text.push_str(&INDENT.to_string());
    }
    let body = lines.strip_suffix('\n');
    match body {
        None => text.push('-'),
        Some(body) if body.is_empty() || body.ends_with('\n') => text.push('+'),
        Some(_) => {}
    }
    for line in body.unwrap_or(lines).split('\n') {
        new_line(1, if line.is_empty() { 0 } else { indent }, text);
        text.push_str(line);
    }
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
