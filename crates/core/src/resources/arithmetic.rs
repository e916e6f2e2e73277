//! Reckoning with resource lists, each resource for itself. A resource not named counts as zero.

use std::collections::BTreeSet;

use super::{Partial, ResourceName, ResourceProblem, Resources};
use crate::quantity::{Quantity, Ratio, RoundTo, Rounding};

impl Resources {
    /// The sum of both lists. A resource whose sum is too large is reported.
    pub fn checked_add(&self, other: &Self) -> Partial {
        self.combine_checked(other, |resource, mine, theirs| {
            mine.checked_add(theirs).ok_or(ResourceProblem::Overflow { resource })
        })
    }

    /// The sum of both lists, each resource stopping at [`Quantity::MAX`] or [`Quantity::MIN`].
    #[must_use]
    pub fn saturating_add(&self, other: &Self) -> Self {
        self.combine(other, Quantity::saturating_add)
    }

    /// Adds `other` to this list, as [`saturating_add`](Self::saturating_add) does: for summing up many lists.
    pub fn accumulate(&mut self, other: &Self) {
        for (name, amount) in other.iter() {
            match self.0.get_mut(name) {
                Some(sum) => *sum = sum.saturating_add(amount),
                None => drop(self.0.insert(name.clone(), amount)),
            }
        }
    }

    /// What is left after taking `other` away. A resource of which there is not enough is reported.
    pub fn checked_sub(&self, other: &Self) -> Partial {
        self.combine_checked(other, |resource, available, wanted| match available.checked_sub(wanted) {
            None => Err(ResourceProblem::Overflow { resource }),
            Some(left) if left.is_negative() => Err(ResourceProblem::Short { resource, wanted, available }),
            Some(left) => Ok(left),
        })
    }

    /// What is left after taking `other` away; zero of a resource of which there is not enough.
    #[must_use]
    pub fn sub_to_zero(&self, other: &Self) -> Self {
        self.combine(other, Quantity::sub_to_zero)
    }

    /// The smaller amount of each resource; one that only one list names counts as zero in the other.
    #[must_use]
    pub fn min(&self, other: &Self) -> Self {
        self.combine(other, Ord::min)
    }

    /// The larger amount of each resource; one that only one list names counts as zero in the other.
    #[must_use]
    pub fn max(&self, other: &Self) -> Self {
        self.combine(other, Ord::max)
    }

    /// This list with no resource above what `limits` names for it; what `limits` does not name is not limited.
    #[must_use]
    pub fn capped_by(&self, limits: &Self) -> Self {
        self.iter()
            .map(|(name, amount)| {
                (name.clone(), limits.get(name.as_str()).map_or(amount, |limit| amount.min(limit)))
            })
            .collect()
    }

    /// Whether `capacity` has at least as much of everything this list wants.
    pub fn fits_in(&self, capacity: &Self) -> bool {
        self.iter().all(|(name, wanted)| fits(wanted, capacity.amount(name.as_str())))
    }

    /// How much `capacity` lacks of what this list wants: only the resources that do not fit.
    #[must_use]
    pub fn lacking_in(&self, capacity: &Self) -> Self {
        self.iter()
            .map(|(name, wanted)| (name, wanted, capacity.amount(name.as_str())))
            .filter(|(_, wanted, available)| !fits(*wanted, *available))
            .map(|(name, wanted, available)| (name.clone(), wanted.saturating_add(-available)))
            .collect()
    }

    /// A share of everything, each resource in its own [step](ResourceName::granularity): millicores, whole GPUs.
    pub fn scale(&self, ratio: Ratio, rounding: Rounding) -> Partial {
        self.scale_with(ratio, |name| RoundTo::new(name.granularity(), rounding))
    }

    /// A share of everything, each resource rounded as `round_to` says for its name.
    pub fn scale_with(&self, ratio: Ratio, round_to: impl Fn(&ResourceName) -> RoundTo) -> Partial {
        self.iter()
            .map(|(name, amount)| match amount.scale(ratio, round_to(name)) {
                Some(share) => Ok((name.clone(), share)),
                None => Err(ResourceProblem::Overflow { resource: name.clone() }),
            })
            .collect()
    }

    fn combine(&self, other: &Self, combine: impl Fn(Quantity, Quantity) -> Quantity) -> Self {
        self.names_with(other)
            .map(|name| {
                let combined = combine(self.amount(name.as_str()), other.amount(name.as_str()));
                (name.clone(), combined)
            })
            .collect()
    }

    fn combine_checked(
        &self,
        other: &Self,
        combine: impl Fn(ResourceName, Quantity, Quantity) -> Result<Quantity, ResourceProblem>,
    ) -> Partial {
        self.names_with(other)
            .map(|name| {
                let combined =
                    combine(name.clone(), self.amount(name.as_str()), other.amount(name.as_str()))?;
                Ok((name.clone(), combined))
            })
            .collect()
    }

    /// The names in either list, once each and in order.
    fn names_with<'a>(&'a self, other: &'a Self) -> impl Iterator<Item = &'a ResourceName> {
        self.0.keys().chain(other.0.keys()).collect::<BTreeSet<_>>().into_iter()
    }
}

/// Who wants nothing is content with any capacity, also with one that is overdrawn.
fn fits(wanted: Quantity, available: Quantity) -> bool {
    !wanted.is_positive() || wanted <= available
}
