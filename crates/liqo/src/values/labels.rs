//! Lists of keys and values.

use std::collections::BTreeMap;
use std::str::FromStr;

use super::is_host_label;

/// Labels, as `key=value,key=value`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Labels(pub(crate) BTreeMap<String, String>);

/// Annotations, as `key=value,key=value`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Annotations(pub(crate) BTreeMap<String, String>);

impl FromStr for Labels {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let pairs = pairs(text)?;
        match pairs.iter().find(|(_, value)| !is_label_value(value)) {
            Some((key, value)) => Err(format!(
                "{value:?} is no value for the label {key}: expected at most 63 letters, digits, '-', '_' and '.', \
                 beginning and ending with a letter or digit"
            )),
            None => Ok(Self(pairs)),
        }
    }
}

impl FromStr for Annotations {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        pairs(text).map(Self)
    }
}

fn pairs(text: &str) -> Result<BTreeMap<String, String>, String> {
    let parts = text.split(',').map(str::trim).filter(|part| !part.is_empty());
    let pair = |part: &str| {
        let (key, value) = part.split_once('=').ok_or_else(|| {
            format!("{part:?} has no value: expected key=value, and commas between several")
        })?;
        if !is_qualified_name(key) {
            return Err(format!("{key:?} is no key: expected one such as region or example.com/region"));
        }
        Ok((key.to_owned(), value.to_owned()))
    };
    parts.map(pair).collect()
}

/// At most 63 characters, with an optional DNS name and a slash before them.
fn is_qualified_name(text: &str) -> bool {
    let (prefix, name) = text.split_once('/').map_or((None, text), |(prefix, name)| (Some(prefix), name));
    let is_prefix = |prefix: &str| prefix.len() <= 253 && prefix.split('.').all(is_host_label);
    !name.is_empty() && is_label_value(name) && prefix.is_none_or(is_prefix)
}

fn is_label_value(text: &str) -> bool {
    let alphanumeric = |byte: Option<&u8>| byte.is_none_or(u8::is_ascii_alphanumeric);
    let bytes = text.as_bytes();
    bytes.len() <= 63
        && alphanumeric(bytes.first())
        && alphanumeric(bytes.last())
        && bytes.iter().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(byte))
}
