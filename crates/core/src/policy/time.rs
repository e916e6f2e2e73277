//! When a policy is in force, and when that changes.

use jiff::Timestamp;

use super::{Policy, window};

impl Policy {
    /// Whether the policy applies at this moment.
    pub(super) fn in_time(&self, now: Timestamp) -> bool {
        self.not_before.is_none_or(|from| from <= now)
            && self.not_after.is_none_or(|to| now < to)
            && (self.windows.is_empty() || window::closes(&self.windows, now).is_some())
    }

    /// When it ceases to apply, for one that applies now; `None` for never.
    pub(super) fn ends(&self, now: Timestamp) -> Option<Timestamp> {
        let closes = window::closes(&self.windows, now).flatten();
        closes.into_iter().chain(self.not_after).min()
    }

    /// When it begins to apply, for one that does not now; `None` for never again.
    pub(super) fn begins(&self, now: Timestamp) -> Option<Timestamp> {
        let earliest = self.not_before.map_or(now, |from| from.max(now));
        let begins = if self.windows.is_empty() || window::closes(&self.windows, earliest).is_some() {
            Some(earliest)
        } else {
            window::opens(&self.windows, earliest)
        };
        begins.filter(|begins| self.not_after.is_none_or(|to| *begins < to))
    }

    /// Why it does not apply now.
    pub(super) fn out_of_time(&self, now: Timestamp) -> String {
        let name = &self.name;
        if let Some(to) = self.not_after.filter(|to| *to <= now) {
            return format!("policy {name} ended at {to}");
        }
        let when =
            self.begins(now).map_or_else(|| "never again".to_owned(), |begins| format!("from {begins}"));
        if self.windows.is_empty() {
            return format!("policy {name} shares {when}");
        }
        let windows: Vec<String> = self.windows.iter().map(ToString::to_string).collect();
        format!("policy {name} shares only {}; next {when}", windows.join(", "))
    }
}

/// The first moment after `now` at which a policy begins or ceases to apply; `None` if that never happens.
///
/// Until then the same question has the same answer, as far as time is concerned.
pub fn next_change<'a>(policies: impl IntoIterator<Item = &'a Policy>, now: Timestamp) -> Option<Timestamp> {
    let changes = policies.into_iter().flat_map(|policy| {
        let openings = policy.windows.iter().flat_map(|window| window.openings(now));
        let windows = openings.flat_map(|opening| [opening.from, opening.to]);
        windows.chain(policy.not_before).chain(policy.not_after).collect::<Vec<_>>()
    });
    changes.filter(|change| *change > now).min()
}
