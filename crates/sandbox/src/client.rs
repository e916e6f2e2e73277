//! Talking to a sandbox's API servers.

use std::time::Duration;

use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};

use crate::error::{Result, SandboxError};
use crate::plan::{ClusterPlan, ETCD_PORT};

/// An API server on the same machine answers at once or not at all.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);
/// Longer than any request of ours takes on a busy machine.
const READ_TIMEOUT: Duration = Duration::from_secs(20);

fn failed(cluster: &ClusterPlan, reason: &dyn std::fmt::Display) -> SandboxError {
    SandboxError::Command {
        what: format!("making a client for cluster {}", cluster.name()),
        reason: reason.to_string(),
    }
}

/// The administrator's client configuration.
pub(crate) async fn config(cluster: &ClusterPlan) -> Result<Config> {
    let kubeconfig = Kubeconfig::read_from(cluster.kubeconfig()).map_err(|error| failed(cluster, &error))?;
    let mut config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default())
        .await
        .map_err(|error| failed(cluster, &error))?;
    config.connect_timeout = Some(CONNECT_TIMEOUT);
    config.proxy_url = None;
    Ok(config)
}

/// The administrator's client.
pub(crate) async fn client(cluster: &ClusterPlan) -> Result<Client> {
    Client::try_from(config(cluster).await?).map_err(|error| failed(cluster, &error))
}

/// Asks the API server whether it is ready: nothing, or what it answered.
pub(crate) async fn ready(client: &Client) -> Result<(), String> {
    let request = http_get("/readyz").map_err(|error| error.to_string())?;
    let answer = tokio::time::timeout(READ_TIMEOUT, client.request_text(request)).await;
    match answer {
        Err(_) => Err("no answer".into()),
        Ok(Err(error)) => Err(what_fails(&with_causes(&error))),
        Ok(Ok(text)) if text.trim() == "ok" => Ok(()),
        Ok(Ok(text)) => Err(what_fails(&text)),
    }
}

/// An API server that is not ready lists dozens of checks; these are the ones that fail.
fn what_fails(answer: &str) -> String {
    let failing: Vec<&str> = answer
        .lines()
        .filter_map(|line| line.trim().strip_prefix("[-]"))
        .map(|line| line.split(" failed").next().unwrap_or(line))
        .collect();
    match failing.as_slice() {
        [] => answer.lines().next().unwrap_or("no answer").to_owned(),
        some => format!("not ready yet: {}", some.join(", ")),
    }
}

/// An error with what caused it: "cannot connect" alone does not say that nobody listens.
fn with_causes(error: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(error.source(), |cause| cause.source());
    let mut text = error.to_string();
    for cause in causes.map(ToString::to_string) {
        // Some layers repeat the words of the one below.
        if !text.contains(&cause) {
            text = format!("{text}: {cause}");
        }
    }
    text
}

fn http_get(path: &str) -> Result<http::Request<Vec<u8>>, http::Error> {
    http::Request::get(path).body(vec![])
}

/// Drops etcd's history up to now, so that every older watch gets "410 Gone".
pub(crate) async fn compact_etcd(cluster: &ClusterPlan) -> Result<()> {
    let client = etcd(cluster).await?;
    let post = |path: &str, body: String| {
        http::Request::post(path).header("content-type", "application/json").body(body.into_bytes())
    };
    let call = async |path: &str, body: String| -> Result<serde_json::Value> {
        let request = post(path, body).map_err(|error| failed(cluster, &error))?;
        client.request(request).await.map_err(|error| failed(cluster, &error))
    };
    let answer = call("/v3/kv/range", r#"{"key": "AA=="}"#.into()).await?;
    let revision = answer["header"]["revision"].as_str().unwrap_or("0").to_owned();
    call("/v3/kv/compaction", format!(r#"{{"revision": "{revision}", "physical": true}}"#)).await.map(drop)
}

async fn etcd(cluster: &ClusterPlan) -> Result<Client> {
    let pki = cluster.pki();
    let url = format!("https://{}:{ETCD_PORT}", cluster.first_machine().address);
    let kubeconfig = serde_json::json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "etcd",
        "clusters": [{"name": "etcd", "cluster": {"server": url, "certificate-authority": pki.join("etcd-ca.crt")}}],
        "contexts": [{"name": "etcd", "context": {"cluster": "etcd", "user": "etcd"}}],
        "users": [{"name": "etcd", "user": {
            "client-certificate": pki.join("etcd-client.crt"), "client-key": pki.join("etcd-client.key"),
        }}],
    });
    let kubeconfig: Kubeconfig =
        serde_json::from_value(kubeconfig).map_err(|error| failed(cluster, &error))?;
    let options = KubeConfigOptions::default();
    let config = Config::from_custom_kubeconfig(kubeconfig, &options)
        .await
        .map_err(|error| failed(cluster, &error))?;
    Client::try_from(config).map_err(|error| failed(cluster, &error))
}

#[cfg(test)]
mod tests;
