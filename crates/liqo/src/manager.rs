//! `liqo manager`: the controller manager of a cluster.
//!
//! ```text
//!            ┌──────────────────────── one process, one or more replicas ───────────────────────┐
//!  probes ◀──┤ :8081   readiness: watches live; the leader's identity is established            │
//!  metrics ◀─┤ :8080                                                                             │
//!    peers ◀─┤ :5000   the authentication service, in all                                       │
//! API server ◀ :9443   the webhook that places pods, in all                                    │
//!            │ lease ── who leads ──▶ rooms write              watches ──▶ rooms know, in all    │
//!            └───────────────────────────────────────────────────────────────────────────────────┘
//! ```

use std::process::ExitCode;

use clap::ArgMatches;
use liqo_kit::rbac::Rule;

mod arguments;
mod election;
mod notes;
mod process;
mod report;
mod rooms;
#[cfg(test)]
mod tests;

pub use arguments::Arguments;
pub(crate) use notes::describe;

/// Name of the manager's Lease, Deployment and account.
pub const NAME: &str = "liqo-controller-manager";

/// What the process itself must be allowed to do.
const RULES: &[Rule] = &[
    Rule::namespace(
        &["coordination.k8s.io"],
        &["leases"],
        &["create"],
        "the Lease by which one replica leads",
    ),
    Rule::namespace(&["coordination.k8s.io"], &["leases"], &["get", "update"], "lead, and see who leads")
        .named(&[NAME]),
];

/// All that the manager must be allowed to do, room by room.
pub fn rules() -> Vec<Rule> {
    [
        RULES,
        liqo_identity::RULES,
        liqo_authentication::RULES,
        liqo_discovery::RULES,
        liqo_discovery::WAN_RULES,
        liqo_peering::RULES,
        liqo_providers::RULES,
        liqo_virtual_node::RULES,
        liqo_offloading::RULES,
        liqo_hosting::RULES,
        liqo_reflection::RULES,
    ]
    .concat()
}

/// Runs the manager until it is asked to end.
pub(crate) fn run(arguments: &Arguments, matches: &ArgMatches) -> ExitCode {
    report::log_configuration(matches);
    match start(arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            tracing::error!(error = format!("{error:#}"), "the manager ends");
            ExitCode::FAILURE
        }
    }
}

fn start(arguments: &Arguments) -> anyhow::Result<()> {
    arguments.process.runtime()?.block_on(process::run(arguments))
}
