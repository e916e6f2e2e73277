//! From what a person wrote to a policy, with everything that is wrong with it.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use jiff::Timestamp;

use super::nodes::MOST_TERMS;
use super::spec::{
    Amount, ContractSpec, PeersSpec, PoolSpec, PricesSpec, ResourceShareSpec, ShareSpec, Spec, WorkloadsSpec,
};
use super::{Action, Conditions, Extras, Peers, Percent, Policy, Share, SharedPool, Sharing, Window};
use crate::contract::{Enforcement, Renewal, ServiceLevel};
use crate::field::{FieldProblem, FieldProblems, Problems};
use crate::money::Prices;
use crate::names::{ClusterId, PoolName};
use crate::pattern::Patterns;
use crate::pools::{MOST_LABELS, MOST_POOLS};
use crate::quantity::{Excerpt, Quantity, Ratio, Rounding};
use crate::resources::ResourceName;
use crate::selector::{Selector, SelectorSpec, read_labels, shown};
use crate::span::Span;

const MOST_CLUSTERS: usize = 4096;
const MOST_SHARES: usize = 64;
const MOST_WINDOWS: usize = 64;

/// Above are the priorities of Kubernetes' own pods.
const HIGHEST_PRIORITY: i64 = 1_000_000_000;

/// Selling a core more than a hundred times is a slip of the finger.
const MOST_OVERCOMMIT: i64 = 100;

impl Policy {
    /// Reads a policy. It is always one: with [problems](Policy::problems), it refuses whom it is about, and if it
    /// cannot be read whom it is about, everybody for whom there is no other.
    pub fn read(name: impl Into<String>, spec: &Spec) -> Self {
        let mut problems = Problems::default();
        let sharing = read_sharing(spec, &mut problems);
        let policy = Self {
            name: name.into(),
            peers: read_peers(&spec.peers, &mut problems),
            action: choice(
                spec.action.as_deref(),
                &[("Allow", Action::Allow), ("Deny", Action::Deny)],
                "spec.action",
                &mut problems,
            ),
            needs_approval: choice(
                spec.approval.as_deref(),
                &[("Automatic", false), ("Required", true)],
                "spec.approval",
                &mut problems,
            ),
            sharing,
            extras: read_extras(spec, &mut problems),
            prices: spec.prices.as_ref().and_then(|prices| read_prices(prices, &mut problems)),
            windows: read_windows(spec, &mut problems),
            not_before: read_moment(spec.not_before.as_deref(), "spec.notBefore", &mut problems),
            not_after: read_moment(spec.not_after.as_deref(), "spec.notAfter", &mut problems),
            conditions: read_conditions(&spec.contract, spec.enforcement.as_deref(), &mut problems),
            kept_annotations: Patterns::read(
                &spec.workloads.annotations,
                "spec.workloads.annotations",
                &mut problems,
            ),
            problems: Vec::new(),
        };
        check_workloads(&spec.workloads, &mut problems);
        if let (Some(from), Some(to)) = (policy.not_before, policy.not_after)
            && from >= to
        {
            problems.add("spec.notAfter", "must be later than notBefore");
        }
        Self { problems: problems.into_vec(), ..policy }
    }

    /// A policy of which nothing could be read: it refuses everybody for whom there is no other.
    pub fn unreadable(name: impl Into<String>, problem: impl fmt::Display) -> Self {
        let problem = FieldProblem { path: "spec".to_owned(), message: problem.to_string() };
        Self { problems: vec![problem], ..Self::read(name, &Spec::default()) }
    }

    /// Reads a policy, or says everything that is wrong with it.
    pub fn parse(name: impl Into<String>, spec: &Spec) -> Result<Self, FieldProblems> {
        let policy = Self::read(name, spec);
        match FieldProblems::of(policy.problems.clone()) {
            None => Ok(policy),
            Some(problems) => Err(problems),
        }
    }
}

