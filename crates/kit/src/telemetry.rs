//! Logs: plain for people, JSON for machines; to stderr, since stdout is for data.

use std::io::IsTerminal;
use std::str::FromStr;

use tracing::Subscriber;
use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

#[cfg(test)]
mod tests;

/// How log lines look.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LogFormat {
    /// One readable line per event.
    #[default]
    Plain,
    /// One JSON object per event.
    Json,
}

impl FromStr for LogFormat {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "plain" => Ok(Self::Plain),
            "json" => Ok(Self::Json),
            _ => Err(format!("{text:?} is no log format; use plain or json")),
        }
    }
}

/// Why logging could not be set up.
#[derive(Debug, thiserror::Error)]
pub enum TelemetryError {
    /// The filter is not of the form `info,module=debug`.
    #[error("the log filter {filter:?} is not valid ({source}); write it like \"info,liqo_kit=debug\"")]
    Filter {
        /// What was given.
        filter: String,
        /// What is wrong with it.
        source: tracing_subscriber::filter::ParseError,
    },
    /// Something has set up logging in this process before.
    #[error("logging is set up already in this process")]
    Twice,
}

/// Sets up logging for the process.
pub fn init(format: LogFormat, filter: &str) -> Result<(), TelemetryError> {
    let colours = std::io::stderr().is_terminal();
    subscriber(format, filter, colours, std::io::stderr)?.try_init().map_err(|_| TelemetryError::Twice)
}

fn subscriber<W>(
    format: LogFormat,
    filter: &str,
    colours: bool,
    writer: W,
) -> Result<Box<dyn Subscriber + Send + Sync>, TelemetryError>
where
    W: for<'a> MakeWriter<'a> + Send + Sync + 'static,
{
    let parsed = EnvFilter::builder()
        .parse(filter)
        .map_err(|source| TelemetryError::Filter { filter: filter.to_owned(), source })?;
    let registry = tracing_subscriber::registry().with(parsed);
    let lines = tracing_subscriber::fmt::layer().with_writer(writer);
    Ok(match format {
        LogFormat::Plain => Box::new(registry.with(lines.with_ansi(colours))),
        LogFormat::Json => Box::new(registry.with(lines.json().flatten_event(true))),
    })
}
