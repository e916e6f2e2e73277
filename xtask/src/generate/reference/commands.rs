//! Commands and flags, from clap's description of them.

use std::fmt::Write;

use clap::{Arg, ArgAction, Command};

use super::cell;

/// One document for a program: every command with its arguments and flags.
pub(super) fn page(program: &Command, about: &str) -> String {
    let mut program = program.clone();
    program.build();
    let mut page = format!("# `{}`\n\n{about}\n", program.get_name());
    section(&program, 2, &[], &mut page);
    page
}

/// `told` are the flags that the program's own table has, which its commands need not repeat.
fn section(command: &Command, level: usize, told: &[&Arg], page: &mut String) {
    let name = command.get_bin_name().unwrap_or(command.get_name());
    let about = command.get_long_about().or(command.get_about()).map(ToString::to_string).unwrap_or_default();
    let heading = "#".repeat(level.min(4));
    let usage = command.clone().render_usage().to_string();
    let usage = usage.trim_start_matches("Usage:").trim();
    // Writing to a String cannot fail.
    let _ = write!(page, "\n{heading} `{name}`\n\n{}\n\n```text\n{usage}\n```\n", about.trim());
    table(command, told, page);
    if let Some(examples) = command.get_after_long_help().or(command.get_after_help()) {
        let _ = write!(page, "\n```text\n{}\n```\n", examples.to_string().trim_end());
    }
    let own: Vec<&Arg> = if level == 2 { command.get_arguments().collect() } else { told.to_vec() };
    for inner in command.get_subcommands().filter(|inner| !inner.is_hide_set()) {
        section(inner, level + 1, &own, page);
    }
}

fn table(command: &Command, told: &[&Arg], page: &mut String) {
    let same = |argument: &Arg| {
        told.iter().any(|other| spelling(other) == spelling(argument) && !argument.is_positional())
    };
    let arguments = command.get_arguments().filter(|argument| is_told(argument) && !same(argument));
    let rows: Vec<String> = arguments.map(row).collect();
    if !rows.is_empty() {
        let _ = write!(page, "\n| flag | default | what |\n|---|---|---|\n{}\n", rows.join("\n"));
    }
}

fn is_told(argument: &Arg) -> bool {
    !argument.is_hide_set() && !matches!(argument.get_id().as_str(), "help" | "version")
}

fn row(argument: &Arg) -> String {
    let default: Vec<_> = argument.get_default_values().iter().map(|value| value.to_string_lossy()).collect();
    let default = if takes_value(argument) && !default.is_empty() {
        format!("`{}`", default.join(","))
    } else {
        String::new()
    };
    let help = argument.get_long_help().or(argument.get_help()).map(ToString::to_string).unwrap_or_default();
    let choices: Vec<_> = argument
        .get_possible_values()
        .iter()
        .filter(|value| !value.is_hide_set())
        .map(|value| format!("`{}`", value.get_name()))
        .collect();
    let choices = if choices.is_empty() || !takes_value(argument) {
        String::new()
    } else {
        format!(" ({})", choices.join(", "))
    };
    let env =
        argument.get_env().map(|name| format!(" — env `{}`", name.to_string_lossy())).unwrap_or_default();
    format!("| {} | {} | {} |", spelling(argument), cell(&default), cell(&format!("{help}{choices}{env}")))
}

/// How an argument is written: `-o, --output FORMAT`, or `CLUSTER` where it has no flag.
fn spelling(argument: &Arg) -> String {
    let names: Vec<_> = match argument.get_value_names() {
        Some(names) => names.iter().map(ToString::to_string).collect(),
        None => vec![argument.get_id().to_string()],
    };
    let value = if takes_value(argument) { names.join(" ") } else { String::new() };
    let short = argument.get_short().map(|short| format!("-{short}"));
    let long = argument.get_long().map(|long| format!("--{long}"));
    let flags: Vec<_> = short.into_iter().chain(long).collect();
    let flags = flags.join(", ");
    format!("`{}`", cell(format!("{flags} {value}").trim()))
}

fn takes_value(argument: &Arg) -> bool {
    matches!(argument.get_action(), ArgAction::Set | ArgAction::Append)
}
