//! Named checks behind `/healthz` and `/readyz`.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::RwLock;

use crate::watch::WatchStatus;

#[cfg(test)]
mod tests;

type Check = Arc<dyn Fn() -> Result<(), String> + Send + Sync>;

/// A set of named checks. Clones share it. With no check, all is well.
#[derive(Clone, Default)]
pub struct Checks(Arc<RwLock<BTreeMap<String, Check>>>);

impl Checks {
    /// Adds a check, or replaces the one of that name. An error says why it fails; the check must be quick.
    pub fn add(
        &self,
        name: impl Into<String>,
        check: impl Fn() -> Result<(), String> + Send + Sync + 'static,
    ) {
        self.0.write().insert(name.into(), Arc::new(check));
    }

    /// Adds a check that a watch has seen a full list and has heard of its server within `stale_after`.
    ///
    /// A quiet server is heard of once per [`idle`](crate::watch::WatchConfig::idle) time: be more patient than that.
    pub fn add_watch(&self, status: &WatchStatus, stale_after: Duration) {
        let status = status.clone();
        self.add(format!("watch/{}", status.name()), move || {
            let reason = status.failure().map(|failure| format!(": {failure}")).unwrap_or_default();
            if !status.is_ready() {
                return Err(format!("the first list is not complete{reason}"));
            }
            match status.staleness() {
                stale if stale > stale_after => {
                    Err(format!("nothing heard for {} s{reason}", stale.as_secs()))
                }
                _ => Ok(()),
            }
        });
    }

    /// Removes a check.
    pub fn remove(&self, name: &str) {
        self.0.write().remove(name);
    }

    /// Runs all checks.
    pub fn run(&self) -> Report {
        let checks = self.0.read().clone();
        Report { results: checks.into_iter().map(|(name, check)| (name, check())).collect() }
    }
}

/// What the checks said.
#[derive(Clone, Debug)]
pub struct Report {
    /// Each check and, where it fails, why.
    pub results: Vec<(String, Result<(), String>)>,
}

impl Report {
    /// Whether no check fails.
    pub fn is_ok(&self) -> bool {
        self.results.iter().all(|(_, result)| result.is_ok())
    }

    /// The failing checks, and all of them if `verbose`, one a line.
    pub fn text(&self, verbose: bool) -> String {
        let mut text = String::new();
        for (name, result) in &self.results {
            let _ = match result {
                Ok(()) if verbose => writeln!(text, "[+] {name}: ok"),
                Ok(()) => Ok(()),
                Err(reason) => writeln!(text, "[-] {name}: {reason}"),
            };
        }
        text.push_str(if self.is_ok() { "ok\n" } else { "failed\n" });
        text
    }
}
