//! Tells in the log which flags do nothing.

use std::collections::BTreeMap;

use clap::ArgMatches;

use super::Arguments;
use super::notes::{Note, note};
use crate::report::{Flag, flags, log_start};

/// Logs the configuration, and which flags do nothing.
pub(super) fn log_configuration(matches: &ArgMatches) {
    let flags = flags::<Arguments>(matches);
    log_start("manager", &flags);
    for (reason, flags) in needless(&flags) {
        tracing::info!(flags = flags.join(" "), reason, "nothing is needed for these flags");
    }
    let later = without_effect(&flags);
    if !later.is_empty() {
        tracing::info!(flags = later.join(" "), "these flags have no effect in this version");
    }
}

/// The flags that were given and need nothing, by the reason for it.
pub(super) fn needless(flags: &[Flag]) -> BTreeMap<&'static str, Vec<String>> {
    let mut by_reason: BTreeMap<_, Vec<_>> = BTreeMap::new();
    for flag in flags.iter().filter(|flag| flag.given) {
        if let Some(Note::Nothing(reason)) = note(&flag.name) {
            by_reason.entry(reason).or_default().push(format!("--{}", flag.name));
        }
    }
    by_reason
}

/// The flags that were set to something and wait for a part that is not in this version.
pub(super) fn without_effect(flags: &[Flag]) -> Vec<String> {
    let waiting = |flag: &&Flag| flag.given && !flag.default && note(&flag.name) == Some(Note::Later);
    flags.iter().filter(waiting).map(|flag| format!("--{}", flag.name)).collect()
}
