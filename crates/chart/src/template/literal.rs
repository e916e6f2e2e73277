//! Go's literals: each function reads one from the start of a text and tells its length.

type Read<T> = Result<(T, usize), String>;

/// A number of a template.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Number {
    /// Without fraction and exponent.
    Int(i64),
    /// With one of them.
    Float(f64),
}

/// `"…"` with Go's escapes.
pub(crate) fn quoted(text: &str) -> Read<String> {
    let mut value = String::new();
    let mut at = 1;
    loop {
        match text[at..].chars().next() {
            None | Some('\n') => return Err("unterminated quoted string".into()),
            Some('"') => return Ok((value, at + 1)),
            Some('\\') => {
                let (next, length) = escape(&text[at..], '"')?;
                value.push(next);
                at += length;
            }
            Some(next) => {
                value.push(next);
                at += next.len_utf8();
            }
        }
    }
}

/// `` `…` ``, in which nothing is special.
pub(crate) fn raw(text: &str) -> Read<String> {
    let inside = &text[1..];
    let end = inside.find('`').ok_or("unterminated raw string")?;
    Ok((inside[..end].to_owned(), end + 2))
}

/// `'c'`: the number of a character.
pub(crate) fn character(text: &str) -> Read<i64> {
    let inside = &text[1..];
    let (value, length) = match inside.chars().next() {
        Some('\\') => escape(inside, '\'')?,
        Some(next) if next != '\'' && next != '\n' => (next, next.len_utf8()),
        _ => return Err("malformed character constant".into()),
    };
    if !inside[length..].starts_with('\'') {
        return Err("unterminated character constant".into());
    }
    Ok((i64::from(u32::from(value)), length + 2))
}

/// A backslash and what belongs to it.
fn escape(text: &str, quote: char) -> Read<char> {
    let bad = || "unknown escape sequence in a string".to_owned();
    let kind = text[1..].chars().next().ok_or("unterminated quoted string")?;
    let value = match kind {
        'a' => '\x07',
        'b' => '\x08',
        'f' => '\x0c',
        'n' => '\n',
        'r' => '\r',
        't' => '\t',
        'v' => '\x0b',
        '\\' => '\\',
        'x' => return coded(text, 2, 2, 16).ok_or_else(bad),
        'u' => return coded(text, 2, 4, 16).ok_or_else(bad),
        'U' => return coded(text, 2, 8, 16).ok_or_else(bad),
        '0'..='7' => return coded(text, 1, 3, 8).ok_or_else(bad),
        other if other == quote => other,
        _ => return Err(bad()),
    };
    Ok((value, 1 + kind.len_utf8()))
}

/// A character by its number: `digits` digits after `start` bytes.
///
/// Go makes bytes of `\xff` and octal escapes; above 127 a lone byte is no text, so here it is an error.
fn coded(text: &str, start: usize, digits: usize, radix: u32) -> Option<(char, usize)> {
    let number = text.get(start..start + digits)?;
    let number = number.bytes().all(|byte| byte.is_ascii_alphanumeric()).then_some(number)?;
    let code = u32::from_str_radix(number, radix).ok()?;
    if digits < 4 && code > 0x7f {
        return None;
    }
    Some((char::from_u32(code)?, start + digits))
}

/// A number, with sign, base prefix (`0x`, `0o`, `0b`, or `0` for octal), underscores, fraction or exponent.
pub(crate) fn number(text: &str) -> Read<Number> {
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    let hex = unsigned.starts_with("0x") || unsigned.starts_with("0X");
    let mut length = text.len() - unsigned.len();
    let mut before = ' ';
    for next in unsigned.chars() {
        let exponent_sign = matches!(next, '+' | '-') && !hex && matches!(before, 'e' | 'E');
        if !(next.is_alphanumeric() || matches!(next, '_' | '.') || exponent_sign) {
            break;
        }
        length += next.len_utf8();
        before = next;
    }
    let literal = &text[..length];
    parse_number(literal)
        .map(|number| (number, length))
        .ok_or_else(|| format!("bad number syntax: {literal:?}"))
}

fn parse_number(literal: &str) -> Option<Number> {
    let negative = literal.starts_with('-');
    let digits = literal.strip_prefix(['+', '-']).unwrap_or(literal);
    if let Some(magnitude) = parse_int(digits) {
        let value = if negative { -magnitude } else { magnitude };
        return i64::try_from(value).ok().map(Number::Int);
    }
    // Rust also reads words such as "inf" as numbers.
    let numeric =
        digits.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'.' | b'e' | b'E' | b'+' | b'-' | b'_'));
    let value: f64 = numeric.then(|| digits.replace('_', "").parse().ok())??;
    value.is_finite().then_some(Number::Float(if negative { -value } else { value }))
}

/// A whole number as Go's compiler reads it.
pub(crate) fn parse_int(digits: &str) -> Option<i128> {
    let lower = digits.to_ascii_lowercase();
    let (radix, rest) = match lower.get(..2) {
        Some("0x") => (16, &lower[2..]),
        Some("0o") => (8, &lower[2..]),
        Some("0b") => (2, &lower[2..]),
        _ if lower.len() > 1 && lower.starts_with('0') => (8, &lower[1..]),
        _ => (10, lower.as_str()),
    };
    let misplaced = rest.ends_with('_') || rest.contains("__") || (radix == 10 && rest.starts_with('_'));
    let plain = rest.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    if misplaced || !plain {
        return None;
    }
    i128::from_str_radix(&rest.replace('_', ""), radix).ok()
}
