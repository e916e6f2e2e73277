//! From the object that the other side wrote to what can be reckoned with.

use jiff::Timestamp;
use liqo_api::ResourceOfferSpec;
use liqo_api::resource_offer::OfferedContract;
use liqo_api::sharing_policy as api;
use liqo_core::acceptance::Offered;
use liqo_core::canonical::Digest;
use liqo_core::contract::{Enforcement, MOST_RESOURCES, Renewal, ServiceLevel, check_amount};
use liqo_core::money::Prices;
use liqo_core::names::{ClusterId, PoolName};
use liqo_core::policy::Conditions;
use liqo_core::pools::{self, MOST_POOLS, Pool, Pools};
use liqo_core::{Resources, Span};

use super::{Problems, amounts, digest};

/// An offer that makes sense.
#[derive(Clone, Debug, PartialEq)]
pub struct Read {
    /// Who offers.
    pub provider: ClusterId,
    /// How much; more than zero of each.
    pub resources: Resources,
    /// The same by pool; nothing where the provider has none.
    pub pools: Pools,
    /// What it costs; `None` if it is free.
    pub prices: Option<Prices>,
    /// Until when the offer stands.
    pub valid_until: Option<Timestamp>,
    /// How long a contract lasts.
    pub duration: Span,
    /// For how long it goes on each time it ends.
    pub renewal: Option<Span>,
    /// Whether use beyond the agreed is refused or reported.
    pub enforcement: Enforcement,
    /// What else is promised.
    pub service_level: ServiceLevel,
    /// When a contract ends at the latest.
    pub ends_by: Option<Timestamp>,
    /// The provider's policy that it comes from.
    pub policy: Option<String>,
    /// Whether it is withdrawn.
    pub withdrawn: bool,
    /// What identifies it.
    pub digest: Digest,
    /// What was left out because it makes no sense, a sentence each.
    pub oddities: Vec<String>,
}

impl Read {
    /// Reads an offer, or says everything that is wrong with it.
    pub fn of(spec: &ResourceOfferSpec) -> Result<Self, Problems> {
        let mut problems = Problems::default();
        let provider = problems.keep("clusterId", spec.cluster_id.parse());
        let digest = problems.keep("spec", digest(spec));
        let (resources, oddities) = read_resources(spec);
        if resources.is_empty() {
            problems.add("resourceQuota", "nothing is offered");
        }
        let pools = read_pools(spec, &resources, &mut problems);
        let prices = read_prices(spec, &resources, &mut problems);
        let contract = read_contract(spec.contract.as_ref(), &mut problems);
        match (provider, digest, contract) {
            (Some(provider), Some(digest), Some(contract)) if problems.0.is_empty() => Ok(Self {
                provider,
                resources,
                pools,
                prices,
                valid_until: spec.valid_until.as_ref().map(|time| time.0),
                renewal: (contract.renewal == Renewal::Auto).then_some(contract.duration),
                duration: contract.duration,
                enforcement: contract.enforcement,
                service_level: contract.service_level,
                ends_by: spec.contract.as_ref().and_then(|it| it.ends_by.as_ref()).map(|time| time.0),
                policy: spec.policy.clone(),
                withdrawn: spec.withdrawal_timestamp.is_some(),
                digest,
                oddities,
            }),
            _ => Err(problems),
        }
    }

    /// What matters for accepting it: what would be taken of it by who wants at most `wanted`.
    pub fn offered<'a>(&'a self, taken: &'a Resources) -> Offered<'a> {
        Offered { resources: taken, prices: self.prices.as_ref(), valid_until: self.valid_until }
    }

    /// What is taken of it by who wants at most `wanted` of some resources.
    pub fn taken(&self, wanted: &Resources) -> Resources {
        let mut taken = self.resources.capped_by(wanted);
        taken.retain(|_, amount| amount.is_positive());
        taken
    }

    /// What of `taken` comes from which pool.
    pub fn pools_of(&self, taken: &Resources) -> Pools {
        if *taken == self.resources {
            return self.pools.clone();
        }
        let has = self.pools.iter().map(|(name, pool)| (name.clone(), pool.resources.clone())).collect();
        let parts = pools::split(taken, &has).into_iter().filter(|(_, resources)| !resources.is_empty());
        let labels =
            |name: &PoolName| self.pools.get(name).map(|pool| pool.labels.clone()).unwrap_or_default();
        parts.map(|(name, resources)| (name.clone(), Pool { resources, labels: labels(&name) })).collect()
    }

