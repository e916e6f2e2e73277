//! `liqoctl uninstall`: arguments and wiring; the work is done by the crate `liqo-install`.

use std::io::{BufRead, IsTerminal, Write};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Result, bail};
use clap::Args;
use liqo_install::{InstallError, Progress, Removal, Survey};
use tokio_util::sync::CancellationToken;

use crate::access::Access;
use crate::install::{Steps, interruptible, seconds_or_span, target};

/// Arguments of `uninstall`.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Also remove the kinds with all their objects, the cluster's identity and the namespace
    #[arg(long)]
    purge: bool,
    /// Do not ask, also when there are peerings or offloaded namespaces
    #[arg(short, long, visible_alias = "skip-confirm")]
    yes: bool,
    /// How long it may take: seconds, or like 3m
    #[arg(short, long, value_name = "DURATION", default_value = "3m", value_parser = seconds_or_span)]
    timeout: Duration,
    /// Also remove what Helm installed
    #[arg(long)]
    force: bool,
}

pub(crate) const EXAMPLES: &str = "Examples:
  liqoctl uninstall                    # the manager and its rights; identity and kinds stay
  liqoctl uninstall --purge --yes      # everything, without asking

Ends with 0 when nothing of it is left, also when nothing was there. Running it again goes on.";

/// What is said where something is in use.
struct Words {
    warning: &'static str,
    question: &'static str,
    hint: &'static str,
}

const ENDS: Words = Words {
    warning: "this is in use and ends:",
    question: "Go on and end it?",
    hint: "Say --yes if that may end",
};

const STAYS: Words = Words {
    warning: "this stays as it is, but nobody looks after it until liqo is installed again; --purge ends it:",
    question: "Go on and leave it so?",
    hint: "Say --yes to leave it so, or --purge --yes to end it",
};

impl Arguments {
    pub(crate) async fn run(self, access: &Access) -> Result<ExitCode> {
        let steps = Steps::new(access.stderr());
        interruptible(&steps, async |stop| Box::pin(self.uninstall(access, &steps, stop)).await).await
    }

    async fn uninstall(&self, access: &Access, steps: &Steps, stop: CancellationToken) -> Result<ExitCode> {
        let connection = access.connect().await?;
        let (target, _) = target(access, &connection)?;
        steps.busy("looking what is there");
        let survey = Box::pin(liqo_install::survey(&target)).await?;
        if !self.force {
            survey.refused()?;
        }
        if survey.is_empty(self.purge) {
            let rest = if survey.has_rest() {
                format!(
                    "; kinds, identity or namespace of an earlier one are kept, liqoctl uninstall --purge{} removes them",
                    target.flags()
                )
            } else {
                String::new()
            };
            steps.done(&format!(
                "liqo is not installed in namespace {} of {}{rest}",
                target.namespace, connection.target
            ));
            return Ok(ExitCode::SUCCESS);
        }
        if !self.agreed(&survey, steps, &stop).await? {
            eprintln!("nothing was changed");
            return Ok(ExitCode::FAILURE);
        }
        let options = Removal { purge: self.purge, timeout: self.timeout };
        liqo_install::uninstall(&target, &survey, options, &stop, steps).await?;
        steps.end(&match self.purge {
            true => "liqo is gone, with everything of it".to_owned(),
            false => format!(
                "liqo is gone; its kinds{}, the cluster's identity and the namespace {} are kept for a later installation",
                if survey.in_use().is_empty() { "" } else { " with peerings and offloaded namespaces" },
                target.namespace
            ),
        });
        Ok(ExitCode::SUCCESS)
    }

    /// Whether to go on, asked where something is in use.
    async fn agreed(&self, survey: &Survey, steps: &Steps, stop: &CancellationToken) -> Result<bool> {
        let in_use = survey.in_use();
        if in_use.is_empty() {
            return Ok(true);
        }
        let words = if self.purge { ENDS } else { STAYS };
        steps.warn(words.warning);
        steps.detail(&in_use.join("\n"));
        if self.yes {
            return Ok(true);
        }
        if !(std::io::stdin().is_terminal() && std::io::stderr().is_terminal()) {
            bail!("nothing was changed, as there is nobody to ask. {}", words.hint);
        }
        eprint!("{} [y/N] ", words.question);
        std::io::stderr().flush()?;
        let answer = stop.run_until_cancelled(answer()).await.ok_or(InstallError::Interrupted)?;
        Ok(matches!(answer.trim().to_lowercase().as_str(), "y" | "yes"))
    }
}

/// A line that the user types; empty when there is none.
async fn answer() -> String {
    let (sender, answer) = tokio::sync::oneshot::channel();
    // A thread of its own, which nobody waits for: a read from a terminal cannot be called off, and Ctrl-C must end us.
    std::thread::spawn(move || {
        let mut line = String::new();
        let _ = std::io::stdin().lock().read_line(&mut line);
        let _ = sender.send(line);
    });
    answer.await.unwrap_or_default()
}
