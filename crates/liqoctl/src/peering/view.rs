//! All that is known of one peer, for people and for programs.

use anyhow::{Context as _, Result};
use jiff::Timestamp;
use kube::{Api, ResourceExt};
use liqo_api::foreign_cluster::{
    NOT_ASKED, PeeringCondition, PeeringConditionStatus as Status, PeeringConditionType as Part,
    TenantNamespaces,
};
use liqo_api::{DiscoveryType, ForeignCluster};
use serde::Serialize;

use super::paper::{ContractView, OfferView};
use super::phases::{self, Kind};
use super::{Papers, certificate_expires, id_of, name_of};
use crate::access::Connection;

mod text;

pub(crate) use text::text;

/// A peer.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct PeerDetail {
    /// What it is called here.
    pub(crate) name: String,
    #[serde(rename = "clusterID", skip_serializing_if = "Option::is_none")]
    pub(crate) cluster_id: Option<String>,
    /// What it calls itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) cluster_name: Option<String>,
    /// How it became known: LAN, WAN, Manual or IncomingPeering.
    pub(crate) found: &'static str,
    #[serde(rename = "authURL", skip_serializing_if = "Option::is_none")]
    pub(crate) auth_url: Option<String>,
    pub(crate) tenant_namespace: TenantNamespaces,
    /// When our certificate at the peer ends.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) certificate_expires: Option<Timestamp>,
    /// Whether it is being removed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) removed_since: Option<Timestamp>,
    /// What we borrow from it.
    pub(crate) outgoing: Direction,
    /// What it borrows from us.
    pub(crate) incoming: Direction,
    /// What else is told of it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) other: Vec<State>,
    /// What there is to do before all is well.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) troubles: Vec<String>,
}

/// One direction of lending.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Direction {
    /// What the ForeignCluster says: Yes, No or Auto.
    pub(crate) enabled: String,
    #[serde(flatten)]
    pub(crate) state: State,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) steps: Vec<StepView>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) offer: Option<OfferView>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) contract: Option<ContractView>,
}

/// What a condition says.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct State {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) part: Option<String>,
    pub(crate) status: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) since: Option<Timestamp>,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) reason: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) message: String,
}

/// A step on the way to a contract.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct StepView {
    pub(crate) name: &'static str,
    pub(crate) state: StepState,
    /// What came out, or what is waited for.
    pub(crate) text: String,
    /// Since when it is waited for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) since: Option<Timestamp>,
}

/// How a step is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub(crate) enum StepState {
    Done,
    Waiting,
    Refused,
}

/// What there is to see, now.
pub(crate) async fn read(connection: &Connection, name: &str) -> Result<PeerDetail> {
    let api: Api<ForeignCluster> = Api::all(connection.client.clone());
    let cluster = api.get_opt(name).await.map_err(|error| connection.target.explain(&error))?;
    let cluster = cluster.with_context(|| format!("{name} was removed in the meantime"))?;
    of(connection, &cluster).await
}

/// The same of a ForeignCluster that was read.
pub(crate) async fn of(connection: &Connection, cluster: &ForeignCluster) -> Result<PeerDetail> {
    let papers = Papers::read(&connection.client, cluster).await;
    let papers = papers.context("cannot read the offers and contracts")?;
    // Who may not look at Secrets sees the rest.
    let expires = certificate_expires(&connection.client, cluster).await.unwrap_or_default();
    Ok(detail(cluster, &papers, expires))
}

