//! The formats that kubectl users expect from `-o`, and the one door to standard output.

use std::io::{self, Write};

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

/// What `-o` takes where there is no table to widen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum DataFormat {
    /// JSON
    Json,
    /// YAML
    Yaml,
}

impl From<DataFormat> for Format {
    fn from(format: DataFormat) -> Self {
        match format {
            DataFormat::Json => Self::Json,
            DataFormat::Yaml => Self::Yaml,
        }
    }
}

/// Prints a value for programs; `None` and `Wide` are the caller's, who has the table.
pub(crate) fn print<T: Serialize>(
    format: Option<Format>,
    value: &T,
    table: impl FnOnce(bool) -> String,
) -> anyhow::Result<()> {
    let text = match format {
        None => table(false),
        Some(Format::Wide) => table(true),
        Some(Format::Json) => serde_json::to_string_pretty(value)? + "\n",
        Some(Format::Yaml) => serde_saphyr::to_string(value)?,
    };
    write(text.as_bytes())
}

/// Writes data. Unlike `print!`, a reader who has seen enough (`| head`) is no reason to panic.
pub(crate) fn write(data: &[u8]) -> anyhow::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(data)?;
    out.flush()?;
    Ok(())
}

/// Whether it failed because nobody reads standard output any more.
pub(crate) fn is_closed_pipe(error: &anyhow::Error) -> bool {
    error
        .chain()
        .filter_map(|cause| cause.downcast_ref::<io::Error>())
        .any(|error| error.kind() == io::ErrorKind::BrokenPipe)
}
