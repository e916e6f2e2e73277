//! The parts of a contract that policies speak of too.

use std::collections::BTreeMap;

use crate::quantity::Excerpt;

/// Promises in a service level, and how long each may be: a person reads them before signing.
const MOST_PROMISES: usize = 32;
const LONGEST_NAME: usize = 63;
const LONGEST_TEXT: usize = 1024;

/// What happens when the consumer uses more than was agreed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Enforcement {
    /// It is refused at admission.
    #[default]
    Hard,
    /// It is reported.
    Soft,
}

/// What happens when the contract ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Renewal {
    /// It goes on for as long again, if both sign.
    #[default]
    Auto,
    /// It is over.
    None,
}

/// What is promised besides amounts: names and texts, such as `availability` and `99.9`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct ServiceLevel(BTreeMap<String, String>);

/// Promises that nobody would read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct InvalidServiceLevel(String);

impl ServiceLevel {
    /// Promises of bounded number and length.
    pub fn new(promises: BTreeMap<String, String>) -> Result<Self, InvalidServiceLevel> {
        if promises.len() > MOST_PROMISES {
            let message = format!("has {} entries, at most {MOST_PROMISES} are allowed", promises.len());
            return Err(InvalidServiceLevel(message));
        }
        for (name, text) in &promises {
            let word = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
            if name.is_empty() || name.len() > LONGEST_NAME || !name.bytes().all(word) {
                return Err(InvalidServiceLevel(format!(
                    "{} is not a name: expected 1 to {LONGEST_NAME} letters, digits, '-', '_' and '.'",
                    Excerpt::of(name)
                )));
            }
            if text.len() > LONGEST_TEXT {
                return Err(InvalidServiceLevel(format!("{name} is longer than {LONGEST_TEXT} bytes")));
            }
            if text.chars().any(char::is_control) {
                return Err(InvalidServiceLevel(format!("{name} has control characters")));
            }
        }
        Ok(Self(promises))
    }

    /// The promises in order of their names.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, text)| (name.as_str(), text.as_str()))
    }

    /// Whether nothing is promised.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}
