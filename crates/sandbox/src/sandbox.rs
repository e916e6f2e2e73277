//! A sandbox as its users see it.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use ipnet::Ipv4Net;
use kube::{Client, Config};

use crate::binaries::{Binaries, Sources};
use crate::bring_up::{BringUp, Progress, builtin_images};
use crate::component::Part;
use crate::down;
use crate::error::{FileContext, Result, SandboxError};
use crate::plan::{ClusterPlan, MachinePlan, Place, Plan};
use crate::process::Inside;
use crate::spec::{HOST, Spec};
use crate::state::{Delay, Faults, Lock, Owner, Phase, State};
use crate::{client, control_plane, faults, host, image, network, node, parts, pki, process};

/// A sandbox that is there.
#[derive(Debug, Clone)]
pub struct Sandbox {
    place: Place,
    state: State,
}

/// What `up` found or did.
#[derive(Debug)]
pub enum Up {
    /// It was started.
    Started(Sandbox),
    /// It runs already; nothing was done.
    Running(Sandbox),
}

/// How a sandbox is started.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// Where the programs are.
    pub sources: Sources,
    /// The process it belongs to, for sandboxes that must not outlive a test.
    pub owner: Option<Owner>,
}

impl Sandbox {
    /// Starts the sandbox unless it runs. When this fails, nothing is left behind; when the future is dropped
    /// in the middle, [`down`](crate::down()) removes what was started.
    pub async fn up(place: &Place, spec: &Spec, options: &Options, progress: Progress<'_>) -> Result<Up> {
        spec.validate()?;
        host::check_root()?;
        down::refuse_foreign_directory(place)?;
        if let Some(running) = Self::running(place) {
            return Ok(Up::Running(running));
        }
        host::check(place, spec)?;
        let real = spec.clusters.iter().any(|cluster| cluster.nodes > 0);
        let hollow = spec.clusters.iter().any(|cluster| cluster.hollow_nodes > 0);
        let binaries = Binaries::find(&options.sources, real, hollow)?;
        let debris = down::exists(place);
        let _lock = Lock::of(place)?;
        if debris {
            progress(place.name(), "removing what an interrupted run left behind");
            down::remove(place)?;
        }
        // The removal above took the directory that was locked.
        let _lock = if debris { Lock::of(place)? } else { _lock };
        match Self::start(place, spec, &binaries, options, progress).await {
            Ok(sandbox) => Ok(Up::Started(sandbox)),
            Err(error) => {
                down::remove(place)?;
                Err(error)
            }
        }
    }

    async fn start(
        place: &Place,
        spec: &Spec,
        binaries: &Binaries,
        options: &Options,
        progress: Progress<'_>,
    ) -> Result<Self> {
        let root = place.root();
        let marker = root.join(down::MARKER);
        fs::write(
            &marker,
            "Everything in this directory belongs to a sandbox: liqoctl sandbox down removes it.\n",
        )
        .at("write", &marker)?;
        let plan = connect(place, spec, options)?;
        let mut sandbox = Self {
            place: place.clone(),
            state: State {
                phase: Phase::Starting,
                owner: options.owner.clone(),
                plan,
                faults: Faults::default(),
            },
        };
        write_files(place, &sandbox.state.plan, binaries)?;
        let clusters = &sandbox.state.plan.clusters;
        futures::future::try_join_all(
            clusters
                .iter()
                .map(|cluster| async { BringUp { place, cluster, progress }.whole_cluster().await }),
        )
        .await?;
        sandbox.state.phase = Phase::Ready;
        sandbox.state.write(place)?;
        Ok(sandbox)
    }

    /// The sandbox at `place`, if it was started completely and anything of it still runs.
    fn running(place: &Place) -> Option<Self> {
        let state = State::read(place).filter(|state| state.phase == Phase::Ready)?;
        (!process::of(&place.root()).is_empty()).then(|| Self { place: place.clone(), state })
    }

    /// Finds a sandbox that was started before.
    pub fn open(place: &Place) -> Result<Self> {
        host::check_root()?;
        if let Some(sandbox) = Self::running(place) {
            return Ok(sandbox);
        }
        if let Some(state) = State::read(place)
            && state.phase == Phase::Starting
            && let Err(busy @ SandboxError::Busy { .. }) = Lock::of(place)
        {
            return Err(busy);
        }
        let name = place.name().to_owned();
        Err(if down::exists(place) {
            SandboxError::Interrupted { name }
        } else {
            SandboxError::Absent { name }
        })
    }

    /// Where it is.
    pub fn place(&self) -> &Place {
        &self.place
    }

    /// What is written down about it.
    pub fn state(&self) -> &State {
        &self.state
    }

