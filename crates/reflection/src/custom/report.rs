//! What the owner of a namespace is told about the custom resources that are reflected.

use std::collections::BTreeMap;

use liqo_api::namespace_offloading::{ConditionStatus, KindName, NotReflected, ReflectedKind};

use super::CustomKind;
use crate::reports::cut;

/// The longest message in the status, which names many clusters.
const MAX_MESSAGE: usize = 512;

/// Why a kind is neither reflected nor not: it is being found out.
pub(crate) const WAITING: &str = "Waiting";

/// How far one side is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    /// All of it is seen.
    Seen,
    /// It is being found out.
    Waiting,
    /// Something is in the way: a word and a sentence.
    Failing(NotReflected),
}

impl Side {
    /// Something is in the way.
    pub(crate) fn failing(reason: &str, message: &str) -> Self {
        let message = cut(message, MAX_MESSAGE).to_owned();
        Self::Failing(NotReflected { reason: reason.to_owned(), message })
    }

    /// The manager has no right at home.
    pub(crate) fn forbidden_here(kind: CustomKind) -> Self {
        let title = kind.title();
        Self::failing(
            "Forbidden",
            &format!(
                "the manager may not read {title} in this cluster: permit it in customKinds.reflected of the chart's values"
            ),
        )
    }

    /// The provider gives us no right.
    pub(crate) fn forbidden_there(kind: CustomKind) -> Self {
        let title = kind.title();
        Self::failing(
            "Forbidden",
            &format!(
                "the provider does not permit {title}: its administrators do in customKinds.hosted of the chart's values"
            ),
        )
    }
}

/// Where a kind stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// The kind is not known here.
    Unknown(NotReflected),
    /// It is reflected, as far as both sides are.
    Wanted {
        /// This cluster.
        here: Side,
        /// The clusters that have the namespace, by unique name.
        there: BTreeMap<String, Side>,
    },
    /// It is not wanted any more, and copies are left.
    Leaving,
}

/// What the status should say about a kind in this state.
pub(crate) fn told(name: &KindName, kind: Option<CustomKind>, state: State) -> ReflectedKind {
    let mut told = ReflectedKind {
        group: name.group.clone(),
        kind: name.kind.clone(),
        version: kind.map(|kind| kind.resource().version.clone()),
        plural: kind.map(|kind| kind.resource().plural.clone()),
        status: ConditionStatus::Unknown,
        reason: WAITING.to_owned(),
        message: String::new(),
        failing: BTreeMap::new(),
    };
    let mut say = |status: ConditionStatus, reason: &str, message: String| {
        (told.status, told.reason, told.message) = (status, reason.to_owned(), message);
    };
    match state {
        State::Unknown(why) | State::Wanted { here: Side::Failing(why), .. } => {
            say(ConditionStatus::False, &why.reason, why.message);
        }
        State::Leaving => {
            say(ConditionStatus::False, "Withdrawing", "its copies are being removed".to_owned());
        }
        State::Wanted { here, there } => {
            let waits = here == Side::Waiting || there.values().any(|side| *side == Side::Waiting);
            let count = there.len();
            let failing: BTreeMap<_, _> = there
                .into_iter()
                .filter_map(|(cluster, side)| match side {
                    Side::Failing(why) => Some((cluster, why)),
                    Side::Seen | Side::Waiting => None,
                })
                .collect();
            match (failing.len(), waits, count) {
                (0, true, _) => say(ConditionStatus::Unknown, WAITING, "it is being looked at".to_owned()),
                (0, false, 0) => say(
                    ConditionStatus::Unknown,
                    "NoCluster",
                    "no other cluster has the namespace".to_owned(),
                ),
                (0, false, _) => say(ConditionStatus::True, "Reflected", "it is copied".to_owned()),
                (bad, _, all) => {
                    let message = format!("{bad} of {all} clusters do not get it; failing says why");
                    say(ConditionStatus::False, "NotEverywhere", message);
                }
            }
            told.failing = failing;
        }
    }
    told
}
