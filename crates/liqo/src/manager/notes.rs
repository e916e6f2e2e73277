//! What becomes of each flag.

use Note::{Later, Nothing, Used};
use clap::Arg;

/// What this version does with a flag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Note {
    /// It has its effect.
    Used,
    /// Its part of the program is not in this version.
    Later,
    /// It never needs to do anything here, for this reason.
    Nothing(&'static str),
}

const NO_POD: &str = "all virtual nodes live in the manager's process; they have no pods of their own";
const NO_ARGUMENTS: &str = "all virtual nodes live in the manager's process; no program is started with arguments, and \
                            addresses behind a broker are found without them";
const NO_CERTIFICATE: &str =
    "all virtual nodes live in the manager's process, which has one certificate signed for all of them";
const NO_WORKERS: &str = "work is bounded by queues, not by a number of workers";
const NO_POLLING: &str = "changes are watched; nothing is asked for again and again";

/// Every flag of the manager.
pub(super) const NOTES: &[(&str, Note)] = &[
    ("cluster-id", Used),
    ("cluster-name", Used),
    ("liqo-namespace", Used),
    ("metrics-address", Used),
    ("health-probe-address", Used),
    ("log-format", Used),
    ("log-filter", Used),
    ("kubeconfig", Used),
    ("pod-name", Used),
    ("lease-duration", Used),
    ("lease-renew-deadline", Used),
    ("lease-retry-period", Used),
    ("worker-threads", Used),
    ("resync-period", Nothing(NO_POLLING)),
    ("cluster-labels", Used),
    ("resource-sharing-percentage", Used),
    ("external-monitor", Later),
    ("broker-mode", Later),
    ("enable-incoming-peering", Used),
    ("offer-disable-auto-accept", Used),
    ("offer-update-threshold-percentage", Used),
    ("auto-join-discovered-clusters", Used),
    ("enable-authentication", Used),
    ("auth-address", Used),
    ("api-server-trusted-ca", Used),
    ("name-servers", Used),
    ("auth-service-address-override", Used),
    ("auth-service-port-override", Used),
    ("foreign-cluster-workers", Nothing(NO_WORKERS)),
    ("offloading-status-requeue-period", Nothing(NO_POLLING)),
    ("shadow-pod-ctrl-workers", Nothing(NO_WORKERS)),
    ("reflection", Used),
    ("webhook-address", Used),
    ("node-extra-annotations", Used),
    ("node-extra-labels", Used),
    ("kubelet-address", Used),
    ("pod-ip", Used),
    ("node-lease-duration", Used),
    ("kubelet-image", Nothing(NO_POD)),
    ("init-kubelet-image", Nothing(NO_POD)),
    ("disable-kubelet-certificate-generation", Nothing(NO_CERTIFICATE)),
    ("kubelet-extra-annotations", Nothing(NO_POD)),
    ("kubelet-extra-labels", Nothing(NO_POD)),
    ("kubelet-extra-args", Nothing(NO_ARGUMENTS)),
    ("kubelet-cpu-requests", Nothing(NO_POD)),
    ("kubelet-cpu-limits", Nothing(NO_POD)),
    ("kubelet-ram-requests", Nothing(NO_POD)),
    ("kubelet-ram-limits", Nothing(NO_POD)),
    ("enable-storage", Used),
    ("virtual-storage-class-name", Used),
    ("real-storage-class-name", Used),
    ("storage-namespace", Used),
];

pub(super) fn note(flag: &str) -> Option<Note> {
    NOTES.iter().find(|(name, _)| *name == flag).map(|(_, note)| *note)
}

/// Adds to a flag's help what becomes of it.
pub(crate) fn describe(argument: Arg) -> Arg {
    // What is set in somebody's environment is nobody else's business, least of all a document's.
    let argument = argument.hide_env_values(true);
    let help = argument.get_help().map(ToString::to_string).unwrap_or_default();
    match argument.get_long().and_then(note) {
        Some(Later) => argument.help(format!("{help} (no effect in this version)")),
        Some(Nothing(reason)) => argument.help(format!("{help} (accepted, and nothing is needed: {reason})")),
        Some(Used) | None => argument,
    }
}
