//! What worked, and what is wrong with the rest.

use std::fmt;

use super::{InvalidResourceName, ResourceName, Resources};
use crate::quantity::{ParseQuantityError, Quantity};

/// The outcome of something done to each resource: each is either among `resources` or among `problems`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[must_use = "some resources may have a problem"]
pub struct Partial {
    /// The resources that are fine.
    pub resources: Resources,
    /// What is wrong with each of the others.
    pub problems: Vec<ResourceProblem>,
}

/// What is wrong with one resource.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ResourceProblem {
    /// Its name is none.
    #[error(transparent)]
    Name(#[from] InvalidResourceName),
    /// Its amount cannot be read.
    #[error("cannot read how much {resource} there is: {problem}")]
    Amount {
        /// The resource.
        resource: ResourceName,
        /// What is wrong with the text.
        problem: ParseQuantityError,
    },
    /// Its amount is negative where that makes no sense.
    #[error("there cannot be {amount} of {resource}: the amount must not be negative")]
    Negative {
        /// The resource.
        resource: ResourceName,
        /// The amount.
        amount: Quantity,
    },
    /// There is not enough of it.
    #[error("not enough {resource}: {wanted} wanted, {available} available")]
    Short {
        /// The resource.
        resource: ResourceName,
        /// How much was to be taken.
        wanted: Quantity,
        /// How much there is.
        available: Quantity,
    },
    /// The result is larger than a quantity can be.
    #[error("the result for {resource} is beyond {max}, the largest quantity; check the amounts it comes from", max = Quantity::MAX)]
    Overflow {
        /// The resource.
        resource: ResourceName,
    },
}

/// Everything that is wrong with a list, as one error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResourceProblems(Vec<ResourceProblem>);

impl Partial {
    /// All resources, or, if there is any problem, all problems.
    pub fn into_result(self) -> Result<Resources, ResourceProblems> {
        if self.problems.is_empty() { Ok(self.resources) } else { Err(ResourceProblems(self.problems)) }
    }
}

impl FromIterator<Result<(ResourceName, Quantity), ResourceProblem>> for Partial {
    fn from_iter<I: IntoIterator<Item = Result<(ResourceName, Quantity), ResourceProblem>>>(
        outcomes: I,
    ) -> Self {
        let mut partial = Self::default();
        for outcome in outcomes {
            match outcome {
                Ok((name, amount)) => partial.resources.extend([(name, amount)]),
                Err(problem) => partial.problems.push(problem),
            }
        }
        partial
    }
}

impl ResourceProblems {
    /// The problems, one per resource.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &ResourceProblem> {
        self.0.iter()
    }
}

impl fmt::Display for ResourceProblems {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, problem) in self.0.iter().enumerate() {
            let separator = if index == 0 { "" } else { "; " };
            write!(formatter, "{separator}{problem}")?;
        }
        Ok(())
    }
}

impl std::error::Error for ResourceProblems {}
