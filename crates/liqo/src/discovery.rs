//! `liqo discovery`: finds other clusters on the local network, and lets them find this one.
//!
//! ```text
//!            ┌──────── one process, on the network of a node ────────┐
//!  the local │                                                       │     ConfigMap: who we are
//!  network ◀─┤ multicast DNS ◀── what to say ◀── our service asked ◀─┼──── Service: where it is reached
//!            │       └────▶ who is there ──▶ asked who they are ─────┼───▶ ForeignClusters
//!            └───────────────────────────────────────────────────────┘
//! ```
//!
//! It is apart from the manager because it needs the network of a node, which the manager, with all its rights, should not
//! have.

use std::process::ExitCode;

use clap::ArgMatches;
use liqo_api::cluster_config::CLUSTER_ID_CONFIG_MAP;
use liqo_api::credentials::AUTH_SERVICE;
use liqo_kit::rbac::Rule;

mod arguments;
mod own;
mod place;
mod process;
mod say;
#[cfg(test)]
mod tests;

pub use arguments::Arguments;

use crate::report;

/// What the process itself must be allowed to do.
const RULES: &[Rule] = &[
    Rule::namespace(&[""], &["configmaps"], &["list", "watch"], "know who this cluster is")
        .named(&[CLUSTER_ID_CONFIG_MAP]),
    Rule::namespace(
        &[""],
        &["services"],
        &["list", "watch"],
        "know where others reach the authentication service",
    )
    .named(&[AUTH_SERVICE]),
];

/// All that the role must be allowed to do.
pub fn rules() -> Vec<Rule> {
    [RULES, liqo_discovery::RULES].concat()
}

/// Runs until it is asked to end.
pub(crate) fn run(arguments: &Arguments, matches: &ArgMatches) -> ExitCode {
    report::log_start("discovery", &report::flags::<Arguments>(matches));
    let done = arguments.process.runtime().and_then(|runtime| runtime.block_on(process::run(arguments)));
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            tracing::error!(error = format!("{error:#}"), "discovery ends");
            ExitCode::FAILURE
        }
    }
}
