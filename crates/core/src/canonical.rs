//! One way to write a document down, so that both sides sign the same bytes.
//!
//! # The canonical form
//!
//! JSON by the rules of RFC 8785, of which only a part is allowed, so that every implementation agrees:
//!
//! - UTF-8 without a byte order mark; no space and no line break outside of strings.
//! - Objects: no key twice, keys ordered by their UTF-16 code units (for ASCII: by their bytes).
//! - Arrays keep their order.
//! - Strings: every character as itself, unchanged (nothing is normalised), except `"` and `\`, which are escaped by a
//!   backslash, and the control characters below U+0020, written `\b`, `\t`, `\n`, `\f`, `\r` or `\u00xx` with small
//!   hex digits.
//! - Numbers: whole ones between −(2⁵³−1) and 2⁵³−1 in plain digits. Fractions are forbidden: amounts are strings.
//! - At most 32 levels deep, at most 4 MiB long.
//!
//! # Digests
//!
//! `SHA-256(domain ‖ 0x00 ‖ bytes)`, written `sha256:` and 64 small hex digits. The domain is a text that says what the
//! bytes are, so that a digest of one kind of document can never pass for that of another.

use std::fmt;
use std::str::FromStr;

use serde_json::Value;
use sha2::{Digest as _, Sha256};

use crate::quantity::Excerpt;

#[cfg(test)]
mod tests;

/// Levels in a document; ours have four.
const DEEPEST: usize = 32;
/// Bytes in a document; the longest is an offer with all its images.
const LONGEST: usize = 4 << 20;
/// Whole numbers up to here are the same in every JSON library.
const LARGEST_NUMBER: u64 = (1 << 53) - 1;

const PREFIX: &str = "sha256:";

/// A document that has no canonical form, or that is not in it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotCanonical {
    /// A number with a fraction, or too large.
    #[error("{0} is not a whole number between -(2^53-1) and 2^53-1")]
    Number(String),
    /// Objects in objects in objects.
    #[error("the document is more than {DEEPEST} levels deep")]
    Deep,
    /// Too many bytes.
    #[error("the document is longer than {LONGEST} bytes")]
    Long,
    /// It is no JSON.
    #[error("the document is not JSON: {0}")]
    Json(String),
    /// It is JSON, but written in another way.
    #[error("the document is not in canonical form: byte {0} is not what it should be")]
    Other(usize),
}

/// The canonical form of a document.
pub fn bytes(document: &Value) -> Result<Vec<u8>, NotCanonical> {
    let mut bytes = Vec::new();
    write(document, DEEPEST, &mut bytes)?;
    Ok(bytes)
}

/// Reads a document that must be in canonical form, byte by byte.
pub fn parse(bytes: &[u8]) -> Result<Value, NotCanonical> {
    if bytes.len() > LONGEST {
        return Err(NotCanonical::Long);
    }
    let document: Value =
        serde_json::from_slice(bytes).map_err(|error| NotCanonical::Json(error.to_string()))?;
    let canonical = self::bytes(&document)?;
    if canonical == bytes {
        return Ok(document);
    }
    let same = canonical.iter().zip(bytes).take_while(|(a, b)| a == b).count();
    Err(NotCanonical::Other(same))
}

