//! `liqoctl logs`: arguments and wiring.

use std::collections::BTreeSet;
use std::io::{self, Write};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Result;
use clap::Args;
use liqo_inspect::{Installation, Line, LogError, LogRequest, Remark, Source, Told};
use serde::Serialize;

use crate::access::Access;
use crate::duration::parse_span;
use crate::output::DataFormat;

/// Arguments of `logs`.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// A component, such as controller-manager, or a pod [default: all components]
    component: Option<String>,
    /// Go on printing what is added, through restarts
    #[arg(short, long, conflicts_with = "previous")]
    follow: bool,
    /// Only the last lines of each log
    #[arg(long, value_name = "LINES")]
    tail: Option<u32>,
    /// Only what is younger, such as 10m
    #[arg(long, value_name = "DURATION", value_parser = parse_span)]
    since: Option<Duration>,
    /// What was written before the last restart
    #[arg(short, long)]
    previous: bool,
    /// Of several replicas all, not only the one that leads
    #[arg(long)]
    all: bool,
    /// Put the time before each line
    #[arg(long)]
    timestamps: bool,
    /// Each line as an object with pod, container, time and text
    #[arg(short, long, value_enum)]
    output: Option<DataFormat>,
}

pub(crate) const EXAMPLES: &str = "Examples:
  liqoctl logs                         # the manager that leads
  liqoctl logs -f --since 10m
  liqoctl logs controller-manager --all --tail 100
  liqoctl logs --previous              # why was it restarted?

Lines of several pods are merged by their times, and begin with the pod they are from.";

impl Arguments {
    pub(crate) async fn run(self, access: &Access) -> Result<ExitCode> {
        let connection = access.connect().await?;
        // A log that is followed may be silent for as long as it likes.
        let client = if self.follow { connection.streams } else { connection.client };
        let installation = Installation::new(client, connection.namespace);
        let request = LogRequest {
            component: self.component,
            all: self.all,
            previous: self.previous,
            tail: self.tail,
            since: self.since,
        };
        let mut printer = Printer {
            out: io::stdout(),
            seen: BTreeSet::new(),
            timestamps: self.timestamps,
            format: self.output,
        };
        let print = |told: &Told| printer.print(told);
        let told = if self.follow {
            installation.follow_logs(&request, print).await
        } else {
            installation.logs(&request, print).await
        };
        match told {
            Ok(()) => Ok(ExitCode::SUCCESS),
            Err(LogError::Closed(error)) => Err(error.into()),
            Err(error) => Err(error.into()),
        }
    }
}

struct Printer<W> {
    out: W,
    seen: BTreeSet<Source>,
    timestamps: bool,
    format: Option<DataFormat>,
}

/// A line for programs.
#[derive(Serialize)]
struct Record<'a> {
    pod: &'a str,
    container: &'a str,
    time: &'a str,
    text: &'a str,
}

impl<W: Write> Printer<W> {
    fn print(&mut self, told: &Told) -> io::Result<()> {
        match told {
            Told::Sources(sources) => {
                self.seen.extend(sources.iter().cloned());
                Ok(())
            }
            Told::Line(line) => match self.format {
                None => self.line(line),
                Some(format) => self.record(line, format),
            },
            Told::Remark(Remark::StandbyLeftOut { replicas }) => {
                eprintln!(
                    "note: of {replicas} replicas, this is the one that leads; --all shows the others too"
                );
                Ok(())
            }
            Told::Remark(Remark::Unreadable { source, why }) => {
                eprintln!("note: no log of {}/{}: {why}", source.pod, source.container);
                Ok(())
            }
        }
    }

    fn record(&mut self, line: &Line, format: DataFormat) -> io::Result<()> {
        let Line { source, time, text } = line;
        let record = Record { pod: &source.pod, container: &source.container, time, text };
        match format {
            DataFormat::Json => writeln!(self.out, "{}", serde_json::to_string(&record)?)?,
            DataFormat::Yaml => {
                let text = serde_saphyr::to_string(&record).map_err(io::Error::other)?;
                write!(self.out, "---\n{text}")?;
            }
        }
        self.out.flush()
    }

    /// The pod's name is left out as long as there is only one.
    fn line(&mut self, line: &Line) -> io::Result<()> {
        let several_containers = self.seen.iter().filter(|source| source.pod == line.source.pod).count() > 1;
        let prefix = match (self.seen.len(), several_containers) {
            (0 | 1, _) => String::new(),
            (_, false) => format!("[{}] ", line.source.pod),
            (_, true) => format!("[{}/{}] ", line.source.pod, line.source.container),
        };
        let time = if self.timestamps { format!("{} ", line.time) } else { String::new() };
        writeln!(self.out, "{prefix}{time}{}", line.text)?;
        self.out.flush()
    }
}

#[cfg(test)]
mod tests;
