//! Tells in the log how the process was started.

use clap::parser::ValueSource;
use clap::{ArgMatches, Args};

use crate::VERSION;

/// Flags whose values may hold a password or a token: arguments for another program.
const MAY_HOLD_SECRETS: [&str; 1] = ["kubelet-extra-args"];

/// A flag with its values.
#[derive(Debug, PartialEq)]
pub(crate) struct Flag {
    pub(crate) name: String,
    pub(crate) values: Vec<String>,
    /// Whether somebody set it, by flag or environment.
    pub(crate) given: bool,
    /// Whether it is as if nobody had.
    pub(crate) default: bool,
}

/// Logs how the role with these arguments was started.
pub(crate) fn log_start(role: &str, flags: &[Flag]) {
    let configuration: Vec<_> = flags.iter().filter_map(shown).collect();
    tracing::info!(version = VERSION, configuration = configuration.join(" "), "liqo {role} starts");
}

/// All flags with their values, in the order of the help.
pub(crate) fn flags<A: Args>(matches: &ArgMatches) -> Vec<Flag> {
    let command = A::augment_args(clap::Command::new("liqo"));
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
pub(crate) fn shown(flag: &Flag) -> Option<String> {
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
