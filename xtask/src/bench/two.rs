//! Two clusters of a sandbox, one to lend to the other, and the commands that a person has for them.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};

use super::peering::{Programs, is_there};

pub(super) const CONSUMER: &str = "consumer";
pub(super) const PROVIDER: &str = "provider";
/// Beside whatever other sandboxes the machine has.
pub(super) const SANDBOX: &str = "bench";
/// A watch may be quiet for so long.
const QUIET: Duration = Duration::from_secs(300);

/// Two clusters; gone when it is let go of.
pub(super) struct Two {
    pub(super) liqoctl: PathBuf,
    pub(super) kubeconfig: PathBuf,
    pub(super) consumer: Client,
    pub(super) provider: Client,
}

impl Two {
    /// Starts them as `liqoctl sandbox up` is told to by these arguments.
    pub(super) async fn start(programs: &Programs, up: &[&str]) -> Result<Self> {
        is_there(&programs.liqoctl)?;
        let liqoctl = programs.liqoctl.clone();
        let kubeconfig = programs.out.join("bench.kubeconfig");
        sandbox(&liqoctl, &["down"])?;
        sandbox(&liqoctl, &[&["up"], up].concat())?;
        let status: serde_json::Value = serde_json::from_str(&sandbox(&liqoctl, &["status", "-o", "json"])?)?;
        let merged = status["kubeconfig"].as_str().context("the sandbox has no kubeconfig")?;
        std::fs::copy(merged, &kubeconfig).with_context(|| format!("cannot copy {merged}"))?;
        let (consumer, provider) =
            (client(&kubeconfig, CONSUMER).await?, client(&kubeconfig, PROVIDER).await?);
        Ok(Self { liqoctl, kubeconfig, consumer, provider })
    }

    pub(super) fn liqoctl(&self, cluster: &str, arguments: &[&str]) -> Result<String> {
        let mut command = Command::new(&self.liqoctl);
        command.args(arguments).args(["--context", cluster]).arg("--kubeconfig").arg(&self.kubeconfig);
        command.env("LIQO_SANDBOX_NAME", SANDBOX);
        said(&command.stdin(Stdio::null()).output()?)
    }

    pub(super) fn kubectl(&self, cluster: &str, arguments: &[&str]) -> Result<String> {
        let mut all = vec!["kubectl", cluster, "--"];
        all.extend(arguments);
        sandbox(&self.liqoctl, &all)
    }
}

impl Drop for Two {
    fn drop(&mut self) {
        if let Err(error) = sandbox(&self.liqoctl, &["down"]) {
            eprintln!("bench: cannot remove the sandbox: {error:#}");
        }
    }
}

async fn client(kubeconfig: &Path, context: &str) -> Result<Client> {
    let options = KubeConfigOptions { context: Some(context.to_owned()), ..KubeConfigOptions::default() };
    let mut config = Config::from_custom_kubeconfig(Kubeconfig::read_from(kubeconfig)?, &options).await?;
    config.read_timeout = Some(QUIET);
    Ok(Client::try_from(config)?)
}

pub(super) fn sandbox(liqoctl: &Path, arguments: &[&str]) -> Result<String> {
    let mut command = Command::new(liqoctl);
    said(&command.args(["sandbox", "--name", SANDBOX]).args(arguments).stdin(Stdio::null()).output()?)
}

/// What a command printed, if it succeeded.
pub(super) fn said(output: &Output) -> Result<String> {
    if !output.status.success() {
        bail!("{}: {}", output.status, String::from_utf8_lossy(&output.stderr).trim());
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}
