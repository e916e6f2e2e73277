//! Texts that a YAML reader would take for something else if they were not quoted.

/// Words that mean true, false or nothing to some reader of YAML.
const WORDS: [&str; 12] = ["", "~", "null", "true", "false", "yes", "no", "on", "off", "y", "n", "<<"];

/// Numbers that are none.
const NOT_FINITE: [&str; 4] = [".nan", ".inf", "+.inf", "-.inf"];

/// Whether the text, written plainly, would be read as a boolean, a number, a date or nothing.
pub(super) fn is_ambiguous(text: &str) -> bool {
    let lower = text.to_ascii_lowercase();
    if WORDS.contains(&lower.as_str()) || NOT_FINITE.contains(&lower.as_str()) {
        return true;
    }
    let unsigned = lower.strip_prefix(['+', '-']).unwrap_or(&lower);
    unsigned.starts_with(|first: char| first.is_ascii_digit() || first == '.')
        && (is_number(unsigned) || is_sexagesimal(unsigned) || is_date(text))
}

fn is_number(unsigned: &str) -> bool {
    let plain = unsigned.replace('_', "");
    let of_base = |prefix: &str, radix: u32| {
        plain
            .strip_prefix(prefix)
            .is_some_and(|digits| !digits.is_empty() && digits.chars().all(|digit| digit.is_digit(radix)))
    };
    plain.parse::<f64>().is_ok() || of_base("0x", 16) || of_base("0o", 8) || of_base("0b", 2)
}

/// `12:30:45` is a number of base 60 to old readers.
fn is_sexagesimal(unsigned: &str) -> bool {
    let mut parts = unsigned.split(':');
    let digits =
        |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit() || byte == b'_');
    let Some(first) = parts.next() else { return false };
    let rest: Vec<&str> = parts.collect();
    let (last, middle) = match rest.split_last() {
        Some((last, middle)) => (last.split('.').next().unwrap_or(last), middle),
        None => return false,
    };
    let sixty =
        |part: &str| digits(part) && !part.contains('_') && part.parse::<u8>().is_ok_and(|part| part < 60);
    digits(first) && middle.iter().all(|part| sixty(part) && part.len() < 3) && sixty(last) && last.len() < 3
}

/// `2024-01-31`, and with a time behind it.
fn is_date(text: &str) -> bool {
    let (date, time) =
        text.split_once(['T', 't', ' ']).map_or((text, None), |(date, time)| (date, Some(time)));
    let parts: Vec<&str> = date.split('-').collect();
    let digits = |part: &str, lengths: &[usize]| {
        lengths.contains(&part.len()) && part.bytes().all(|byte| byte.is_ascii_digit())
    };
    let is_date = matches!(parts.as_slice(), [year, month, day]
        if digits(year, &[4]) && digits(month, &[1, 2]) && digits(day, &[1, 2]));
    is_date
        && time
            .is_none_or(|time| time.contains(':') && time.starts_with(|first: char| first.is_ascii_digit()))
}