    /// Its clusters.
    pub fn clusters(&self) -> impl Iterator<Item = Cluster<'_>> {
        self.state.plan.clusters.iter().map(|plan| Cluster { place: &self.place, plan })
    }

    /// One of its clusters.
    pub fn cluster(&self, name: &str) -> Result<Cluster<'_>> {
        self.clusters().find(|cluster| cluster.name() == name).ok_or_else(|| self.unknown(name, &[]))
    }

    fn unknown(&self, name: &str, more: &[&str]) -> SandboxError {
        let known: Vec<&str> =
            self.clusters().map(|cluster| cluster.plan.name()).chain(more.iter().copied()).collect();
        SandboxError::Unknown { what: "cluster", name: name.to_owned(), known: known.join(", ") }
    }

    fn check_pair(&self, a: &str, b: &str) -> Result<()> {
        for name in [a, b] {
            if name != HOST && !self.clusters().any(|cluster| cluster.name() == name) {
                return Err(self.unknown(name, &[HOST]));
            }
        }
        if a == b {
            return Err(SandboxError::Host(format!("a fault needs two different ends, not {a} twice")));
        }
        Ok(())
    }

    /// Changes the network faults and makes them true.
    async fn change_faults(
        &mut self,
        relay: &faults::RelayHost,
        change: impl FnOnce(&mut Faults),
    ) -> Result<()> {
        let _lock = Lock::of(&self.place)?;
        // Another command may have set faults since this value was read.
        self.state =
            State::read(&self.place).ok_or(SandboxError::Absent { name: self.place.name().into() })?;
        change(&mut self.state.faults);
        faults::apply(&self.place, &self.state, relay)?;
        self.state.write(&self.place)
    }

    /// Drops every packet between two clusters, or between a cluster and this machine (`host`).
    pub async fn cut(&mut self, a: &str, b: &str, relay: &faults::RelayHost) -> Result<()> {
        self.check_pair(a, b)?;
        self.change_faults(relay, |faults| {
            if !faults.cuts.iter().any(|pair| faults::same_pair(pair, (a, b))) {
                faults.cuts.push((a.to_owned(), b.to_owned()));
            }
        })
        .await
    }

    /// Delays every packet between two clusters by `each_way` in each direction.
    pub async fn delay(
        &mut self,
        a: &str,
        b: &str,
        each_way: Duration,
        relay: &faults::RelayHost,
    ) -> Result<()> {
        self.check_pair(a, b)?;
        self.change_faults(relay, |faults| {
            faults.delays.retain(|old| !faults::same_pair(&(old.a.clone(), old.b.clone()), (a, b)));
            faults.delays.push(Delay { a: a.to_owned(), b: b.to_owned(), each_way });
        })
        .await
    }

    /// Ends all network faults.
    pub async fn heal(&mut self, relay: &faults::RelayHost) -> Result<()> {
        self.change_faults(relay, |faults| *faults = Faults::default()).await
    }
}

/// Chooses a free subnet and builds the network, while no other sandbox does the same.
fn connect(place: &Place, spec: &Spec, options: &Options) -> Result<Plan> {
    let _lock = Lock::of_base(place.base())?;
    host::raise_limits(place.base())?;
    let subnet = free_subnet(place)?;
    let plan = Plan::new(place, spec, subnet);
    let state = State {
        phase: Phase::Starting,
        owner: options.owner.clone(),
        plan: plan.clone(),
        faults: Faults::default(),
    };
    state.write(place)?;
    network::create(place, &plan)?;
    Ok(plan)
}

fn free_subnet(place: &Place) -> Result<Ipv4Net> {
    let output = Inside::Host.run(
        "listing this machine's routes",
        ["ip", "-4", "-o", "route", "show", "table", "all"],
        b"",
    )?;
    let text = String::from_utf8_lossy(&output.stdout);
    let taken: Vec<Ipv4Net> = text.split_whitespace().filter_map(|word| word.parse().ok()).collect();
    let free = |subnet: &Ipv4Net| !taken.iter().any(|other| subnet.contains(other) || other.contains(subnet));
    place.candidate_subnets().find(free).ok_or_else(|| {
        SandboxError::Host(
            "every network of 100.64.0.0/10 is taken on this machine. Take another sandbox down first".into(),
        )
    })
}

fn write_files(place: &Place, plan: &Plan, binaries: &Binaries) -> Result<()> {
    write_programs(place, binaries)?;
    let real = plan.clusters.iter().any(|cluster| !cluster.nodes().is_empty());
    if real {
        write_images(place, binaries)?;
    }
    let programs =
        binaries.iter().filter_map(|(_, path)| Some(fs::canonicalize(path).ok()?.parent()?.to_owned()));
    let hidden = host::hidden_from_nodes(programs.chain([place.root()]));
    for cluster in &plan.clusters {
        pki::write(cluster)?;
        control_plane::write_files(cluster)?;
        for machine in cluster.nodes() {
            node::write_files(place, cluster, machine, &hidden)?;
        }
    }
    pki::write_merged(place, plan)
}

/// One directory with every program under its own name: the multi-call binary goes by it.
fn write_programs(place: &Place, binaries: &Binaries) -> Result<()> {
    let bin = place.bin();
    fs::create_dir_all(&bin).at("create", &bin)?;
    for (name, path) in binaries.iter() {
        let link = bin.join(name);
        symlink(path, &link).at("create", &link)?;
    }
    let pause = bin.join("pause");
    fs::write(&pause, image::pause_program()).at("write", &pause)?;
    fs::set_permissions(&pause, fs::Permissions::from_mode(0o755)).at("make executable", &pause)
}

fn write_images(place: &Place, binaries: &Binaries) -> Result<()> {
    let dir = place.images();
    fs::create_dir_all(&dir).at("create", &dir)?;
    let [pause, coredns, app] = <[PathBuf; 3]>::try_from(builtin_images(place)).unwrap_or_default();
    image::pause(&pause)?;
    image::coredns(binaries.path("coredns")?, &coredns)?;
    image::sandbox_app(&app)?;
    Ok(())
}

/// One cluster of a sandbox that is there.
#[derive(Debug, Clone, Copy)]
pub struct Cluster<'a> {
    place: &'a Place,
    plan: &'a ClusterPlan,
}

impl<'a> Cluster<'a> {
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

    /// Drops etcd's history, so that watches from before get "410 Gone".
    pub async fn compact_etcd(&self) -> Result<()> {
        client::compact_etcd(self.plan).await
    }
}
