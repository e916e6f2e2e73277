//! What a check found out, for every command that checks something.

use std::fmt;

use serde::{Deserialize, Serialize};

/// How a check came out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Outcome {
    /// As it should be.
    Ok,
    /// Worth a look; nothing is stopped by it.
    Warning,
    /// Must be put right first.
    Failed,
}

impl Outcome {
    /// The sign in front of the line.
    pub fn sign(self) -> &'static str {
        match self {
            Self::Ok => "✓",
            Self::Warning => "!",
            Self::Failed => "✗",
        }
    }
}

/// One line of a check: what was looked at, how it came out, and what to do about it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Finding {
    /// What was looked at, as a statement that is true when all is well: "Kubernetes is 1.32 or later".
    pub name: String,
    /// How it came out.
    pub result: Outcome,
    /// What was seen; may be empty when there is nothing to add.
    pub why: String,
    /// What to do about it; empty when there is nothing to do. May have several lines.
    pub hint: String,
    /// The heading of docs/troubleshooting.md that tells more, as an anchor without `#`.
    pub docs_anchor: String,
}

impl Finding {
    /// All is well; `why` is what was seen.
    pub fn ok(name: impl Into<String>, why: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            result: Outcome::Ok,
            why: why.into(),
            hint: String::new(),
            docs_anchor: String::new(),
        }
    }

    /// Something is worth a look.
    pub fn warning(name: impl Into<String>, why: impl Into<String>) -> Self {
        Self { result: Outcome::Warning, ..Self::ok(name, why) }
    }

    /// Something must be put right.
    pub fn failed(name: impl Into<String>, why: impl Into<String>) -> Self {
        Self { result: Outcome::Failed, ..Self::ok(name, why) }
    }

    /// Says what to do.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = hint.into();
        self
    }

    /// Says where to read more: a heading of docs/troubleshooting.md.
    #[must_use]
    pub fn docs(mut self, anchor: &str) -> Self {
        anchor.clone_into(&mut self.docs_anchor);
        self
    }

    /// Whether it is about what the user may do.
    pub fn is_about_rights(&self) -> bool {
        self.docs_anchor == crate::preflight::anchor::RIGHTS
    }

    /// The document and heading that tell more, if there is one.
    pub fn link(&self) -> Option<String> {
        (!self.docs_anchor.is_empty()).then(|| format!("docs/troubleshooting.md#{}", self.docs_anchor))
    }
}

/// The line as people see it: the sign, what was looked at, what was seen; below it what to do.
impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.result.sign(), self.name)?;
        if !self.why.is_empty() {
            write!(f, ": {}", self.why)?;
        }
        for line in self.hint.lines() {
            write!(f, "\n    {line}")?;
        }
        match self.link() {
            Some(link) if self.result != Outcome::Ok => write!(f, "\n    see {link}"),
            _ => Ok(()),
        }
    }
}

/// The worst of all; [`Outcome::Ok`] of none.
pub fn worst<'a>(findings: impl IntoIterator<Item = &'a Finding>) -> Outcome {
    findings.into_iter().map(|finding| finding.result).max().unwrap_or(Outcome::Ok)
}

#[cfg(test)]
mod tests;
