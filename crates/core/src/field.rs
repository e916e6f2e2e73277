//! What is wrong with which field of an object somebody wrote.

use std::fmt;

/// Problems told of one object; whoever has more begins with these.
const MOST_PROBLEMS: usize = 32;

/// One field and what is wrong with it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{path}: {message}")]
pub struct FieldProblem {
    /// Where: `spec.shares[cpu].percentage`.
    pub path: String,
    /// What is wrong, and what is expected.
    pub message: String,
}

/// Everything that is wrong with an object, as one error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldProblems(Vec<FieldProblem>);

impl FieldProblems {
    /// `None` if nothing is wrong.
    pub(crate) fn of(problems: Vec<FieldProblem>) -> Option<Self> {
        (!problems.is_empty()).then_some(Self(problems))
    }

    /// The problems, in the order of the fields.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &FieldProblem> {
        self.0.iter()
    }
}

impl fmt::Display for FieldProblems {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let texts: Vec<String> = self.0.iter().map(ToString::to_string).collect();
        formatter.write_str(&texts.join("; "))
    }
}

impl std::error::Error for FieldProblems {}

/// Collects problems while an object is read, so that a person sees all of them at once.
#[derive(Debug, Default)]
pub(crate) struct Problems(Vec<FieldProblem>);

impl Problems {
    pub(crate) fn add(&mut self, path: impl Into<String>, message: impl fmt::Display) {
        if self.0.len() < MOST_PROBLEMS {
            self.0.push(FieldProblem { path: path.into(), message: message.to_string() });
        }
    }

    /// Notes the error, if it is one.
    pub(crate) fn keep<T, E: fmt::Display>(&mut self, path: &str, result: Result<T, E>) -> Option<T> {
        result.map_err(|error| self.add(path, error)).ok()
    }

    /// Whether a list is short enough; notes it if not.
    pub(crate) fn at_most(&mut self, path: &str, length: usize, most: usize) -> bool {
        if length > most {
            self.add(path, format_args!("has {length} entries, at most {most} are allowed"));
        }
        length <= most
    }

    pub(crate) fn into_vec(self) -> Vec<FieldProblem> {
        self.0
    }
}
