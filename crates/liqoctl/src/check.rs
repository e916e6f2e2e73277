//! `liqoctl check`: arguments and wiring.

use std::process::ExitCode;
use std::time::Duration;

use anyhow::Result;
use clap::Args;
use liqo_chart::Chart;
use liqo_inspect::{Finding, Installation, Outcome, Report};
use liqo_install::{Request, Silent};
use tokio::time::Instant;

use crate::access::{Access, Connection, Trouble};
use crate::duration::parse_span;
use crate::install;
use crate::output::{self, DataFormat};
use crate::progress::Progress;
use crate::status::finding;
use crate::style::Style;

/// Arguments of `check`.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Before installing: can liqo be installed here?
    #[arg(long)]
    pre: bool,
    /// Output format
    #[arg(short, long, value_enum)]
    output: Option<DataFormat>,
    /// Look again until nothing fails, for at most this long
    #[arg(long, value_name = "DURATION", value_parser = parse_span)]
    wait: Option<Duration>,
}

pub(crate) const EXAMPLES: &str = "Examples:
  liqoctl check                        # is everything as it should be?
  liqoctl check --pre                  # before installing: can it be installed here?
  liqoctl check --wait 2m              # after a change: look again until it is, at most two minutes
  liqoctl check -o json | jq '.sections[].findings[] | select(.result == \"failed\")'

Marks: ✓ as it should be, ! worth a look, ✗ must be put right. Ends with 0 if nothing is marked ✗, else with 1.";

/// How often `--wait` looks again.
const INTERVAL: Duration = Duration::from_secs(1);

impl Arguments {
    pub(crate) async fn run(self, access: &Access) -> Result<ExitCode> {
        let deadline = Instant::now() + self.wait.unwrap_or_default();
        let mut progress = Progress::new(access.stderr());
        let mut report = self.look(access).await;
        while !report.healthy && Instant::now() < deadline {
            let failure = first_failure(&report);
            tracing::info!(failure, "waiting");
            progress.busy(&format!("waiting: {failure}"));
            tokio::time::sleep_until(deadline.min(Instant::now() + INTERVAL)).await;
            report = self.look(access).await;
        }
        drop(progress);
        output::print(self.output.map(Into::into), &report, |_| text(&report, access.stdout()))?;
        Ok(if report.healthy { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    }
}

impl Arguments {
    /// A cluster that cannot be reached is a finding like any other.
    async fn look(&self, access: &Access) -> Report {
        let connection = match access.connect().await {
            Ok(connection) => connection,
            Err(error) => {
                let refused = matches!(
                    error.trouble,
                    Trouble::Credentials | Trouble::Unauthorized | Trouble::Forbidden
                );
                return liqo_inspect::unreachable(&error.sentence, &error.advice, refused);
            }
        };
        let server = connection.server();
        if self.pre {
            return liqo_inspect::before_installing(&server, Box::pin(preflight(access, &connection)).await);
        }
        Box::pin(Installation::new(connection.client, connection.namespace).check(&server)).await
    }
}

/// What the installer would check, with nothing given and nothing changed.
async fn preflight(access: &Access, connection: &Connection) -> Vec<Finding> {
    let failed = |error: &dyn std::fmt::Display| {
        vec![Finding::failed("the cluster can be looked at", error.to_string())]
    };
    let target = match install::target(access, connection) {
        Ok((target, _)) => target,
        Err(error) => return failed(&error),
    };
    let request = Request::default();
    match liqo_install::prepare(&target, &Chart::embedded(), &request, &Silent).await {
        Ok(prepared) => prepared.findings,
        Err(error) => failed(&error),
    }
}

fn first_failure(report: &Report) -> String {
    let first = report.problems().into_iter().next();
    first.map(|finding| format!("{}: {}", finding.name, finding.why)).unwrap_or_default()
}

fn text(report: &Report, style: Style) -> String {
    let mut text = String::new();
    for section in &report.sections {
        text += &format!("{}\n", style.bold(&section.name));
        text.extend(section.findings.iter().map(|it| finding(it, style)));
        text += "\n";
    }
    text + &summary(report)
}

fn summary(report: &Report) -> String {
    let count = |outcome| {
        report.sections.iter().flat_map(|it| &it.findings).filter(|it| it.result == outcome).count()
    };
    let (good, warnings, bad) = (count(Outcome::Ok), count(Outcome::Warning), count(Outcome::Failed));
    let warnings = match warnings {
        0 => String::new(),
        1 => ", 1 is worth a look".to_owned(),
        many => format!(", {many} are worth a look"),
    };
    match bad {
        0 => format!("{good} checks passed{warnings}\n"),
        bad => format!("{good} checks passed, {bad} failed{warnings}\n"),
    }
}
