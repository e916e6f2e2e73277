//! The client of the cluster that the process runs in.

use std::path::Path;

use anyhow::Context;
use http::header::USER_AGENT;
use http::{HeaderName, HeaderValue};
use kube::config::{KubeConfigOptions, Kubeconfig};
use liqo_kit::clusters::{ClientConfig, client};

use crate::VERSION;
use crate::limits::WATCHES_HERE;

/// A client: of the pod's own account, or of a kubeconfig. The API server is told that `agent` asks.
pub(crate) async fn connect(agent: &str, kubeconfig: Option<&Path>) -> anyhow::Result<kube::Client> {
    let mut config = match kubeconfig {
        Some(path) => from_file(path).await?,
        None => kube::Config::incluster()
            .context("this is no pod with an account; outside of a cluster, use --kubeconfig FILE")?,
    };
    // Audit logs and the server's own metrics then tell who asked.
    let agent = HeaderValue::from_str(&format!("{agent}/{VERSION}")).context("the version is no header")?;
    config.headers.retain(|(name, _): &(HeaderName, HeaderValue)| *name != USER_AGENT);
    config.headers.push((USER_AGENT, agent));
    let limits = ClientConfig { max_watches: WATCHES_HERE, ..ClientConfig::default() };
    client(&config, &limits).context("cannot set up a client")
}

async fn from_file(path: &Path) -> anyhow::Result<kube::Config> {
    let shown = path.display();
    let file = Kubeconfig::read_from(path).with_context(|| format!("cannot read the kubeconfig {shown}"))?;
    let config = kube::Config::from_custom_kubeconfig(file, &KubeConfigOptions::default()).await;
    config.with_context(|| format!("cannot use the kubeconfig {shown}"))
}
