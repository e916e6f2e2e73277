//! Tells in the log how the process was started.

use std::collections::BTreeMap;

use clap::parser::ValueSource;
use clap::{ArgMatches, Args as _};

use super::Arguments;
use super::notes::{Note, note};
use crate::VERSION;

/// Flags whose values may hold a password or a token: arguments for another program.
const MAY_HOLD_SECRETS: [&str; 1] = ["kubelet-extra-args"];

/// A flag with its values.
#[derive(Debug, PartialEq)]
pub(super) struct Flag {
    pub(super) name: String,
    pub(super) values: Vec<String>,
    /// Whether somebody set it, by flag or environment.
    pub(super) given: bool,
    /// Whether it is as if nobody had.
    pub(super) default: bool,
}

/// Logs the configuration, and which flags do nothing.
pub(super) fn log_configuration(matches: &ArgMatches) {
    let flags = flags(matches);
    let configuration: Vec<_> = flags.iter().filter_map(shown).collect();
    tracing::info!(version = VERSION, configuration = configuration.join(" "), "liqo manager starts");
    for (reason, flags) in needless(&flags) {
        tracing::info!(flags = flags.join(" "), reason, "nothing is needed for these flags");
    }
    let later = without_effect(&flags);
    if !later.is_empty() {
        tracing::info!(flags = later.join(" "), "these flags have no effect in this version");
    }
}

/// All flags with their values, in the order of the help.
pub(super) fn flags(matches: &ArgMatches) -> Vec<Flag> {
    let command = Arguments::augment_args(clap::Command::new("manager"));
    let flag = |argument: &clap::Arg| {
        let id = argument.get_id().as_str();
        let values = matches.get_raw(id).into_iter().flatten();
        let values: Vec<_> = values.map(|value| value.to_string_lossy().into_owned()).collect();
        let defaults: Vec<_> =
            argument.get_default_values().iter().map(|value| value.to_string_lossy().into_owned()).collect();
        let source = matches.value_source(id);
        Flag {
            name: argument.get_long().unwrap_or(id).to_owned(),
            default: values == defaults,
            values,
            given: source.is_some_and(|source| source != ValueSource::DefaultValue),
        }
    };
    command.get_arguments().map(flag).collect()
}

/// The flag as one would write it; nothing where it is empty.
pub(super) fn shown(flag: &Flag) -> Option<String> {
    let values = flag.values.iter().filter(|value| !value.is_empty());
    let values: Vec<_> =
        values.map(|value| format!("--{}={}", flag.name, masked(&flag.name, value))).collect();
    (!values.is_empty()).then(|| values.join(" "))
}

/// Of an argument for another program, only its name.
fn masked(flag: &str, value: &str) -> String {
    if !MAY_HOLD_SECRETS.contains(&flag) {
        return value.to_owned();
    }
    let name = value.split_once('=').filter(|(name, _)| name.starts_with('-')).map(|(name, _)| name);
    format!("{}…", name.map(|name| format!("{name}=")).unwrap_or_default())
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