    /// From when to when a contract that is made now is valid, in whole seconds.
    pub fn validity(&self, now: Timestamp) -> (Timestamp, Timestamp) {
        let whole = |time: Timestamp| Timestamp::from_second(time.as_second()).unwrap_or(time);
        let begin = whole(now);
        (begin, whole(self.end_by(self.duration.after(begin))))
    }

    /// The end that a contract can have if it should have `end`.
    pub fn end_by(&self, end: Timestamp) -> Timestamp {
        self.ends_by.map_or(end, |ends| ends.min(end))
    }
}

/// The amounts that can be in a contract, and a sentence for each other one.
fn read_resources(spec: &ResourceOfferSpec) -> (Resources, Vec<String>) {
    let (mut resources, mut oddities) = amounts(&spec.resource_quota.hard);
    resources.retain(|_, amount| !amount.is_zero());
    let mut kept = 0;
    resources.retain(|name, amount| {
        let checked = match check_amount(name, amount) {
            Ok(()) if kept == MOST_RESOURCES => {
                Err(format!("is one too many, at most {MOST_RESOURCES} are allowed"))
            }
            checked => checked,
        };
        let fine = checked.is_ok();
        match checked {
            Ok(()) => kept += 1,
            Err(problem) => oddities.push(format!("{name}: {problem}")),
        }
        fine
    });
    (resources, oddities)
}

/// The pools, of the resources that are offered. Those that do not add up spoil the offer: nobody knows what is meant.
fn read_pools(spec: &ResourceOfferSpec, resources: &Resources, problems: &mut Problems) -> Pools {
    let mut read = Pools::new();
    for pool in &spec.pools {
        let Some(name) = problems.keep("pools", pool.name.parse::<PoolName>()) else { continue };
        let (mut amounts, _) = amounts(&pool.resources);
        amounts.retain(|name, amount| !amount.is_zero() && resources.get(name.as_str()).is_some());
        let pool = Pool { resources: amounts, labels: pool.labels.clone() };
        if pool.resources.is_empty() {
            continue;
        }
        if read.insert(name, pool).is_some() {
            problems.add("pools", "two of them have the same name");
        }
    }
    if read.len() > MOST_POOLS {
        problems.add("pools", format_args!("has {} entries, at most {MOST_POOLS} are allowed", read.len()));
    }
    if !spec.pools.is_empty() && pools::sum(&read) != *resources {
        problems.add("pools", "what they have does not add up to what is offered");
    }
    read
}

fn read_prices(spec: &ResourceOfferSpec, resources: &Resources, problems: &mut Problems) -> Option<Prices> {
    if spec.prices.is_empty() {
        return None;
    }
    let texts = spec.prices.iter().map(|(name, price)| (name, price.0.trim()));
    let per_unit = problems.keep("prices", Resources::parse(texts).into_result());
    let currency = match &spec.currency {
        Some(currency) => problems.keep("currency", currency.parse()),
        None => problems.keep("currency", Err("there are prices, and nothing says in which currency")),
    };
    let period = match &spec.price_period {
        Some(period) => problems.keep("pricePeriod", period.parse()),
        None => problems.keep("pricePeriod", Err("there are prices, and nothing says for how long")),
    };
    let prices = problems.keep("prices", Prices::new(currency?, period?, per_unit?))?;
    let prices = prices.only(|name| resources.get(name.as_str()).is_some());
    problems.keep("prices", prices.total(resources))?;
    let free = prices.iter().len() == 0;
    (!free).then_some(prices)
}

fn read_contract(contract: Option<&OfferedContract>, problems: &mut Problems) -> Option<Conditions> {
    let Some(contract) = contract else { return Some(Conditions::default()) };
    let duration = problems.keep("contract.duration", contract.duration.parse());
    let service_level =
        problems.keep("contract.serviceLevel", ServiceLevel::new(contract.service_level.clone()));
    Some(Conditions {
        duration: duration?,
        renewal: match contract.renewal {
            api::Renewal::Auto => Renewal::Auto,
            api::Renewal::None => Renewal::None,
        },
        enforcement: match contract.enforcement {
            api::Enforcement::Hard => Enforcement::Hard,
            api::Enforcement::Soft => Enforcement::Soft,
        },
        service_level: service_level?,
        ..Conditions::default()
    })
}
