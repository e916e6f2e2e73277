//! Whether the room is ready, and if not, why.

use std::time::Duration;

use kube::Resource;
use liqo_api::ClusterConfig;
use liqo_kit::health::Checks;

use super::Room;
use crate::plan::Verdict;

/// A watch that heard nothing for so long has lost its server: twice the time after which a living one is heard of.
const STALE_AFTER: Duration = Duration::from_secs(90);

impl Room {
    /// Adds checks: that the watches live, and, where this process leads, that the identity is established.
    ///
    /// Whoever stands by need not wait for that: it is the leader's work, and a second one must be ready to take over.
    pub fn add_checks(&self, checks: &Checks) {
        for status in self.0.watches.lock().iter() {
            checks.add_watch(status, STALE_AFTER);
            let status = status.clone();
            if status.name() == ClusterConfig::plural(&()) {
                checks.add("definitions", move || definitions(status.failure().as_deref()));
            }
        }
        let room = self.clone();
        checks.add("identity", move || room.check());
    }

    fn check(&self) -> Result<(), String> {
        let leading = self.0.leading.lock().as_ref().map(|leading| leading.settled);
        let Some(settled) = leading else { return Ok(()) };
        match self.judge() {
            Verdict::Established(_) if settled => Ok(()),
            Verdict::Refused(refusal) => Err(format!("{}: {}", refusal.reason.as_str(), refusal.message)),
            _ => Err(self.unfinished()),
        }
    }

    fn unfinished(&self) -> String {
        let index = self.0.index.read();
        let failures: Vec<_> = index
            .failures
            .iter()
            .map(|(object, failure)| format!("; cannot write {object}: {failure}"))
            .collect();
        format!("not established yet{}", failures.concat())
    }
}

/// What the failure of their watch says about the definitions of our kinds.
fn definitions(failure: Option<&str>) -> Result<(), String> {
    if !failure.is_some_and(|failure| failure.contains("answered 404")) {
        return Ok(());
    }
    Err("the kinds of Liqo are not defined in this cluster; install them with liqoctl, with the chart, or with: \
         liqo crds | kubectl apply --server-side -f -"
        .to_owned())
}
