//! How long pods wait for a provider that does not answer.

use std::collections::BTreeMap;

use liqo_api::annotations;

#[cfg(test)]
mod tests;

/// Noticed within ten seconds, and running elsewhere within thirty: what is left for waiting.
const DEFAULT_SECONDS: i64 = 12;
/// A week; whoever wants more means never.
const MOST_SECONDS: i64 = 7 * 24 * 3600;

/// How long pods wait for a provider that does not answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failover {
    /// For so many seconds.
    After(i64),
    /// For ever.
    Never,
}

impl Default for Failover {
    fn default() -> Self {
        Self::After(DEFAULT_SECONDS)
    }
}

impl Failover {
    /// Reads the annotation, of which the first that is there counts.
    pub fn read<'a>(
        annotations: impl IntoIterator<Item = &'a BTreeMap<String, String>>,
    ) -> Result<Self, String> {
        let said = annotations.into_iter().find_map(|all| all.get(annotations::FAILOVER));
        said.map_or(Ok(Self::default()), |text| Self::parse(text))
    }

    fn parse(text: &str) -> Result<Self, String> {
        if text == annotations::FAILOVER_NEVER {
            return Ok(Self::Never);
        }
        match text.parse() {
            Ok(seconds @ 0..=MOST_SECONDS) => Ok(Self::After(seconds)),
            _ => Err(format!(
                "the annotation {} is {:?}: expected {} or a number of seconds from 0 to {MOST_SECONDS}; {DEFAULT_SECONDS} s are \
                 used",
                annotations::FAILOVER,
                text.chars().take(64).collect::<String>(),
                annotations::FAILOVER_NEVER,
            )),
        }
    }
}
