//! The list of policies.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use kube::api::ListParams;
use kube::{Api, ResourceExt};
use liqo_api::SharingPolicy;
use liqo_api::sharing_policy::{PolicyAction, PolicyPeers, VALID};
use liqo_core::policy::{Policy, Spec};
use serde::Serialize;

use crate::access::Connection;
use crate::peering::amounts;
use crate::table::Table;

/// A policy.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct PolicyView {
    pub(super) name: String,
    pub(super) action: String,
    pub(super) approval: String,
    /// Whom it is about.
    pub(super) whom: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) percentage: Option<u8>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) price: Option<String>,
    /// Whom it is applied to now.
    pub(super) peers: Vec<String>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) sold: BTreeMap<String, Quantity>,
    pub(super) valid: bool,
    /// What is wrong with it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) problem: Option<String>,
}

pub(super) async fn read(connection: &Connection) -> Result<Vec<PolicyView>> {
    let api: Api<SharingPolicy> = Api::all(connection.client.clone());
    let found = api.list(&ListParams::default()).await;
    let found =
        found.map_err(|error| connection.target.explain(&error)).context("cannot list the policies")?;
    Ok(found.items.iter().map(view).collect())
}

pub(super) fn view(policy: &SharingPolicy) -> PolicyView {
    let (spec, status) = (&policy.spec, policy.status.clone().unwrap_or_default());
    let noted = status.conditions.iter().find(|it| it.type_ == VALID && it.status == "False");
    // The manager may not have looked at it yet.
    let problem =
        Policy::parse(policy.name_any(), &Spec::from(spec)).err().map(|problems| problems.to_string());
    let problem = problem.or_else(|| noted.map(|it| it.message.clone()));
    let price = spec
        .prices
        .as_ref()
        .map(|prices| format!("{} {}: {}", prices.currency, prices.period, amounts(&prices.per_unit)));
    PolicyView {
        name: policy.name_any(),
        action: format!("{:?}", spec.action),
        approval: format!("{:?}", spec.approval),
        whom: whom(&spec.peers),
        percentage: spec.share.percentage.filter(|_| spec.action == PolicyAction::Allow),
        price,
        peers: status.peers,
        sold: status.sold,
        valid: problem.is_none(),
        problem,
    }
}

fn whom(peers: &PolicyPeers) -> String {
    let ids = (!peers.cluster_ids.is_empty()).then(|| peers.cluster_ids.join(" or "));
    let labels = peers.match_labels.iter().map(|(key, value)| format!("{key}={value}"));
    let further = peers.match_expressions.iter().map(|it| {
        let values = it.values.clone().unwrap_or_default().join(",");
        format!("{} {} {values}", it.key, it.operator).trim_end().to_owned()
    });
    let all: Vec<String> = ids.into_iter().chain(labels).chain(further).collect();
    if all.is_empty() { "any".to_owned() } else { all.join(" and ") }
}

pub(super) fn table(views: &[PolicyView], wide: bool) -> String {
    let headings = [
        "NAME",
        "ACTION",
        "WHOM",
        "PERCENTAGE",
        "PRICE",
        "APPLIED TO",
        "VALID",
        "APPROVAL",
        "SOLD",
        "PROBLEM",
    ];
    let columns = if wide { headings.len() } else { 7 };
    let mut table = Table::of(&headings[..columns]);
    let none = || "-".to_owned();
    for view in views {
        let mut cells = vec![
            view.name.clone(),
            view.action.clone(),
            view.whom.clone(),
            view.percentage.map_or_else(none, |percentage| percentage.to_string()),
            view.price.clone().unwrap_or_else(|| "free".to_owned()),
            if view.peers.is_empty() { none() } else { view.peers.join(",") },
            if view.valid { "yes" } else { "no" }.to_owned(),
            view.approval.clone(),
            if view.sold.is_empty() { none() } else { amounts(&view.sold) },
            view.problem.clone().unwrap_or_else(none),
        ];
        cells.truncate(columns);
        table.push(cells);
    }
    table.to_string()
}
