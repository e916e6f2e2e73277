//! What the status of a SearchDomain should say: pure.

use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use liqo_api::names::{Identity, MAX_LABEL};
use liqo_api::search_domain::{READY, RECORDS_VALID};
use liqo_api::{ClusterIdentity, SearchDomainStatus, conditions};

use super::{Domain, Search};
use crate::advert::Refused;
use crate::wan::search::Trouble;

#[cfg(test)]
mod tests;

/// How old the time of the last search in the status may become: each new one is a write.
const NOTE_AFTER: i64 = 600;

/// Broken records that a message names; of more, their number.
const MAX_NAMED: usize = 8;

/// Clusters that the status names, as the schema allows.
const MAX_CLUSTERS: usize = 256;

/// A record that is of no use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Problem {
    pub(crate) record: Arc<str>,
    pub(crate) refused: Refused,
}

/// The status that should be written, if it says something else than the present one.
pub(crate) fn status(
    domain: &Domain,
    search: Option<&Search>,
    found: &[Identity],
    problems: &[Problem],
    now: Timestamp,
) -> Option<SearchDomainStatus> {
    let mut status = domain.status.clone();
    let mut asked_at = None;
    let ready = if domain.is_nameable() {
        let search = search?;
        let asked = search.asked?;
        let mut clusters: Vec<ClusterIdentity> = found.iter().cloned().map(Into::into).collect();
        clusters.sort_by(|a, b| (&a.cluster_name, &a.cluster_id).cmp(&(&b.cluster_name, &b.cluster_id)));
        clusters.dedup();
        status.found = Some(u32::try_from(clusters.len()).unwrap_or(u32::MAX));
        clusters.truncate(MAX_CLUSTERS);
        status.clusters = clusters;
        asked_at = Some(asked);
        ready(search)
    } else {
        status.found = Some(0);
        status.clusters.clear();
        let message = format!(
            "The name of this SearchDomain has more than {MAX_LABEL} characters, so the clusters found through it could \
             not be labelled with it. Create it again under a shorter name."
        );
        ("False", "NameTooLong", message)
    };
    let valid = valid(problems);
    for (kind, (truth, reason, message)) in [(READY, ready), (RECORDS_VALID, valid)] {
        let condition = Condition {
            type_: kind.to_owned(),
            status: truth.to_owned(),
            reason: reason.to_owned(),
            message,
            last_transition_time: Time(now),
            observed_generation: domain.generation,
        };
        conditions::set(&mut status.conditions, condition, now);
    }
    let is_news = status != domain.status;
    let noted = status.last_query.as_ref().map_or(0, |time| time.0.as_second());
    let is_old = asked_at.is_some() && !(0..NOTE_AFTER).contains(&(now.as_second() - noted));
    if is_news || is_old {
        let seconds = |at: Timestamp| Timestamp::from_second(at.as_second()).unwrap_or(at);
        status.last_query = asked_at.map(|at| Time(seconds(at))).or(status.last_query);
        return Some(status);
    }
    None
}

fn ready(search: &Search) -> (&'static str, &'static str, String) {
    match &search.trouble {
        None => ("True", "Searched", "The domain was searched.".to_owned()),
        Some(Trouble::NoRecords(reason, _)) => ("False", "NoRecords", format!("{reason}.")),
        Some(Trouble::Failed(reason)) => ("False", "SearchFailed", format!("{reason}.")),
    }
}

fn valid(problems: &[Problem]) -> (&'static str, &'static str, String) {
    if problems.is_empty() {
        return ("True", "AllValid", "Every record names a cluster that answers.".to_owned());
    }
    let named: Vec<_> = problems
        .iter()
        .take(MAX_NAMED)
        .map(|problem| format!("{}: {}", problem.record, problem.refused))
        .collect();
    let more = match problems.len().saturating_sub(MAX_NAMED) {
        0 => String::new(),
        count => format!("; and {count} more"),
    };
    ("False", "BrokenRecords", format!("{}{more}.", named.join("; ")))
}
