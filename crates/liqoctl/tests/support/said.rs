//! What a command said.
#![allow(dead_code, unreachable_pub, reason = "each test file uses its own part")]

use std::process::Output;

/// What a command said.
#[derive(Debug, Clone)]
pub struct Said {
    pub code: Option<i32>,
    pub out: String,
    pub err: String,
}

impl Said {
    pub fn of(output: &Output) -> Self {
        Self {
            code: output.status.code(),
            out: String::from_utf8_lossy(&output.stdout).into_owned(),
            err: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }

    /// All these words are on standard error.
    pub fn tells(&self, words: &[&str]) {
        for word in words {
            assert!(self.err.contains(word), "{word:?} is missing in: {self}");
        }
    }
}

impl std::fmt::Display for Said {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "code {:?}\n--- stdout\n{}\n--- stderr\n{}", self.code, self.out, self.err)
    }
}