/// What there is to see, from what was read.
pub(crate) fn detail(cluster: &ForeignCluster, papers: &Papers, expires: Option<Timestamp>) -> PeerDetail {
    let id = id_of(cluster).unwrap_or_default();
    let name = cluster.name_any();
    let outgoing = Direction {
        enabled: format!("{:?}", cluster.spec.outgoing_peering_enabled),
        state: state(phases::condition(cluster, Part::OutgoingPeering)),
        steps: steps(cluster, papers),
        offer: papers.offered_by(id).map(|offer| OfferView::of(offer, &name, false)),
        contract: papers.lent_by(id).map(|contract| ContractView::of(contract, &name, false)),
    };
    let incoming = Direction {
        enabled: format!("{:?}", cluster.spec.incoming_peering_enabled),
        state: state(phases::condition(cluster, Part::IncomingPeering)),
        steps: Vec::new(),
        offer: papers.offered_to(id).map(|offer| OfferView::of(offer, &name, true)),
        contract: papers.lent_to(id).map(|contract| ContractView::of(contract, &name, true)),
    };
    PeerDetail {
        cluster_id: id_of(cluster).map(str::to_owned),
        cluster_name: name_of(cluster).map(str::to_owned),
        found: cluster.discovery_type().as_label(),
        auth_url: Some(cluster.spec.foreign_auth_url.clone()).filter(|url| !url.is_empty()),
        tenant_namespace: cluster.status.as_ref().map(|it| it.tenant_namespace.clone()).unwrap_or_default(),
        certificate_expires: expires,
        removed_since: cluster.metadata.deletion_timestamp.as_ref().map(|time| time.0),
        troubles: troubles(cluster, &outgoing, &incoming),
        other: other(cluster),
        name,
        outgoing,
        incoming,
    }
}

fn state(condition: Option<&PeeringCondition>) -> State {
    let Some(condition) = condition else {
        return State {
            part: None,
            status: "None".to_owned(),
            since: None,
            reason: String::new(),
            message: String::new(),
        };
    };
    State {
        part: None,
        status: format!("{:?}", condition.status),
        since: condition.last_transition_time.as_ref().map(|time| time.0),
        reason: condition.reason.clone(),
        message: condition.message.clone(),
    }
}

/// Conditions that are about neither direction.
fn other(cluster: &ForeignCluster) -> Vec<State> {
    let all = cluster.status.iter().flat_map(|status| &status.peering_conditions);
    let kept = all.filter(|it| !matches!(it.type_, Part::OutgoingPeering | Part::IncomingPeering));
    kept.map(|it| State { part: Some(format!("{:?}", it.type_)), ..state(Some(it)) }).collect()
}

/// The steps of borrowing, where somebody wants to borrow.
fn steps(cluster: &ForeignCluster, papers: &Papers) -> Vec<StepView> {
    let status = cluster.peering_status(Part::OutgoingPeering);
    let pushed = id_of(cluster).is_some_and(|id| papers.offered_by(id).is_some());
    // Whether a cluster that was found is joined is a setting of the manager, which tells what came of it.
    let told = phases::condition(cluster, Part::AuthenticationStatus).map(|it| it.reason.as_str());
    let joined = cluster.wants_outgoing(told != Some(NOT_ASKED), |_| false);
    let wanted = joined || !matches!(status, Status::None | Status::Disconnecting);
    if !(wanted || pushed) || cluster.metadata.deletion_timestamp.is_some() {
        return Vec::new();
    }
    let found = phases::outgoing(cluster, papers);
    let done = found.done.into_iter().map(|(step, text)| StepView {
        name: step.name(),
        state: StepState::Done,
        text,
        since: None,
    });
    let waiting = found.waiting.into_iter().map(|it| StepView {
        name: it.step.name(),
        state: if it.kind == Kind::Refused { StepState::Refused } else { StepState::Waiting },
        text: it.why,
        since: it.since,
    });
    done.chain(waiting).collect()
}

/// What is not as it should be.
fn troubles(cluster: &ForeignCluster, outgoing: &Direction, incoming: &Direction) -> Vec<String> {
    let all = cluster.status.iter().flat_map(|status| &status.peering_conditions);
    let bad = all.filter(|it| phases::is_bad(it.status));
    let conditions = bad.map(|it| format!("{:?} is {:?}: {}", it.type_, it.status, phases::words(it)));
    let kept = [&outgoing.contract, &incoming.contract].into_iter().flatten();
    let contracts = kept.flat_map(|contract| {
        let broken = contract.broken().into_iter();
        broken.map(|(type_, message)| format!("contract {}: {type_} is False: {message}", contract.name))
    });
    conditions.chain(contracts).collect()
}

/// How it became known, in words.
pub(crate) fn found_text(label: &str) -> &'static str {
    match label {
        _ if label == DiscoveryType::Lan.as_label() => "on the local network",
        _ if label == DiscoveryType::Wan.as_label() => "by DNS",
        _ if label == DiscoveryType::IncomingPeering.as_label() => "it called us",
        _ => "by hand",
    }
}

#[cfg(test)]
mod tests;