/// One of a few words; the first is the default.
fn choice<T: Copy>(text: Option<&str>, words: &[(&str, T); 2], path: &str, problems: &mut Problems) -> T {
    let found = text.map(|text| (text, words.iter().find(|(word, _)| *word == text)));
    match found {
        None => words[0].1,
        Some((_, Some((_, value)))) => *value,
        Some((text, None)) => {
            let message = format!("{} is not {} or {}", Excerpt::of(text), words[0].0, words[1].0);
            problems.add(path, message);
            words[0].1
        }
    }
}

fn read_peers(spec: &PeersSpec, problems: &mut Problems) -> Peers {
    let mut ids = BTreeSet::new();
    if problems.at_most("spec.peers.clusterIDs", spec.cluster_ids.len(), MOST_CLUSTERS) {
        for (index, text) in spec.cluster_ids.iter().enumerate() {
            ids.extend(problems.keep(&format!("spec.peers.clusterIDs[{index}]"), text.parse::<ClusterId>()));
        }
    }
    let labels = SelectorSpec {
        match_labels: spec.match_labels.clone(),
        match_expressions: spec.match_expressions.clone(),
    };
    Peers { ids, labels: Selector::read(&labels, "spec.peers", problems) }
}

fn read_sharing(spec: &Spec, problems: &mut Problems) -> Sharing {
    let names = match &spec.resources {
        None => Patterns::everything(),
        Some(names) if names.is_empty() => {
            problems.add("spec.resources", "shares nothing: name resources, or leave it out to share all");
            Patterns::nothing()
        }
        Some(names) => Patterns::read(names, "spec.resources", problems),
    };
    let every = read_share(&spec.share, Share::default(), "spec.share", problems);
    let mut particular = BTreeMap::new();
    if problems.at_most("spec.shares", spec.shares.len(), MOST_SHARES) {
        for (text, share) in &spec.shares {
            let path = format!("spec.shares[{}]", shown(text));
            let Some(name) = problems.keep(&path, text.parse::<ResourceName>()) else { continue };
            if !names.matches(text) && text != "pods" {
                problems.add(&path, "is not among spec.resources, so that it would have no effect");
            }
            particular.insert(name, read_resource_share(share, every, &path, problems));
        }
    }
    let nodes = Selector::read(&spec.node_selector, "spec.nodeSelector", problems);
    let sharing = Sharing { names, nodes, pools: read_pools(&spec.pools, problems), every, particular };
    check_pools(&sharing, problems);
    sharing
}

fn read_pools(pools: &[PoolSpec], problems: &mut Problems) -> Vec<SharedPool> {
    if !problems.at_most("spec.pools", pools.len(), MOST_POOLS) {
        return Vec::new();
    }
    let mut read: Vec<SharedPool> = Vec::new();
    for (index, pool) in pools.iter().enumerate() {
        let path = format!("spec.pools[{index}]");
        let nodes = Selector::read(&pool.node_selector, &format!("{path}.nodeSelector"), problems);
        let at = format!("{path}.labels");
        let few = problems.at_most(&at, pool.labels.len(), MOST_LABELS);
        let labels = if few { read_labels(&pool.labels, &at, problems) } else { BTreeMap::new() };
        let Some(name) = problems.keep(&format!("{path}.name"), pool.name.parse::<PoolName>()) else {
            continue;
        };
        if read.iter().any(|before| before.name == name) {
            problems.add(format!("{path}.name"), format_args!("there is another pool {name}"));
        }
        if let Some(all) = read.iter().find(|before| before.nodes.is_empty()) {
            let message =
                format!("has no nodes: all that are left belong to pool {}, which is before it", all.name);
            problems.add(&path, message);
        }
        read.push(SharedPool { name, nodes, labels });
    }
    read
}

/// What cannot be done by pools.
fn check_pools(sharing: &Sharing, problems: &mut Problems) {
    if sharing.pools.is_empty() {
        return;
    }
    for (name, _) in sharing.particular.iter().filter(|(_, share)| share.autoscaled.is_positive()) {
        let message = "nobody knows to which of spec.pools it would be added";
        problems.add(format!("spec.shares[{name}].autoscaled"), message);
    }
    let untold = (0..sharing.pools.len()).find(|index| sharing.terms_of(*index).is_none());
    if let Some(index) = untold {
        let message = format!(
            "its nodes are told apart from those of the pools before it by more than {MOST_TERMS} combinations of \
             requirements; use fewer for each pool"
        );
        problems.add(format!("spec.pools[{index}].nodeSelector"), message);
    }
}

