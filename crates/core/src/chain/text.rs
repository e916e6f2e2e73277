//! Entries as lines of text.
//!
//! An entry is written as the canonical object that its hash is of, with the hash itself as one more field, `hash`. Who
//! takes that field out has the bytes that were hashed.

use std::str::FromStr;

use serde_json::{Map, Value};

use super::{Entry, Event};
use crate::canonical::{self, NotCanonical};

/// A text that is no entry.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidEntry {
    /// It is not written as entries are.
    #[error(transparent)]
    Form(#[from] NotCanonical),
    /// A field is missing, unknown or cannot be read.
    #[error("{0}: it is missing, or not what it should be")]
    Field(&'static str),
}

const FIELDS: usize = 7;

impl Entry {
    /// The entry as a line of text.
    pub fn to_line(&self) -> String {
        let text = canonical::text_object([
            ("index", self.index.to_string()),
            ("time", self.time.to_string()),
            ("contract", self.contract.to_string()),
            ("digest", self.digest.to_string()),
            ("event", self.event.as_str().to_owned()),
            ("previous", self.previous.to_string()),
            ("hash", self.hash.to_string()),
        ]);
        // Texts in, text out: this is never lossy.
        String::from_utf8_lossy(&text).into_owned()
    }

    /// Reads a line. It need not tie in with anything: that is for [`verify`](super::verify).
    pub fn parse(line: &str) -> Result<Self, InvalidEntry> {
        let Value::Object(fields) = canonical::parse(line.as_bytes())? else {
            return Err(InvalidEntry::Field("entry"));
        };
        let entry = Self {
            index: parse(&fields, "index")?,
            time: parse(&fields, "time")?,
            contract: parse(&fields, "contract")?,
            digest: parse(&fields, "digest")?,
            event: text(&fields, "event").and_then(Event::parse).ok_or(InvalidEntry::Field("event"))?,
            previous: parse(&fields, "previous")?,
            hash: parse(&fields, "hash")?,
        };
        // Canonical is the document, but a text in it may not be: +1 for 1, or another way to write the time.
        if fields.len() == FIELDS && entry.to_line() == line {
            Ok(entry)
        } else {
            Err(InvalidEntry::Field("entry"))
        }
    }
}

fn text<'a>(fields: &'a Map<String, Value>, field: &str) -> Option<&'a str> {
    fields.get(field).and_then(Value::as_str)
}

fn parse<T: FromStr>(fields: &Map<String, Value>, field: &'static str) -> Result<T, InvalidEntry> {
    text(fields, field).and_then(|text| text.parse().ok()).ok_or(InvalidEntry::Field(field))
}
