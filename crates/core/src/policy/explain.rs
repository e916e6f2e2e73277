//! How an offer comes about, line by line, for the person who asks why.

use std::fmt;

use crate::quantity::Quantity;
use crate::resources::ResourceName;

/// One step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// The resource that the step is about; `None` if it is about all.
    pub resource: Option<ResourceName>,
    /// What happens.
    pub text: String,
    /// How much there is after it, or how much is taken or added.
    pub amount: Option<Quantity>,
}

impl fmt::Display for Line {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(resource) = &self.resource {
            write!(formatter, "{resource}: ")?;
        }
        formatter.write_str(&self.text)?;
        self.amount.map_or(Ok(()), |amount| write!(formatter, ": {amount}"))
    }
}

/// Collects lines.
#[derive(Debug, Default)]
pub(super) struct Lines(Vec<Line>);

impl Lines {
    /// A step that is about everything.
    pub(super) fn say(&mut self, text: impl Into<String>) {
        self.0.push(Line { resource: None, text: text.into(), amount: None });
    }

    /// A step with an amount.
    pub(super) fn amount(&mut self, resource: &ResourceName, text: impl Into<String>, amount: Quantity) {
        let amount = amount.with_format(resource.format());
        self.0.push(Line { resource: Some(resource.clone()), text: text.into(), amount: Some(amount) });
    }

    /// A step with an amount, unless it is nothing.
    pub(super) fn if_any(&mut self, resource: &ResourceName, text: impl Into<String>, amount: Quantity) {
        if !amount.is_zero() {
            self.amount(resource, text, amount);
        }
    }

    pub(super) fn into_vec(self) -> Vec<Line> {
        self.0
    }
}
