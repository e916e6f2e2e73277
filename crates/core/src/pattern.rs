//! Names with a wildcard: `cpu`, `nvidia.com/*`, `*`.

use std::fmt;

use crate::field::Problems;
use crate::quantity::Excerpt;

#[cfg(test)]
mod tests;

/// Patterns in a list and characters in a pattern; enough for any list a person writes.
const MOST_PATTERNS: usize = 64;
const LONGEST_PATTERN: usize = 512;

/// A list of patterns. A name matches if one of them does; `*` stands for any characters, also none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Patterns(Vec<String>);

impl Patterns {
    /// Matches every name.
    pub fn everything() -> Self {
        Self(vec!["*".to_owned()])
    }

    /// Matches no name.
    pub const fn nothing() -> Self {
        Self(Vec::new())
    }

    /// Whether `name` matches one of the patterns.
    pub fn matches(&self, name: &str) -> bool {
        self.0.iter().any(|pattern| matches(pattern.as_bytes(), name.as_bytes()))
    }

    /// Whether no name can match.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn read(patterns: &[String], path: &str, problems: &mut Problems) -> Self {
        if !problems.at_most(path, patterns.len(), MOST_PATTERNS) {
            return Self::nothing();
        }
        let fine = |(index, pattern): (usize, &String)| {
            let fine = !pattern.is_empty()
                && pattern.len() <= LONGEST_PATTERN
                && pattern.bytes().all(|byte| byte.is_ascii_graphic());
            if !fine {
                let message = format!(
                    "{} is not a name or a pattern: expected 1 to {LONGEST_PATTERN} visible ASCII characters",
                    Excerpt::of(pattern)
                );
                problems.add(format!("{path}[{index}]"), message);
            }
            fine.then(|| pattern.clone())
        };
        Self(patterns.iter().enumerate().filter_map(fine).collect())
    }
}

impl fmt::Display for Patterns {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0.join(", "))
    }
}

/// Takes at most pattern × text steps: after a mismatch only the last `*` is tried again, one character on.
fn matches(pattern: &[u8], text: &[u8]) -> bool {
    let (mut at, mut read) = (0, 0);
    let mut retry: Option<(usize, usize)> = None;
    while read < text.len() {
        match (pattern.get(at), retry) {
            (Some(b'*'), _) => {
                retry = Some((at, read));
                at += 1;
            }
            (Some(byte), _) if *byte == text[read] => {
                at += 1;
                read += 1;
            }
            (_, Some((star, from))) => {
                retry = Some((star, from + 1));
                at = star + 1;
                read = from + 1;
            }
            (_, None) => return false,
        }
    }
    pattern[at..].iter().all(|byte| *byte == b'*')
}
