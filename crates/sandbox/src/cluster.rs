//! One cluster of a sandbox, as its users see it.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use kube::{Client, Config};

use crate::bring_up::{BringUp, Progress};
use crate::component::Part;
use crate::error::{Result, SandboxError};
use crate::image::{ArchivedImage, ImageName};
use crate::plan::{ClusterPlan, MachinePlan, Place};
use crate::process::Inside;
use crate::{client, network, node, parts, process};

/// One cluster of a sandbox that is there.
#[derive(Debug, Clone, Copy)]
pub struct Cluster<'a> {
    place: &'a Place,
    plan: &'a ClusterPlan,
}

impl<'a> Cluster<'a> {
    pub(crate) fn new(place: &'a Place, plan: &'a ClusterPlan) -> Self {
        Self { place, plan }
    }

    /// Its name.
    pub fn name(&self) -> &'a str {
        self.plan.name()
    }

    /// Its addresses and directories.
    pub fn plan(&self) -> &'a ClusterPlan {
        self.plan
    }

    /// The administrator's kubeconfig.
    pub fn kubeconfig(&self) -> PathBuf {
        self.plan.kubeconfig()
    }

    /// The administrator's client.
    pub async fn client(&self) -> Result<Client> {
        client::client(self.plan).await
    }

    /// The administrator's client configuration.
    pub async fn config(&self) -> Result<Config> {
        client::config(self.plan).await
    }

    /// Whether the API server answers that it is ready; otherwise what it answered.
    pub async fn api_ready(&self) -> Result<(), String> {
        let client = self.client().await.map_err(|error| error.to_string())?;
        client::ready(&client).await
    }

    /// kubectl with this cluster's kubeconfig, to be completed and run.
    pub fn kubectl_command(&self) -> Command {
        let mut command = Command::new(self.place.bin().join("kubectl"));
        command.env("KUBECONFIG", self.kubeconfig());
        command
    }

    /// Runs kubectl on this machine.
    pub fn kubectl<S: AsRef<OsStr>>(&self, arguments: impl IntoIterator<Item = S>) -> Result<Output> {
        self.output(self.kubectl_command().args(arguments), b"")
    }

    /// `kubectl apply -f -`.
    pub fn kubectl_apply(&self, yaml: &str) -> Result<Output> {
        self.output(self.kubectl_command().args(["apply", "-f", "-"]), yaml.as_bytes())
    }

    /// Runs kubectl in the network of the cluster's first machine: works when the cluster is cut off.
    pub fn kubectl_inside<S: AsRef<OsStr>>(&self, arguments: impl IntoIterator<Item = S>) -> Result<Output> {
        let program = self.place.bin().join("kubectl").into_os_string();
        let arguments = arguments.into_iter().map(|argument| argument.as_ref().to_owned());
        let mut command =
            self.network(self.plan.first_machine())?.command(std::iter::once(program).chain(arguments));
        self.output(command.env("KUBECONFIG", self.kubeconfig()), b"")
    }

    fn output(&self, command: &mut Command, input: &[u8]) -> Result<Output> {
        let failed = |error: std::io::Error| SandboxError::Command {
            what: "kubectl".into(),
            reason: error.to_string(),
        };
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(failed)?;
        if let Some(mut stdin) = child.stdin.take() {
            // kubectl may fail before it reads; its own message is the better one.
            let _ = std::io::Write::write_all(&mut stdin, input);
        }
        child.wait_with_output().map_err(failed)
    }

    fn network(&self, machine: &MachinePlan) -> Result<Inside> {
        network::holder(&self.place.root(), &network::holder_part(self.plan, machine)).map(Inside::Network)
    }

    /// A command in the network of one of the cluster's machines (counted from 1).
    pub fn exec_command<S: AsRef<OsStr>>(
        &self,
        machine: u32,
        argv: impl IntoIterator<Item = S>,
    ) -> Result<Command> {
        let known =
            || (1..=self.plan.machines.len()).map(|number| number.to_string()).collect::<Vec<_>>().join(", ");
        let machine = self.plan.machines.iter().find(|one| one.number == machine).ok_or_else(|| {
            SandboxError::Unknown { what: "node", name: machine.to_string(), known: known() }
        })?;
        Ok(self.network(machine)?.command(argv))
    }

    /// The parts that `text` names; all of them without a text.
    pub fn parts(&self, text: Option<&str>) -> Result<Vec<Part>> {
        Part::select(self.plan, text)
    }

    /// What every part is doing.
    pub fn part_states(&self) -> Vec<(Part, parts::PartState)> {
        let all = process::of(&self.place.root());
        Part::all(self.plan).into_iter().map(|part| (part, parts::state(&all, self.plan, part))).collect()
    }

    /// Ends parts politely.
    pub fn stop(&self, chosen: &[Part]) -> Result<()> {
        parts::stop(self.place, self.plan, chosen)
    }

    /// Ends parts at once.
    pub fn kill(&self, chosen: &[Part]) -> Result<()> {
        parts::kill(self.place, self.plan, chosen)
    }

    /// Freezes parts.
    pub fn pause(&self, chosen: &[Part]) -> Result<()> {
        parts::pause(self.place, self.plan, chosen)
    }

    /// Lets frozen parts go on.
    pub fn resume(&self, chosen: &[Part]) -> Result<()> {
        parts::resume(self.place, self.plan, chosen)
    }

    /// Starts parts that are not running and waits until the API server is ready, if it is among them.
    pub async fn start(&self, chosen: &[Part], progress: Progress<'_>) -> Result<()> {
        BringUp { place: self.place, cluster: self.plan, progress }.again(chosen).await
    }

    /// The logs of parts.
    pub fn logs(&self, chosen: &[Part]) -> Vec<PathBuf> {
        parts::logs(self.plan, chosen)
    }

    /// Gives an image archive to every real node.
    pub fn load_image(&self, archive: &Path) -> Result<()> {
        if self.plan.nodes().is_empty() {
            return Err(SandboxError::Host(format!(
                "cluster {} has no real node that could run an image",
                self.name()
            )));
        }
        for machine in self.plan.nodes() {
            node::load_image(node::inside(self.place, self.plan, machine)?, archive)?;
        }
        Ok(())
    }

    /// Whether every real node has an image under this name, written as in a pod.
    pub fn has_image(&self, name: &str) -> Result<bool> {
        let name = ImageName::complete(name)?;
        let nodes = self.plan.nodes();
        for machine in nodes {
            if node::image_digest(node::inside(self.place, self.plan, machine)?, &name)?.is_none() {
                return Ok(false);
            }
        }
        Ok(!nodes.is_empty())
    }

    /// Gives an image archive to those real nodes that lack the image or have another one under its name.
    /// Returns the nodes that got it.
    pub fn load_image_where_missing(&self, archive: &Path) -> Result<Vec<&'a str>> {
        let image = ArchivedImage::read(archive)?;
        let mut loaded = Vec::new();
        for machine in self.plan.nodes() {
            let inside = node::inside(self.place, self.plan, machine)?;
            if node::image_digest(inside, &image.name)?.as_deref() != Some(image.digest.as_ref()) {
                node::load_image(inside, archive)?;
                loaded.push(machine.node_name.as_str());
            }
        }
        Ok(loaded)
    }

    /// Where the API server of an audited cluster writes down every request, a JSON object per line; there is no
    /// such file otherwise. What was asked by whom with which result is there, the content of objects is not.
    pub fn audit_log(&self) -> PathBuf {
        self.plan.audit_log()
    }

    /// Drops etcd's history, so that watches from before get "410 Gone".
    pub async fn compact_etcd(&self) -> Result<()> {
        client::compact_etcd(self.plan).await
    }
}
