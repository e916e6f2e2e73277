//! `liqoctl logs`: arguments and wiring.

use std::collections::BTreeSet;
use std::io::{self, Write};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Result;
use clap::Args;
use liqo_inspect::{Installation, Line, LogError, LogRequest, Remark, Source, Told};

use crate::access::Access;
use crate::duration::parse_span;

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
        let mut printer = Printer { out: io::stdout(), seen: BTreeSet::new(), timestamps: self.timestamps };
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
}

impl<W: Write> Printer<W> {
    fn print(&mut self, told: &Told) -> io::Result<()> {
        match told {
            Told::Line(line) => self.line(line),
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

    /// The pod's name is left out as long as there is only one.
    fn line(&mut self, line: &Line) -> io::Result<()> {
        if !self.seen.contains(&line.source) {
            self.seen.insert(line.source.clone());
        }
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
