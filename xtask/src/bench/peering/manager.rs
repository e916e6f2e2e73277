//! Managers as plain processes, and what the kernel knows of them.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use tokio::time::{Instant, sleep};

/// How often a state is looked at: fine enough against seconds.
pub(super) const LOOK: Duration = Duration::from_millis(20);
/// What has not come by then does not come.
pub(super) const PATIENCE: Duration = Duration::from_secs(180);

/// Sizes in /proc/PID/stat are in hundredths of a second.
const TICKS: f64 = 100.0;
/// How /proc/net/tcp writes an established connection.
const ESTABLISHED: &str = "01";

/// A running `liqo manager`, ended when it is let go of.
pub(super) struct Manager {
    child: Child,
    log: PathBuf,
}

impl Manager {
    /// Starts one for the cluster of this kubeconfig.
    pub(super) fn start(liqo: &Path, kubeconfig: &Path, log: PathBuf, more: &[String]) -> Result<Self> {
        let file = File::create(&log).with_context(|| format!("cannot create {}", log.display()))?;
        let child = Command::new(liqo)
            .arg("manager")
            .arg(format!("--kubeconfig={}", kubeconfig.display()))
            .args(["--metrics-address=127.0.0.1:0", "--health-probe-address=127.0.0.1:0"])
            .args(more)
            .env_clear()
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(file)
            .spawn()
            .with_context(|| format!("cannot start {}", liqo.display()))?;
        Ok(Self { child, log })
    }

    fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Waits until its log says this.
    pub(super) async fn says(&self, text: &str) -> Result<()> {
        until(&format!("the manager does not say {text:?}, see {}", self.log.display()), async || {
            let log = fs::read_to_string(&self.log)?;
            if log.contains(text) { Ok(()) } else { bail!("{}", log.lines().last().unwrap_or_default()) }
        })
        .await
    }

    /// Memory in millions of bytes.
    pub(super) fn megabytes(&self) -> Result<f64> {
        let status = fs::read_to_string(format!("/proc/{}/status", self.pid()))?;
        let kilobytes = status
            .lines()
            .find_map(|line| line.strip_prefix("VmRSS:")?.split_whitespace().next()?.parse::<f64>().ok());
        Ok(kilobytes.context("the manager's memory is not to be seen")? * 1024.0 / 1e6)
    }

    /// Seconds of CPU so far.
    pub(super) fn cpu_seconds(&self) -> Result<f64> {
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.pid()))?;
        let fields: Vec<f64> = stat
            .rsplit_once(')')
            .map(|(_, rest)| rest.split_whitespace().map(|field| field.parse().unwrap_or(0.0)).collect())
            .unwrap_or_default();
        let ticks = fields.get(11).zip(fields.get(12)).map(|(user, system)| user + system);
        Ok(ticks.context("the manager's CPU time is not to be seen")? / TICKS)
    }

    /// The other ends of its connections, as the kernel writes them: `0100007F:1F90`.
    pub(super) fn connections(&self) -> Result<Vec<String>> {
        let pid = self.pid();
        let mut own = BTreeSet::new();
        for entry in fs::read_dir(format!("/proc/{pid}/fd"))? {
            let Ok(target) = fs::read_link(entry?.path()) else { continue };
            let target = target.to_string_lossy().into_owned();
            own.extend(
                target
                    .strip_prefix("socket:[")
                    .and_then(|rest| rest.strip_suffix(']'))
                    .map(ToOwned::to_owned),
            );
        }
        let table = fs::read_to_string(format!("/proc/{pid}/net/tcp"))?;
        let lines = table.lines().skip(1).map(|line| line.split_whitespace().collect::<Vec<_>>());
        let established = lines.filter(|fields| fields.get(3) == Some(&ESTABLISHED));
        let ours = established.filter(|fields| fields.get(9).is_some_and(|inode| own.contains(*inode)));
        Ok(ours.filter_map(|fields| fields.get(2).map(|remote| (*remote).to_owned())).collect())
    }

    /// Ends it without warning.
    pub(super) fn kill(mut self) -> Result<()> {
        self.child.kill()?;
        self.child.wait()?;
        Ok(())
    }
}

impl Drop for Manager {
    fn drop(&mut self) {
        // One that has ended already is as well.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Asks until there is an answer.
pub(super) async fn until<T>(what: &str, ask: impl AsyncFn() -> Result<T>) -> Result<T> {
    let deadline = Instant::now() + PATIENCE;
    loop {
        match ask().await {
            Ok(answer) => return Ok(answer),
            Err(error) if Instant::now() > deadline => {
                return Err(error.context(format!("{what} after {} s", PATIENCE.as_secs())));
            }
            Err(_) => sleep(LOOK).await,
        }
    }
}
