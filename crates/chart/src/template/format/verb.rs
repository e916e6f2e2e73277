//! `printf`.

use std::iter::Peekable;
use std::str::Chars;

use super::super::budget::Budget;
use super::super::value::{MAX_NESTING, Value};
use super::{escape_into, float, plain, quote_go, show, write};

/// Wider fields than anyone prints.
const MAX_WIDTH: usize = 10_000;

/// Digits behind the point where the format does not say.
const DEFAULT_PRECISION: usize = 6;

/// What stands between `%` and the verb.
#[derive(Debug, Default, Clone, Copy)]
struct Flags {
    plus: bool,
    minus: bool,
    sharp: bool,
    space: bool,
    zero: bool,
    width: usize,
    precision: Option<usize>,
}

/// Go's `Sprintf`. A verb that does not suit its value is no error but is written so that one sees it.
pub(crate) fn printf(format: &str, values: &[Value], budget: &Budget) -> Result<String, String> {
    let mut text = String::new();
    let mut values = values.iter();
    let mut rest = format.chars().peekable();
    while let Some(next) = rest.next() {
        if next != '%' {
            text.push(next);
            continue;
        }
        let flags = Flags::read(&mut rest)?;
        budget.make(flags.width + flags.precision.unwrap_or(0))?;
        match rest.next() {
            None => text.push_str("%!(NOVERB)"),
            Some('%') => text.push('%'),
            Some(verb @ ('*' | '[')) => return Err(format!("%{verb} is not supported in a format")),
            Some(verb) => match values.next() {
                None => text.push_str(&format!("%!{verb}(MISSING)")),
                Some(value) => flags.format(verb, value, &mut text, budget)?,
            },
        }
    }
    let extra = values.map(|value| typed(value, budget)).collect::<Result<Vec<_>, _>>()?;
    if !extra.is_empty() {
        text.push_str(&format!("%!(EXTRA {})", extra.join(", ")));
    }
    Ok(text)
}

/// A value and its type, for what does not fit.
fn typed(value: &Value, budget: &Budget) -> Result<String, String> {
    match value {
        Value::Nil => Ok("<nil>".into()),
        other => Ok(format!("{}={}", other.type_name(), show(other, budget)?)),
    }
}

impl Flags {
    fn read(rest: &mut Peekable<Chars<'_>>) -> Result<Self, String> {
        let mut flags = Self::default();
        while let Some(flag) = rest.next_if(|next| matches!(next, '+' | '-' | '#' | ' ' | '0')) {
            match flag {
                '+' => flags.plus = true,
                '-' => flags.minus = true,
                '#' => flags.sharp = true,
                ' ' => flags.space = true,
                _ => flags.zero = true,
            }
        }
        flags.width = number(rest)?.unwrap_or(0);
        if rest.next_if_eq(&'.').is_some() {
            flags.precision = Some(number(rest)?.unwrap_or(0));
        }
        Ok(flags)
    }

    fn format(self, verb: char, value: &Value, text: &mut String, budget: &Budget) -> Result<(), String> {
        match (verb, value) {
            ('T', _) => {
                text.push_str(&self.pad(value.type_name()));
                Ok(())
            }
            ('v', Value::Nil) => {
                text.push_str(&self.pad("<nil>"));
                Ok(())
            }
            _ => write(value, text, budget, MAX_NESTING, &|single| self.single(verb, single)),
        }
    }

    /// Formats a value that is neither list nor map.
    fn single(self, verb: char, value: &Value) -> String {
        let formatted = match (verb, value) {
            ('v', Value::Text(text)) if self.sharp => Some(self.pad(&quote_go(text))),
            ('v' | 's', Value::Text(text)) => Some(self.pad(&self.shortened(text))),
            ('q', Value::Text(text)) => Some(self.pad(&quote_go(&self.shortened(text)))),
            ('x', Value::Text(text)) => Some(self.pad(&hex(text, |byte| format!("{byte:02x}")))),
            ('X', Value::Text(text)) => Some(self.pad(&hex(text, |byte| format!("{byte:02X}")))),
            ('t' | 'v', Value::Bool(value)) => Some(self.pad(&value.to_string())),
            (_, Value::Int(number)) => self.whole(verb, *number),
            // Helm would refuse %d for a number of the values, because it has it as a float.
            ('v' | 'd' | 'x' | 'X' | 'o' | 'b', Value::Whole(number)) => self.whole(verb, *number),
            (_, Value::Whole(number)) => self.float(verb, *number as f64),
            (_, Value::Float(number)) => self.float(verb, *number),
            ('v', other) => Some(plain(other)),
            _ => None,
        };
        formatted.unwrap_or_else(|| match value {
            Value::Nil => format!("%!{verb}(<nil>)"),
            other => format!("%!{verb}({}={})", other.type_name(), plain(other)),
        })
    }

