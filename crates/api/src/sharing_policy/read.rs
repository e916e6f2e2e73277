//! From the object to what policies are evaluated with.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, LabelSelectorRequirement};
use liqo_core::policy::spec;
use liqo_core::selector::{RequirementSpec, SelectorSpec};

use super::{
    Approval, Enforcement, PodSecurity, PolicyAction, PolicyContract, PolicyPeers, PolicyPool,
    PolicyWorkloads, Quantity, Renewal, ResourceShare, Rounding, Share, SharingPolicySpec, TimeWindow,
    UnitPrices,
};

impl From<&SharingPolicySpec> for spec::Spec {
    fn from(policy: &SharingPolicySpec) -> Self {
        let word = |word: &str| Some(word.to_owned());
        Self {
            peers: peers(&policy.peers),
            action: word(match policy.action {
                PolicyAction::Allow => "Allow",
                PolicyAction::Deny => "Deny",
            }),
            approval: word(match policy.approval {
                Approval::Automatic => "Automatic",
                Approval::Required => "Required",
            }),
            resources: policy.resources.clone(),
            node_selector: selector(&policy.node_selector),
            pools: policy.pools.iter().map(pool).collect(),
            share: share(&policy.share),
            shares: policy.shares.iter().map(|(name, share)| (name.clone(), resource_share(share))).collect(),
            storage_classes: policy.storage_classes.clone(),
            default_storage_class: policy.default_storage_class.clone(),
            services: policy.services.clone(),
            images: policy.images.clone(),
            prices: policy.prices.as_ref().map(prices),
            windows: policy.windows.iter().map(window).collect(),
            not_before: policy.not_before.as_ref().map(|time| time.0.to_string()),
            not_after: policy.not_after.as_ref().map(|time| time.0.to_string()),
            enforcement: word(match policy.enforcement {
                Enforcement::Hard => "Hard",
                Enforcement::Soft => "Soft",
            }),
            contract: contract(&policy.contract),
            workloads: workloads(&policy.workloads),
        }
    }
}

fn amount(quantity: &Quantity) -> spec::Amount {
    spec::Amount(quantity.0.clone())
}

fn requirements(requirements: &[LabelSelectorRequirement]) -> Vec<RequirementSpec> {
    let requirement = |requirement: &LabelSelectorRequirement| RequirementSpec {
        key: requirement.key.clone(),
        operator: requirement.operator.clone(),
        values: requirement.values.clone().unwrap_or_default(),
    };
    requirements.iter().map(requirement).collect()
}

fn selector(selector: &LabelSelector) -> SelectorSpec {
    SelectorSpec {
        match_labels: selector.match_labels.clone().unwrap_or_default(),
        match_expressions: requirements(selector.match_expressions.as_deref().unwrap_or_default()),
    }
}

fn pool(pool: &PolicyPool) -> spec::PoolSpec {
    spec::PoolSpec {
        name: pool.name.clone(),
        node_selector: selector(&pool.node_selector),
        labels: pool.labels.clone(),
    }
}

fn peers(peers: &PolicyPeers) -> spec::PeersSpec {
    spec::PeersSpec {
        cluster_ids: peers.cluster_ids.clone(),
        match_labels: peers.match_labels.clone(),
        match_expressions: requirements(&peers.match_expressions),
    }
}

fn rounding(rounding: Rounding) -> String {
    let word = match rounding {
        Rounding::Down => "Down",
        Rounding::Up => "Up",
        Rounding::Nearest => "Nearest",
    };
    word.to_owned()
}

fn share(share: &Share) -> spec::ShareSpec {
    spec::ShareSpec {
        percentage: share.percentage.map(i64::from),
        overcommit: share.overcommit.as_ref().map(amount),
        rounding: share.rounding.map(rounding),
        per_peer_percentage: share.per_peer_percentage.map(i64::from),
    }
}

fn resource_share(share: &ResourceShare) -> spec::ResourceShareSpec {
    spec::ResourceShareSpec {
        percentage: share.percentage.map(i64::from),
        overcommit: share.overcommit.as_ref().map(amount),
        rounding: share.rounding.map(rounding),
        per_peer_percentage: share.per_peer_percentage.map(i64::from),
        cap: share.cap.as_ref().map(amount),
        per_peer_cap: share.per_peer_cap.as_ref().map(amount),
        reserve: share.reserve.as_ref().map(amount),
        autoscaled: share.autoscaled.as_ref().map(amount),
    }
}

fn prices(prices: &UnitPrices) -> spec::PricesSpec {
    spec::PricesSpec {
        currency: prices.currency.clone(),
        period: prices.period.clone(),
        per_unit: prices.per_unit.iter().map(|(name, price)| (name.clone(), amount(price))).collect(),
    }
}

fn window(window: &TimeWindow) -> spec::WindowSpec {
    spec::WindowSpec {
        days: window.days.clone(),
        from: window.from.clone(),
        to: window.to.clone(),
        time_zone: window.time_zone.clone(),
    }
}

fn contract(contract: &PolicyContract) -> spec::ContractSpec {
    let renewal = |renewal: Renewal| match renewal {
        Renewal::Auto => "Auto".to_owned(),
        Renewal::None => "None".to_owned(),
    };
    spec::ContractSpec {
        offer_validity: contract.offer_validity.clone(),
        duration: contract.duration.clone(),
        renewal: contract.renewal.map(renewal),
        service_level: contract.service_level.clone(),
    }
}

fn workloads(workloads: &PolicyWorkloads) -> spec::WorkloadsSpec {
    let level = |level: PodSecurity| match level {
        PodSecurity::Privileged => "Privileged".to_owned(),
        PodSecurity::Baseline => "Baseline".to_owned(),
        PodSecurity::Restricted => "Restricted".to_owned(),
    };
    spec::WorkloadsSpec {
        pod_security: workloads.pod_security.map(level),
        runtime_class: workloads.runtime_class.clone(),
        max_priority: workloads.max_priority.map(i64::from),
        annotations: workloads.annotations.clone(),
    }
}
