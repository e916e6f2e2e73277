//! `kubectl liqo`: the same program under the names by which kubectl finds its plugins.
//!
//! kubectl runs `kubectl-liqo` for the commands, and `kubectl_complete-liqo` when the tab key is pressed. Both are
//! links to `liqoctl`.

use std::ffi::{OsStr, OsString};
use std::path::Path;
use std::process::ExitCode;

use clap::{Arg, Command};

use crate::output;

/// The name that the program was called by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Program {
    /// As itself, or as anything that is not below.
    Liqoctl,
    /// As the plugin.
    KubectlLiqo,
    /// As that which completes the plugin's words.
    KubectlComplete,
}

impl Program {
    /// By the first word of the command line.
    pub(crate) fn called(name: Option<&OsStr>) -> Self {
        let name = name.map(Path::new).and_then(Path::file_stem).unwrap_or_default();
        match name.to_str() {
            Some("kubectl-liqo") => Self::KubectlLiqo,
            Some("kubectl_complete-liqo") => Self::KubectlComplete,
            _ => Self::Liqoctl,
        }
    }

    /// Makes help and examples say what the user types.
    pub(crate) fn rename(self, command: Command) -> Command {
        match self {
            Self::KubectlLiqo => rename(command.bin_name("kubectl liqo").display_name("kubectl liqo")),
            Self::Liqoctl | Self::KubectlComplete => command,
        }
    }
}

fn rename(command: Command) -> Command {
    let ours = |text: &dyn ToString| text.to_string().replace("liqoctl ", "kubectl liqo ");
    let short = command.get_after_help().map(|text| ours(&text.ansi()));
    let long = command.get_after_long_help().map(|text| ours(&text.ansi()));
    let command = match short {
        Some(text) => command.after_help(text),
        None => command,
    };
    let command = match long {
        Some(text) => command.after_long_help(text),
        None => command,
    };
    command.mut_subcommands(rename)
}

/// What kubectl reads after the words: no file names, please.
const NO_FILES: &str = ":4";
/// Let the shell complete a file name.
const FILES: &str = ":0";

/// The name of values that are clusters.
const CLUSTER: &str = "CLUSTER";

/// Names with a word about each.
type Suggestions = Vec<(String, String)>;

/// Prints what could come next, as kubectl expects it of `kubectl_complete-liqo`. `known` tells the clusters that are known
/// by the cluster that the words mean.
pub(crate) fn complete(words: &[OsString], known: impl Fn(&[String]) -> Suggestions) -> ExitCode {
    let words: Vec<String> = words.iter().map(|word| word.to_string_lossy().into_owned()).collect();
    match output::write(suggest(&crate::command(), &words, known).as_bytes()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}

fn suggest(root: &Command, words: &[String], known: impl Fn(&[String]) -> Suggestions) -> String {
    let mut root = root.clone();
    root.build();
    let (last, before) = words.split_last().map_or(("", &[][..]), |(last, before)| (last.as_str(), before));
    let mut command = &root;
    let mut value_of = None;
    for word in before {
        if value_of.take().is_some() {
            continue;
        }
        value_of = flag(command, word).filter(|flag| flag.get_action().takes_values() && !word.contains('='));
        command = command.find_subcommand(word).unwrap_or(command);
    }
    let values = |arg: &Arg| if is_cluster(arg) { known(words) } else { values(arg) };
    let found: Suggestions = match value_of {
        Some(flag) => values(flag),
        None if last.starts_with('-') => flags(command),
        None => subcommands(command).chain(command.get_positionals().flat_map(values)).collect(),
    };
    let names_a_file = found.is_empty() && !last.starts_with('-');
    let lines = found.into_iter().filter(|(name, _)| name.starts_with(last));
    let lines: String = lines.map(|(name, about)| format!("{name}\t{about}\n")).collect();
    format!("{lines}{}\n", if names_a_file { FILES } else { NO_FILES })
}

fn flag<'a>(command: &'a Command, word: &str) -> Option<&'a Arg> {
    let name = word.split('=').next().unwrap_or(word);
    command.get_arguments().find(|arg| match name.strip_prefix("--") {
        Some(long) => {
            arg.get_long() == Some(long) || arg.get_all_aliases().is_some_and(|all| all.contains(&long))
        }
        None => name.strip_prefix('-').is_some_and(|short| {
            let mut letters = short.chars();
            letters.next() == arg.get_short() && arg.get_short().is_some() && letters.next().is_none()
        }),
    })
}

fn flags(command: &Command) -> Suggestions {
    let shown = command.get_arguments().filter(|arg| !arg.is_hide_set());
    shown.filter_map(|arg| Some((format!("--{}", arg.get_long()?), help(arg.get_help())))).collect()
}

/// Whether a value is the name of a cluster that is known.
fn is_cluster(arg: &Arg) -> bool {
    arg.get_value_names().is_some_and(|names| names.iter().any(|name| name.as_str() == CLUSTER))
}

fn values(arg: &Arg) -> Suggestions {
    let values = arg.get_possible_values().into_iter().filter(|value| !value.is_hide_set());
    values.map(|value| (value.get_name().to_owned(), help(value.get_help()))).collect()
}

fn subcommands(command: &Command) -> impl Iterator<Item = (String, String)> {
    let shown = command.get_subcommands().filter(|command| !command.is_hide_set());
    shown.map(|command| (command.get_name().to_owned(), help(command.get_about())))
}

/// The first line; kubectl shows no more.
fn help(text: Option<&clap::builder::StyledStr>) -> String {
    text.map(ToString::to_string).unwrap_or_default().lines().next().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests;
