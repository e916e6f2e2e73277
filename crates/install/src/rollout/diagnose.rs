//! What is waited for, and what is wrong. Pure.

mod pods;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use liqo_api::cluster_config::READY;

use super::{Told, Workload};

/// Something that keeps an installation from becoming ready.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Trouble {
    /// `pod liqo-controller-manager-…`.
    pub(crate) what: String,
    pub(crate) why: String,
    pub(crate) hint: String,
    /// The last lines of its log.
    pub(crate) log: Option<String>,
    /// It does not go away by waiting.
    pub(crate) lasting: bool,
}

impl Trouble {
    fn new(what: impl Into<String>, why: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { what: what.into(), why: why.into(), hint: hint.into(), log: None, lasting: false }
    }

    fn lasting(self) -> Self {
        Self { lasting: true, ..self }
    }
}

impl std::fmt::Display for Trouble {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.what, self.why)?;
        if let Some(log) = &self.log {
            write!(f, "\n  its last words:")?;
            for line in log.lines() {
                write!(f, "\n    {line}")?;
            }
        }
        for line in self.hint.lines() {
            write!(f, "\n  {line}")?;
        }
        Ok(())
    }
}

/// How far it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Step {
    /// Everything runs.
    Ready,
    /// This is waited for.
    Waiting(String),
}

/// Looks whether everything runs.
pub(crate) fn step(workloads: &[Workload], told: Option<&Told>) -> Step {
    for workload in workloads {
        let what = &workload.what;
        if !workload.noticed {
            return Step::Waiting(format!("{what}: its controller has not noticed it yet"));
        }
        let done = workload.observed
            && workload.updated >= workload.wanted
            && workload.available >= workload.wanted
            && workload.old == 0;
        if !done {
            let states: Vec<String> = workload.pods.iter().map(pods::state).collect();
            let states = if states.is_empty() { String::new() } else { format!(" ({})", states.join(", ")) };
            let ready = workload.available.min(workload.updated);
            return Step::Waiting(format!("{what}: {ready} of {} pods ready{states}", workload.wanted));
        }
    }
    told.and_then(not_told).map_or(Step::Ready, Step::Waiting)
}

/// What the manager has not told yet.
fn not_told(told: &Told) -> Option<String> {
    let Some(config) = &told.config else {
        return Some("the manager has not told yet who the cluster is (ClusterConfig liqo)".into());
    };
    let status = config.status.clone().unwrap_or_default();
    let core = |version: &str| {
        version.trim_start_matches('v').split(['-', '+']).next().unwrap_or_default().to_owned()
    };
    if let (Some(wanted), there) = (&told.version, status.version.unwrap_or_default())
        && core(wanted) != core(&there)
    {
        return Some(format!("ClusterConfig liqo is still told by version {there:?}, not by {wanted}"));
    }
    match status.conditions.iter().find(|condition| condition.type_ == READY) {
        Some(ready) if ready.status == "True" => None,
        Some(ready) => Some(format!("ClusterConfig liqo is not Ready: {}", words(ready))),
        None => Some("ClusterConfig liqo is not Ready yet".into()),
    }
}

fn words(condition: &Condition) -> String {
    match condition.message.as_str() {
        "" => condition.reason.clone(),
        message => message.to_owned(),
    }
}

/// Everything that is wrong, what is wrong with pods before what their controllers say.
pub(crate) fn troubles(workloads: &[Workload], told: Option<&Told>) -> Vec<Trouble> {
    let mut found = Vec::new();
    for workload in workloads {
        let of_pods: Vec<Trouble> =
            workload.pods.iter().filter_map(|pod| pods::trouble(pod, workload)).collect();
        found.extend(controllers(workload, of_pods.is_empty()));
        found.extend(of_pods);
    }
    found.extend(told.into_iter().flat_map(unready));
    found
}

/// The conditions by which the manager says that something is wrong.
fn unready(told: &Told) -> Vec<Trouble> {
    let conditions =
        told.config.as_ref().and_then(|config| config.status.as_ref()).map(|status| &status.conditions);
    let bad = conditions.into_iter().flatten().filter(|condition| condition.status == "False");
    bad.map(|condition| {
        Trouble::new(
            format!("ClusterConfig liqo, {}", condition.type_),
            words(condition),
            "liqoctl logs tells more",
        )
    })
    .collect()
}

/// Why there are no pods.
fn controllers(workload: &Workload, no_pod_tells: bool) -> Vec<Trouble> {
    if !workload.noticed {
        return vec![Trouble::new(
            &workload.what,
            "the cluster's controller manager has not looked at it",
            "is kube-controller-manager running? kubectl get --raw='/readyz?verbose' and the log of that program tell more",
        )];
    }
    let mut reasons = workload.failures.clone();
    for set in &workload.replica_sets {
        let conditions = set.status.iter().flat_map(|status| status.conditions.iter().flatten());
        reasons.extend(
            conditions
                .filter(|one| one.type_ == "ReplicaFailure" && one.status == "True")
                .filter_map(|one| one.message.clone()),
        );
    }
    if reasons.is_empty() && no_pod_tells && workload.pods.is_empty() {
        reasons.extend(
            workload
                .events
                .iter()
                .filter(|event| event.reason.as_deref() == Some("FailedCreate"))
                .filter_map(|event| event.message.clone()),
        );
    }
    reasons.dedup();
    let mut found: Vec<Trouble> = Vec::new();
    for reason in reasons {
        let trouble =
            Trouble::new(&workload.what, format!("no pod can be made: {reason}"), no_pod_hint(&reason))
                .lasting();
        if !found.contains(&trouble) {
            found.push(trouble);
        }
    }
    if found.is_empty() && no_pod_tells && workload.pods.is_empty() && workload.wanted > 0 {
        found.push(Trouble::new(
            &workload.what,
            "it has no pod yet",
            "kubectl get events -A shows what happens in the cluster",
        ));
    }
    found
}

fn no_pod_hint(reason: &str) -> &'static str {
    if reason.contains("exceeded quota") || reason.contains("failed quota") {
        "make room in the namespace's ResourceQuota or raise it (kubectl get resourcequota -A), or ask for less with --set \
         controllerManager.pod.resources.…"
    } else if reason.contains("violates PodSecurity") {
        "the namespace's Pod Security level refuses the pod: kubectl get namespace -L pod-security.kubernetes.io/enforce"
    } else if reason.contains("webhook") {
        "an admission webhook stands in the way: repair what is behind it, or delete its configuration if that is gone \
         (kubectl get validatingwebhookconfigurations,mutatingwebhookconfigurations)"
    } else if reason.contains("maximum") || reason.contains("minimum") {
        "a LimitRange of the namespace refuses the pod's resources: set others with --set controllerManager.pod.resources.…"
    } else {
        "put that right; the installation then goes on by itself, or when you run the same command again"
    }
}

#[cfg(test)]
mod tests;
