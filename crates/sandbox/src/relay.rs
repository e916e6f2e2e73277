//! A relay that delays packets between machines. The kernel's own delay queue is missing on many machines, so
//! frames go through a pair of TAP devices and wait here.
//!
//! ```text
//! machine ── cable ── side bridge ── TAP inner ══ relay ══ TAP outer ── the internet's bridge
//! ```

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::thread;
use std::time::Duration;

use nix::sched::{CloneFlags, setns};
use serde::{Deserialize, Serialize};
use tokio::time::Instant;
use tun_rs::{DeviceBuilder, Layer, SyncDevice};

use crate::error::{FileContext, Result, SandboxError};

/// Frames that may wait in one direction; beyond that the line is full and drops, like a real one.
const WAITING_FRAMES: usize = 8192;
/// An Ethernet frame of the largest packet.
const FRAME: usize = 65_550;

/// The TAP device on the machine's side of a port.
pub(crate) fn inner(port: &str) -> String {
    format!("{port}i")
}

/// The TAP device on the internet's side of a port.
pub(crate) fn outer(port: &str) -> String {
    format!("{port}o")
}

/// The bridge that joins a machine's cable and the inner TAP device.
pub(crate) fn side_bridge(port: &str) -> String {
    format!("{port}b")
}

/// Every place where frames are delayed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RelayPlan {
    /// One link per machine.
    pub(crate) links: Vec<Link>,
}

/// A machine's link, and how late frames to and from other machines are.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Link {
    pub(crate) port: String,
    delays: Vec<([u8; 6], Duration)>,
}

impl Link {
    pub(crate) fn delay_for(&self, mac: [u8; 6]) -> Option<Duration> {
        self.delays.iter().find(|(other, _)| *other == mac).map(|(_, delay)| *delay)
    }

    /// How long a frame waits, by the machine at the other end of it.
    fn wait_of(&self, frame: &[u8], towards: Towards) -> Option<Duration> {
        let range = match towards {
            Towards::Internet => 0..6,
            Towards::Machine => 6..12,
        };
        self.delay_for(frame.get(range)?.try_into().ok()?)
    }
}

#[derive(Debug, Clone, Copy)]
enum Towards {
    Internet,
    Machine,
}

impl RelayPlan {
    pub(crate) fn add(&mut self, port: &str, mac: [u8; 6], delay: Duration) {
        if !self.links.iter().any(|link| link.port == port) {
            self.links.push(Link { port: port.to_owned(), delays: vec![] });
        }
        for link in self.links.iter_mut().filter(|link| link.port == port) {
            link.delays.push((mac, delay));
        }
    }

    pub(crate) fn write(&self, path: &Path) -> Result<()> {
        let text = serde_json::to_vec(self).map_err(std::io::Error::from).at("write", path)?;
        fs::write(path, text).at("write", path)
    }

    /// Reads the plan that a relay's process was given.
    pub fn read(path: &Path) -> Result<Self> {
        let text = fs::read(path).at("read", path)?;
        serde_json::from_slice(&text).map_err(std::io::Error::from).at("read", path)
    }

    /// Opens all devices in the network namespace of this thread and carries frames until they are taken away.
    pub fn run(self, ready: impl FnOnce()) -> Result<()> {
        let mut workers = Vec::new();
        for link in self.links {
            let (inner, outer) = (open(&inner(&link.port))?, open(&outer(&link.port))?);
            let link = Arc::new(link);
            for (from, to, towards) in
                [(inner.clone(), outer.clone(), Towards::Internet), (outer, inner, Towards::Machine)]
            {
                let link = link.clone();
                workers.push(thread::spawn(move || carry(&link, &from, &to, towards)));
            }
        }
        ready();
        for worker in workers {
            // A panic there is a bug that its own message tells about; the other links go on.
            let _ = worker.join();
        }
        Ok(())
    }
}

fn open(name: &str) -> Result<Arc<SyncDevice>> {
    let device = DeviceBuilder::new().name(name).layer(Layer::L2).inherit_enable_state().build_sync();
    let device = device.map_err(|error| SandboxError::Command {
        what: format!("opening the relay's device {name}"),
        reason: format!("{error}. Is /dev/net/tun there?"),
    })?;
    Ok(Arc::new(device))
}

/// Carries frames in one direction until the device goes away.
fn carry(link: &Link, from: &Arc<SyncDevice>, to: &Arc<SyncDevice>, towards: Towards) {
    let mut lanes: BTreeMap<Duration, SyncSender<(Instant, Vec<u8>)>> = BTreeMap::new();
    let mut buffer = vec![0; FRAME];
    while let Ok(length) = from.recv(&mut buffer) {
        let frame = &buffer[..length];
        let Some(delay) = link.wait_of(frame, towards) else {
            // Sending fails when the other device is just being removed; then this loop ends, too.
            let _ = to.send(frame);
            continue;
        };
        // A lane per delay: frames of one delay leave in the order they came, and nobody waits behind a longer one.
        let lane = lanes.entry(delay).or_insert_with(|| {
            let (sender, receiver) = sync_channel(WAITING_FRAMES);
            let to = to.clone();
            thread::spawn(move || deliver(&receiver, &to));
            sender
        });
        match lane.try_send((Instant::now() + delay, frame.to_vec())) {
            Ok(()) | Err(TrySendError::Full(_)) => {}
            Err(TrySendError::Disconnected(_)) => return,
        }
    }
}

fn deliver(lane: &Receiver<(Instant, Vec<u8>)>, to: &SyncDevice) {
    while let Ok((due, frame)) = lane.recv() {
        thread::sleep(due.saturating_duration_since(Instant::now()));
        if to.send(&frame).is_err() {
            return;
        }
    }
}

/// Runs the relay in a thread of this process; it ends when its devices are removed.
pub(crate) fn start_thread(internet: i32, plan: RelayPlan) -> Result<()> {
    let (sender, receiver) = sync_channel(1);
    thread::spawn(move || {
        let entered = enter_network(internet).and_then(|()| {
            let sender = sender.clone();
            plan.run(move || _ = sender.send(Ok(())))
        });
        if let Err(error) = entered {
            // Nobody listens any more if it was ready before.
            let _ = sender.send(Err(error));
        }
    });
    receiver.recv().unwrap_or_else(|_| {
        Err(SandboxError::Command { what: "starting the relay".into(), reason: "its thread ended".into() })
    })
}

fn enter_network(holder: i32) -> Result<()> {
    let path = format!("/proc/{holder}/ns/net");
    let file = File::open(&path).at("open", Path::new(&path))?;
    setns(file, CloneFlags::CLONE_NEWNET).map_err(std::io::Error::from).at("enter", Path::new(&path))
}

#[cfg(test)]
mod tests;
