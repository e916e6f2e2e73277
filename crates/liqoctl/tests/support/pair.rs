//! Two clusters, and `liqoctl` for each.
#![allow(dead_code, unreachable_pub, reason = "each test file uses its own part")]
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test can do nothing else about it")]

use std::process::{Command, Output, Stdio};
use std::time::Duration;

use liqo_sandbox::TestSandbox;
use serde_json::Value;
use tokio::time::Instant;

#[path = "said.rs"]
mod said;

pub use said::Said;

pub const CONSUMER: &str = "consumer";
pub const PROVIDER: &str = "provider";
/// Where test sandboxes live.
const BASE: &str = "/var/lib/liqo-sandbox-tests";
/// A machine may be ten times busier than ours.
const SOON: Duration = Duration::from_secs(60);
const PAUSE: Duration = Duration::from_millis(200);

/// Two clusters of a test's own.
pub struct Pair {
    pub sandbox: TestSandbox,
}

impl Pair {
    fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_liqoctl"));
        command.args(words).stdin(Stdio::null());
        for variable in ["KUBECONFIG", "LIQO_IMAGE_ARCHIVE", "KUBERNETES_SERVICE_HOST"] {
            command.env_remove(variable);
        }
        command.env("HOME", "/nonexistent");
        command
    }

    /// As somebody without any cluster.
    pub fn alone(&self, words: &[&str]) -> Output {
        self.command(words).env("LIQO_SANDBOX_STATE_DIR", "/nonexistent").output().unwrap()
    }

    pub fn run(&self, cluster: &str, words: &[&str]) -> Said {
        let started = Instant::now();
        let mut command = self.command(words);
        command.args(["--context", cluster]);
        command
            .env("LIQO_SANDBOX_STATE_DIR", BASE)
            .env("LIQO_SANDBOX_NAME", self.sandbox.sandbox().place().name());
        let said = Said::of(&command.output().unwrap());
        // Shown when the test fails, and tells which step is slow.
        let words = words.join(" ");
        eprintln!(
            "{cluster}: liqoctl {words:.60} ended with {:?} after {:.1} s",
            said.code,
            started.elapsed().as_secs_f64()
        );
        said
    }

    /// Runs a command that must succeed.
    pub fn ok(&self, cluster: &str, words: &[&str]) -> Said {
        let said = self.run(cluster, words);
        assert_eq!(said.code, Some(0), "{cluster}: liqoctl {words:?}: {said}");
        said
    }

    /// Runs a command that must fail with code 1.
    pub fn fails(&self, cluster: &str, words: &[&str]) -> Said {
        let said = self.run(cluster, words);
        assert_eq!(said.code, Some(1), "{cluster}: liqoctl {words:?}: {said}");
        said
    }

    /// What a command prints for programs.
    pub fn json(&self, cluster: &str, words: &[&str]) -> Value {
        let words: Vec<&str> = words.iter().copied().chain(["-o", "json"]).collect();
        let said = self.run(cluster, &words);
        serde_json::from_str(&said.out)
            .unwrap_or_else(|error| panic!("{cluster}: liqoctl {words:?}: {error}: {said}"))
    }

    /// What a command prints for programs, once that is as it should be.
    pub fn json_until(&self, cluster: &str, words: &[&str], right: impl Fn(&Value) -> bool) -> Value {
        let deadline = Instant::now() + SOON;
        loop {
            let found = self.json(cluster, words);
            if right(&found) {
                return found;
            }
            assert!(
                Instant::now() < deadline,
                "{cluster}: liqoctl {words:?} says not what is waited for: {found:#}"
            );
            std::thread::sleep(PAUSE);
        }
    }

    /// Runs a command until it says what it should.
    pub fn until(&self, cluster: &str, words: &[&str], right: impl Fn(&Said) -> bool) {
        let deadline = Instant::now() + SOON;
        loop {
            let said = self.run(cluster, words);
            if right(&said) {
                return;
            }
            assert!(
                Instant::now() < deadline,
                "{cluster}: liqoctl {words:?} says not what is waited for: {said}"
            );
            std::thread::sleep(PAUSE);
        }
    }

    /// kubectl, which must succeed.
    pub fn kubectl(&self, cluster: &str, words: &[&str]) -> String {
        let output = self.sandbox.cluster(cluster).kubectl(words);
        assert!(output.status.success(), "{cluster}: kubectl {words:?}: {}", Said::of(&output));
        String::from_utf8(output.stdout).unwrap()
    }

    pub fn apply(&self, cluster: &str, yaml: &str) {
        let output = self.sandbox.cluster(cluster).kubectl_apply(yaml);
        assert!(output.status.success(), "{cluster}: kubectl apply: {}", Said::of(&output));
    }

    /// A file that goes with the sandbox.
    pub fn file(&self, name: &str, content: &str) -> String {
        let path = self.sandbox.sandbox().place().root().join(name);
        std::fs::write(&path, content).unwrap();
        path.display().to_string()
    }
}