fn read_share(spec: &ShareSpec, inherited: Share, path: &str, problems: &mut Problems) -> Share {
    let percent = |value: Option<i64>, field: &str, problems: &mut Problems| {
        let percent = value.map(|value| (value, Percent::new(value)));
        match percent {
            Some((value, None)) => {
                problems.add(format!("{path}.{field}"), format_args!("is {value}; must be 0 to 100"));
                None
            }
            other => other.and_then(|(_, percent)| percent),
        }
    };
    let percentage = percent(spec.percentage, "percentage", problems).or(inherited.percentage);
    let per_peer = percent(spec.per_peer_percentage, "perPeerPercentage", problems).or(inherited.per_peer);
    let overcommit = spec.overcommit.as_ref().and_then(|text| read_overcommit(text, path, problems));
    let rounding = spec.rounding.as_deref().and_then(|text| read_rounding(text, path, problems));
    Share {
        percentage,
        per_peer,
        overcommit: overcommit.unwrap_or(inherited.overcommit),
        rounding: rounding.unwrap_or(inherited.rounding),
        ..inherited
    }
}

fn read_resource_share(spec: &ResourceShareSpec, every: Share, path: &str, problems: &mut Problems) -> Share {
    let common = ShareSpec {
        percentage: spec.percentage,
        overcommit: spec.overcommit.clone(),
        rounding: spec.rounding.clone(),
        per_peer_percentage: spec.per_peer_percentage,
    };
    let share = read_share(&common, every, path, problems);
    let mut amount = |amount: &Option<Amount>, field: &str| {
        amount.as_ref().and_then(|text| read_amount(text, &format!("{path}.{field}"), problems))
    };
    let (cap, per_peer_cap) = (amount(&spec.cap, "cap"), amount(&spec.per_peer_cap, "perPeerCap"));
    let (reserve, autoscaled) = (amount(&spec.reserve, "reserve"), amount(&spec.autoscaled, "autoscaled"));
    // Who names a cap and nothing else means that amount, not a share of it.
    let all = (cap.is_some() && spec.percentage.is_none()).then_some(Percent::ALL);
    Share {
        percentage: all.or(share.percentage),
        cap,
        per_peer_cap,
        reserve: reserve.unwrap_or_default(),
        autoscaled: autoscaled.unwrap_or_default(),
        ..share
    }
}

fn read_amount(text: &Amount, path: &str, problems: &mut Problems) -> Option<Quantity> {
    let amount: Quantity = problems.keep(path, text.0.trim().parse())?;
    if amount.is_negative() {
        problems.add(path, format_args!("is {amount}; must not be negative"));
        return None;
    }
    Some(amount)
}

fn read_overcommit(text: &Amount, path: &str, problems: &mut Problems) -> Option<Ratio> {
    let path = format!("{path}.overcommit");
    let factor: Quantity = problems.keep(&path, text.0.trim().parse())?;
    let allowed = factor.is_positive() && factor <= Quantity::from_units(MOST_OVERCOMMIT, factor.format());
    let thousandths = u64::try_from(factor.nanos() / 1_000_000).ok();
    let ratio = match thousandths {
        Some(thousandths) if allowed && factor.nanos() % 1_000_000 == 0 => Ratio::new(thousandths, 1000),
        _ => None,
    };
    if ratio.is_none() {
        let message = format!(
            "is {}; must be more than 0 and at most {MOST_OVERCOMMIT}, with at most three decimals, such as 1.5",
            Excerpt::of(&text.0)
        );
        problems.add(path, message);
    }
    ratio
}

fn read_rounding(text: &str, path: &str, problems: &mut Problems) -> Option<Rounding> {
    let rounding = match text {
        "Down" => Some(Rounding::TowardZero),
        "Up" => Some(Rounding::AwayFromZero),
        "Nearest" => Some(Rounding::Nearest),
        _ => None,
    };
    if rounding.is_none() {
        problems.add(
            format!("{path}.rounding"),
            format_args!("{} is not Down, Up or Nearest", Excerpt::of(text)),
        );
    }
    rounding
}