    fn whole(mut self, verb: char, number: i64) -> Option<String> {
        // For %v the sign means something else, which has no effect here.
        self.plus &= verb != 'v';
        let magnitude = number.unsigned_abs();
        let (prefix, digits) = match verb {
            'v' | 'd' => ("", magnitude.to_string()),
            'x' => ("0x", format!("{magnitude:x}")),
            'X' => ("0X", format!("{magnitude:X}")),
            'o' => ("0", format!("{magnitude:o}")),
            'O' => ("", format!("0o{magnitude:o}")),
            'b' => ("0b", format!("{magnitude:b}")),
            'U' => return Some(self.pad(&format!("U+{magnitude:04X}"))),
            'c' => return Some(self.pad(&character(number).to_string())),
            'q' => {
                let mut quoted = String::from("'");
                escape_into(character(number), '\'', &mut quoted);
                return Some(self.pad(&(quoted + "'")));
            }
            _ => return None,
        };
        let zeros = "0".repeat(self.precision.unwrap_or(0).saturating_sub(digits.len()));
        Some(self.signed(number < 0, &format!("{}{zeros}{digits}", if self.sharp { prefix } else { "" })))
    }

    fn float(mut self, verb: char, number: f64) -> Option<String> {
        self.plus &= verb != 'v';
        let precision = self.precision.unwrap_or(DEFAULT_PRECISION);
        let text = match (verb, self.precision) {
            ('e' | 'E', _) => float::scientific(number, precision),
            ('f' | 'F', _) => float::fixed(number, precision),
            ('g' | 'G' | 'v', None) => float::shortest(number),
            ('g' | 'G' | 'v', Some(digits)) => float::significant(number, digits),
            _ => return None,
        };
        let text = if verb.is_uppercase() { text.to_uppercase() } else { text };
        let magnitude = text.trim_start_matches(['-', '+']);
        Some(self.signed(text.starts_with('-'), magnitude))
    }

    /// Puts the sign before a number, and fills up between them with zeros if asked to.
    fn signed(self, negative: bool, magnitude: &str) -> String {
        let sign = match (negative, self.plus, self.space) {
            (true, _, _) => "-",
            (false, true, _) => "+",
            (false, false, true) => " ",
            (false, false, false) => "",
        };
        let missing = self.width.saturating_sub(sign.len() + magnitude.len());
        if self.zero && !self.minus {
            return format!("{sign}{}{magnitude}", "0".repeat(missing));
        }
        self.pad(&format!("{sign}{magnitude}"))
    }

    fn pad(self, text: &str) -> String {
        let space = " ".repeat(self.width.saturating_sub(text.chars().count()));
        if self.minus { format!("{text}{space}") } else { format!("{space}{text}") }
    }

    fn shortened(self, text: &str) -> String {
        self.precision.map_or_else(|| text.to_owned(), |length| text.chars().take(length).collect())
    }
}

fn number(rest: &mut Peekable<Chars<'_>>) -> Result<Option<usize>, String> {
    let mut value = None;
    while let Some(digit) = rest.peek().and_then(|next| next.to_digit(10)) {
        rest.next();
        let larger = value.unwrap_or(0) * 10 + digit as usize;
        if larger > MAX_WIDTH {
            return Err(format!("a width of more than {MAX_WIDTH} in a format"));
        }
        value = Some(larger);
    }
    Ok(value)
}

fn character(number: i64) -> char {
    u32::try_from(number).ok().and_then(char::from_u32).unwrap_or(char::REPLACEMENT_CHARACTER)
}

fn hex(text: &str, byte: fn(u8) -> String) -> String {
    text.bytes().map(byte).collect()
}
