//! Whether, and how soon, pods go back to a provider that answers again.

use std::collections::BTreeMap;

use jiff::SignedDuration;
use liqo_api::annotations;

#[cfg(test)]
mod tests;

/// How long a provider must have answered if nothing else is said.
const DEFAULT_SECONDS: i64 = 60;
/// Sooner than this, a provider that comes and goes would make pods come and go.
const LEAST_SECONDS: i64 = 10;
/// A day; whoever wants to wait longer goes back by hand.
const MOST_SECONDS: i64 = 24 * 3600;
const YES: &str = "true";
const NO: &str = "false";

/// Whether pods go back to a provider that answers again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FailBack {
    /// They stay where they are.
    #[default]
    Never,
    /// When it has answered for so long.
    After(SignedDuration),
}

impl FailBack {
    /// Reads the annotation, of which the first that is there counts.
    pub fn read<'a>(
        annotations: impl IntoIterator<Item = &'a BTreeMap<String, String>>,
    ) -> Result<Self, String> {
        let said = annotations.into_iter().find_map(|all| all.get(annotations::FAIL_BACK));
        said.map_or(Ok(Self::Never), |text| Self::parse(text))
    }

    /// Reads a value of the annotation.
    pub fn parse(text: &str) -> Result<Self, String> {
        let seconds = match text {
            YES => DEFAULT_SECONDS,
            NO => return Ok(Self::Never),
            _ => text.parse().ok().filter(|it| (LEAST_SECONDS..=MOST_SECONDS).contains(it)).ok_or_else(
                || {
                    format!(
                        "the annotation {} is {:?}: expected {YES}, {NO} or a number of seconds from {LEAST_SECONDS} to \
                         {MOST_SECONDS}; pods stay where they are",
                        annotations::FAIL_BACK,
                        text.chars().take(64).collect::<String>(),
                    )
                },
            )?,
        };
        Ok(Self::After(SignedDuration::from_secs(seconds)))
    }
}
