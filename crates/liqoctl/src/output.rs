//! The formats that kubectl users expect from `-o`.

use clap::ValueEnum;
use serde::Serialize;

/// What `-o` takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// A table with more columns
    Wide,
    /// JSON
    Json,
    /// YAML
    Yaml,
}

/// Prints a value for programs; `None` and `Wide` are the caller's, who has the table.
pub(crate) fn print<T: Serialize>(
    format: Option<Format>,
    value: &T,
    table: impl FnOnce(bool),
) -> anyhow::Result<()> {
    match format {
        None => table(false),
        Some(Format::Wide) => table(true),
        Some(Format::Json) => println!("{}", serde_json::to_string_pretty(value)?),
        Some(Format::Yaml) => print!("{}", serde_saphyr::to_string(value)?),
    }
    Ok(())
}
