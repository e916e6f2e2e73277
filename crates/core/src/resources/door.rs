//! Where resource lists enter from outside: nothing is trusted, and nothing good is lost.

use super::{Partial, ResourceName, ResourceProblem, Resources};

impl Resources {
    /// Reads a list of names and quantities. Bad entries are reported, good ones are kept.
    ///
    /// A name that comes twice counts with its last amount, as in JSON.
    pub fn parse<N: AsRef<str>, A: AsRef<str>>(entries: impl IntoIterator<Item = (N, A)>) -> Partial {
        entries
            .into_iter()
            .map(|(name, amount)| {
                let resource: ResourceName = name.as_ref().parse()?;
                match amount.as_ref().parse() {
                    Ok(amount) => Ok((resource, amount)),
                    Err(problem) => Err(ResourceProblem::Amount { resource, problem }),
                }
            })
            .collect()
    }

    /// Reports the negative amounts instead of keeping them. A negative capacity or demand is always a mistake
    /// or an attack: subtracted, it would create what does not exist.
    pub fn refuse_negative(self) -> Partial {
        self.into_iter()
            .map(|(resource, amount)| {
                if amount.is_negative() {
                    Err(ResourceProblem::Negative { resource, amount })
                } else {
                    Ok((resource, amount))
                }
            })
            .collect()
    }
}