/// The canonical form of an object of texts, which always has one. No key comes twice.
pub(crate) fn text_object<const N: usize>(fields: [(&'static str, String); N]) -> Vec<u8> {
    let mut fields = fields;
    fields.sort_by(|(a, _), (b, _)| a.encode_utf16().cmp(b.encode_utf16()));
    let mut bytes = vec![b'{'];
    for (index, (key, text)) in fields.iter().enumerate() {
        if index > 0 {
            bytes.push(b',');
        }
        write_text(key, &mut bytes);
        bytes.push(b':');
        write_text(text, &mut bytes);
    }
    bytes.push(b'}');
    bytes
}

fn write(value: &Value, levels: usize, bytes: &mut Vec<u8>) -> Result<(), NotCanonical> {
    if bytes.len() > LONGEST {
        return Err(NotCanonical::Long);
    }
    match value {
        Value::Null => bytes.extend_from_slice(b"null"),
        Value::Bool(yes) => bytes.extend_from_slice(if *yes { b"true" } else { b"false" }),
        Value::Number(number) => {
            let size = number.as_i64().map(i64::unsigned_abs).or(number.as_u64());
            if size.is_none_or(|size| size > LARGEST_NUMBER) {
                return Err(NotCanonical::Number(number.to_string().chars().take(40).collect()));
            }
            bytes.extend_from_slice(number.to_string().as_bytes());
        }
        Value::String(text) => write_text(text, bytes),
        Value::Array(items) => {
            let levels = levels.checked_sub(1).ok_or(NotCanonical::Deep)?;
            bytes.push(b'[');
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    bytes.push(b',');
                }
                write(item, levels, bytes)?;
            }
            bytes.push(b']');
        }
        Value::Object(fields) => {
            let levels = levels.checked_sub(1).ok_or(NotCanonical::Deep)?;
            let mut fields: Vec<_> = fields.iter().collect();
            fields.sort_by(|(a, _), (b, _)| a.encode_utf16().cmp(b.encode_utf16()));
            bytes.push(b'{');
            for (index, (key, field)) in fields.into_iter().enumerate() {
                if index > 0 {
                    bytes.push(b',');
                }
                write_text(key, bytes);
                bytes.push(b':');
                write(field, levels, bytes)?;
            }
            bytes.push(b'}');
        }
    }
    if bytes.len() > LONGEST { Err(NotCanonical::Long) } else { Ok(()) }
}

fn write_text(text: &str, bytes: &mut Vec<u8>) {
    bytes.push(b'"');
    for character in text.chars() {
        match character {
            '"' => bytes.extend_from_slice(b"\\\""),
            '\\' => bytes.extend_from_slice(b"\\\\"),
            '\u{8}' => bytes.extend_from_slice(b"\\b"),
            '\t' => bytes.extend_from_slice(b"\\t"),
            '\n' => bytes.extend_from_slice(b"\\n"),
            '\u{c}' => bytes.extend_from_slice(b"\\f"),
            '\r' => bytes.extend_from_slice(b"\\r"),
            control if control < ' ' => {
                bytes.extend_from_slice(format!("\\u{:04x}", u32::from(control)).as_bytes());
            }
            other => bytes.extend_from_slice(other.encode_utf8(&mut [0; 4]).as_bytes()),
        }
    }
    bytes.push(b'"');
}

/// A SHA-256 digest.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Digest([u8; 32]);

/// A text that is no digest.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0} is not a digest: expected sha256: and 64 small hex digits")]
pub struct InvalidDigest(Excerpt);

impl Digest {
    /// The digest of some bytes that are what `domain` says.
    pub fn of(domain: &str, bytes: &[u8]) -> Self {
        let hash = Sha256::new().chain_update(domain).chain_update([0]).chain_update(bytes).finalize();
        Self(hash.into())
    }

    /// The digest of a document's canonical form.
    pub fn of_document(domain: &str, document: &Value) -> Result<Self, NotCanonical> {
        Ok(Self::of(domain, &bytes(document)?))
    }

    /// The 32 bytes.
    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl FromStr for Digest {
    type Err = InvalidDigest;

    fn from_str(text: &str) -> Result<Self, InvalidDigest> {
        let digits = text.strip_prefix(PREFIX);
        digits.and_then(from_hex).map(Self).ok_or_else(|| InvalidDigest(Excerpt::of(text)))
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(&format!("{PREFIX}{}", to_hex(&self.0)))
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, formatter)
    }
}

pub(crate) fn to_hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// 32 bytes from 64 small hex digits.
pub(crate) fn from_hex(digits: &str) -> Option<[u8; 32]> {
    let value = |digit: u8| match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'a'..=b'f' => Some(digit - b'a' + 10),
        _ => None,
    };
    if digits.len() != 64 {
        return None;
    }
    let mut bytes = [0; 32];
    for (byte, pair) in bytes.iter_mut().zip(digits.as_bytes().chunks_exact(2)) {
        *byte = value(pair[0])? << 4 | value(pair[1])?;
    }
    Some(bytes)
}
