//! The real program as a process.
#![allow(dead_code, reason = "each test file uses a part of it")]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use parking_lot::Mutex;
use tokio::time::Instant;

use super::world::eventually;

/// A running `liqo manager`, killed when the test lets go of it.
pub(crate) struct Manager {
    child: Child,
    log: Arc<Mutex<String>>,
    reader: Option<JoinHandle<()>>,
    started: Instant,
}

impl Manager {
    pub(crate) fn start(arguments: &[&str]) -> Self {
        let started = Instant::now();
        let mut child = Command::new(env!("CARGO_BIN_EXE_liqo"))
            .arg("manager")
            .args(arguments)
            .env_clear()
            .stderr(Stdio::piped())
            .spawn()
            .expect("the program starts");
        let log = Arc::new(Mutex::new(String::new()));
        let (stderr, lines) = (child.stderr.take().unwrap(), Arc::clone(&log));
        let reader = std::thread::spawn(move || {
            for line in BufReader::new(stderr).lines().map_while(Result::ok) {
                let mut log = lines.lock();
                log.push_str(&line);
                log.push('\n');
            }
        });
        Self { child, log, reader: Some(reader), started }
    }

    pub(crate) fn pid(&self) -> Pid {
        Pid::from_raw(i32::try_from(self.child.id()).unwrap())
    }

    pub(crate) fn log(&self) -> String {
        self.log.lock().clone()
    }

    /// How many log lines contain this.
    pub(crate) fn lines_with(&self, text: &str) -> usize {
        self.log().lines().filter(|line| line.contains(text)).count()
    }

    pub(crate) async fn wait_log(&self, text: &str) {
        eventually(&format!("the log says {text:?}"), || async {
            if self.log().contains(text) { Ok(()) } else { Err(self.log()) }
        })
        .await;
    }

    /// Where it serves probes or metrics, by its log.
    fn address(&self, what: &str) -> Option<String> {
        let log = self.log();
        let line = log.lines().find(|line| line.contains(&format!("serving {what}")))?;
        let (_, address) = line.split_once("address=")?;
        Some(address.split_whitespace().next()?.to_owned())
    }

    /// Status and body of a GET; an error before it serves.
    pub(crate) fn get(&self, what: &str, path: &str) -> Result<(u16, String), String> {
        let address = self.address(what).ok_or_else(|| format!("not serving {what} yet: {}", self.log()))?;
        let mut stream = TcpStream::connect(&address).map_err(|error| format!("{address}: {error}"))?;
        stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
        write!(stream, "GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
            .map_err(|error| error.to_string())?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).map_err(|error| error.to_string())?;
        let (head, body) = answer.split_once("\r\n\r\n").ok_or("no answer")?;
        let status = head.split(' ').nth(1).and_then(|code| code.parse().ok()).ok_or("no status")?;
        Ok((status, body.to_owned()))
    }

    pub(crate) fn readyz(&self) -> Result<(u16, String), String> {
        self.get("probes", "/readyz?verbose")
    }

    /// Waits until it is ready; returns how long after its start that was.
    pub(crate) async fn wait_ready(&self) -> Duration {
        eventually("the manager is ready", || async {
            match self.readyz() {
                Ok((200, _)) => Ok(()),
                other => Err(format!("{other:?}\n{}", self.log())),
            }
        })
        .await;
        self.started.elapsed()
    }

    /// Waits until it is not ready for this reason; returns all it says.
    pub(crate) async fn wait_unready(&self, reason: &str) -> String {
        eventually(&format!("the manager is not ready because of {reason}"), || async {
            match self.readyz() {
                Ok((503, text)) if text.contains(reason) => Ok(text),
                other => Err(format!("{other:?}\n{}", self.log())),
            }
        })
        .await
    }

    /// The value of a metric.
    pub(crate) fn metric(&self, name: &str) -> Option<f64> {
        let (_, text) = self.get("metrics", "/metrics").ok()?;
        let line =
            text.lines().find(|line| line.strip_prefix(name).is_some_and(|rest| rest.starts_with(' ')))?;
        line.rsplit_once(' ')?.1.parse().ok()
    }

    pub(crate) async fn wait_metric(&self, name: &str, value: f64) {
        eventually(&format!("{name} is {value}"), || async {
            let found = self.metric(name);
            if found == Some(value) { Ok(()) } else { Err(format!("{found:?}")) }
        })
        .await;
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill(self.pid(), signal).expect("the process can be signalled");
    }

    /// Waits for its end; returns how it ended, and its whole log.
    pub(crate) async fn ended(mut self) -> (ExitStatus, String) {
        let deadline = Instant::now() + super::world::SOON;
        let status = loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                break status;
            }
            assert!(Instant::now() < deadline, "still running: {}", self.log());
            tokio::time::sleep(Duration::from_millis(5)).await;
        };
        self.reader.take().map(JoinHandle::join);
        let log = self.log();
        (status, log)
    }

    /// Ends it without warning.
    pub(crate) async fn murder(self) -> String {
        self.signal(Signal::SIGKILL);
        self.ended().await.1
    }

    /// Ends it politely; panics unless it ends well and soon.
    pub(crate) async fn stop(self) -> String {
        let asked = Instant::now();
        self.signal(Signal::SIGTERM);
        let (status, log) = self.ended().await;
        assert_eq!(status.code(), Some(0), "{log}");
        assert!(asked.elapsed() < Duration::from_secs(2), "took {:?} to end:\n{log}", asked.elapsed());
        log
    }
}

impl Drop for Manager {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        if std::thread::panicking() {
            eprintln!("log of the manager {}:\n{}", self.child.id(), self.log());
        }
    }
}