fn read_extras(spec: &Spec, problems: &mut Problems) -> Extras {
    let storage_classes = match &spec.storage_classes {
        None => Patterns::everything(),
        Some(classes) => Patterns::read(classes, "spec.storageClasses", problems),
    };
    if let Some(class) = &spec.default_storage_class
        && !storage_classes.matches(class)
    {
        let message = format!("{} is not among spec.storageClasses", Excerpt::of(class));
        problems.add("spec.defaultStorageClass", message);
    }
    Extras {
        storage_classes,
        default_storage_class: spec.default_storage_class.clone(),
        services: Patterns::read(&spec.services, "spec.services", problems),
        images: Patterns::read(&spec.images, "spec.images", problems),
    }
}

fn read_prices(spec: &PricesSpec, problems: &mut Problems) -> Option<Prices> {
    let currency = problems.keep("spec.prices.currency", spec.currency.parse());
    let period = problems.keep("spec.prices.period", spec.period.parse());
    let mut per_unit = Vec::new();
    if problems.at_most("spec.prices.perUnit", spec.per_unit.len(), MOST_SHARES) {
        for (text, price) in &spec.per_unit {
            let path = format!("spec.prices.perUnit[{}]", shown(text));
            let name = problems.keep(&path, text.parse::<ResourceName>());
            let price = read_amount(price, &path, problems);
            per_unit.extend(name.zip(price));
        }
    }
    problems.keep("spec.prices", Prices::new(currency?, period?, per_unit))
}

fn read_windows(spec: &Spec, problems: &mut Problems) -> Vec<Window> {
    if !problems.at_most("spec.windows", spec.windows.len(), MOST_WINDOWS) {
        return Vec::new();
    }
    let windows = spec.windows.iter().enumerate();
    windows
        .filter_map(|(index, window)| Window::read(window, &format!("spec.windows[{index}]"), problems))
        .collect()
}

fn read_moment(text: Option<&str>, path: &str, problems: &mut Problems) -> Option<Timestamp> {
    let text = text?;
    let moment = text.parse::<Timestamp>();
    let message = || format!("{} is not a moment, such as 2026-12-31T23:00:00Z", Excerpt::of(text));
    problems.keep(path, moment.map_err(|_| message()))
}

fn read_conditions(spec: &ContractSpec, enforcement: Option<&str>, problems: &mut Problems) -> Conditions {
    let default = Conditions::default();
    let span = |text: &Option<String>, field: &str, default: Span, problems: &mut Problems| {
        let read =
            text.as_ref().and_then(|text| problems.keep(&format!("spec.contract.{field}"), text.parse()));
        read.unwrap_or(default)
    };
    Conditions {
        offer_validity: span(&spec.offer_validity, "offerValidity", default.offer_validity, problems),
        duration: span(&spec.duration, "duration", default.duration, problems),
        renewal: choice(
            spec.renewal.as_deref(),
            &[("Auto", Renewal::Auto), ("None", Renewal::None)],
            "spec.contract.renewal",
            problems,
        ),
        enforcement: choice(
            enforcement,
            &[("Hard", Enforcement::Hard), ("Soft", Enforcement::Soft)],
            "spec.enforcement",
            problems,
        ),
        service_level: problems
            .keep("spec.contract.serviceLevel", ServiceLevel::new(spec.service_level.clone()))
            .unwrap_or_default(),
    }
}

/// Whoever runs the pods reads this part; here it only has to make sense.
fn check_workloads(spec: &WorkloadsSpec, problems: &mut Problems) {
    if let Some(level) = &spec.pod_security
        && !["Privileged", "Baseline", "Restricted"].contains(&level.as_str())
    {
        let message = format!("{} is not Privileged, Baseline or Restricted", Excerpt::of(level));
        problems.add("spec.workloads.podSecurity", message);
    }
    if let Some(priority) = spec.max_priority
        && !(0..=HIGHEST_PRIORITY).contains(&priority)
    {
        let message = format!("is {priority}; must be 0 to {HIGHEST_PRIORITY}");
        problems.add("spec.workloads.maxPriority", message);
    }
}
