//! The cluster that is meant.

use kube::{Client, Config};

use crate::facts::SandboxCluster;

/// A cluster that has answered, and where in it liqo belongs.
#[derive(Clone)]
pub struct Target {
    /// Talks to it.
    pub client: Client,
    /// How the client was made; with it another address of the same cluster can be tried.
    pub config: Config,
    /// The API server's URL, as the kubeconfig has it.
    pub server: String,
    /// The kubeconfig's context.
    pub context: Option<String>,
    /// The version that the API server told, such as `v1.34.1`.
    pub version: String,
    /// The namespace of liqo.
    pub namespace: String,
    /// The sandbox on this machine that the cluster belongs to.
    pub sandbox: Option<SandboxCluster>,
}

impl Target {
    /// `--context X` and `-n Y` where a command for the user needs them.
    pub fn flags(&self) -> String {
        let context = self.context.as_ref().map(|name| format!(" --context {name}")).unwrap_or_default();
        let namespace = match self.namespace.as_str() {
            crate::names::NAMESPACE => String::new(),
            other => format!(" -n {other}"),
        };
        context + &namespace
    }
}
