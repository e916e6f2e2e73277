//! A sandbox as its users see it.

use std::fs;
use std::time::Duration;

use crate::binaries::{Binaries, Sources};
use crate::bring_up::{BringUp, Progress};
use crate::cluster::Cluster;
use crate::error::{FileContext, Result, SandboxError};
use crate::plan::Place;
use crate::spec::{HOST, Spec};
use crate::state::{Delay, Faults, Lock, Owner, Phase, State};
use crate::{down, faults, host, prepare, process};

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
            Err(error) => match down::remove(place) {
                Ok(()) => Err(error),
                Err(more) => Err(SandboxError::Host(format!(
                    "{error}\nand what was started could not be removed: {more}"
                ))),
            },
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
        let plan = prepare::connect(place, spec, options.owner.as_ref())?;
        let mut sandbox = Self {
            place: place.clone(),
            state: State {
                phase: Phase::Starting,
                owner: options.owner.clone(),
                plan,
                faults: Faults::default(),
            },
        };
        prepare::write_files(place, &sandbox.state.plan, binaries)?;
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
        self.state.plan.clusters.iter().map(|plan| Cluster::new(&self.place, plan))
    }

    /// One of its clusters.
    pub fn cluster(&self, name: &str) -> Result<Cluster<'_>> {
        self.clusters().find(|cluster| cluster.name() == name).ok_or_else(|| self.unknown(name, &[]))
    }

    fn unknown(&self, name: &str, more: &[&str]) -> SandboxError {
        let known: Vec<&str> =
            self.clusters().map(|cluster| cluster.name()).chain(more.iter().copied()).collect();
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
