//! Between clauses and the fields of the canonical form.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::str::FromStr;

use jiff::Timestamp;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::{Clauses, InvalidTerms, MOST_RESOURCES, Party};
use crate::contract::{Enforcement, ServiceLevel};
use crate::money::{Period, Prices};
use crate::names::PoolName;
use crate::pools::Pool;
use crate::quantity::{Format, Quantity};
use crate::resources::{ResourceName, Resources};
use crate::span::Span;

/// The version that is written and read.
pub(super) const VERSION: u64 = 1;

/// The document that clauses are written as; its order does not matter.
pub(super) fn document(clauses: &Clauses) -> Value {
    let mut document = json!({
        "version": VERSION,
        "contract": clauses.contract.as_str(),
        "sequence": clauses.sequence,
        "provider": party(&clauses.provider),
        "consumer": party(&clauses.consumer),
        "resources": amounts(&clauses.resources),
        "notBefore": clauses.not_before.to_string(),
        "notAfter": clauses.not_after.to_string(),
        "enforcement": match clauses.enforcement {
            Enforcement::Hard => "hard",
            Enforcement::Soft => "soft",
        },
        "offer": clauses.offer.to_string(),
    });
    let promises: Map<String, Value> =
        clauses.service_level.iter().map(|(name, text)| (name.to_owned(), text.into())).collect();
    let pools: Map<String, Value> =
        clauses.pools.iter().map(|(name, shared)| (name.to_string(), pool(shared))).collect();
    let optional = [
        ("predecessor", clauses.predecessor.map(|digest| digest.to_string().into())),
        ("pools", (!pools.is_empty()).then_some(Value::Object(pools))),
        ("prices", clauses.prices.as_ref().map(prices)),
        ("renewal", clauses.renewal.map(|span| span.seconds().into())),
        ("serviceLevel", (!promises.is_empty()).then_some(Value::Object(promises))),
    ];
    if let Some(fields) = document.as_object_mut() {
        fields.extend(optional.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))));
    }
    document
}

fn amounts(resources: &Resources) -> Map<String, Value> {
    let amount = |name: &ResourceName, amount: Quantity| amount.with_format(name.format()).to_string();
    resources.iter().map(|(name, it)| (name.to_string(), amount(name, it).into())).collect()
}

fn pool(pool: &Pool) -> Value {
    let mut document = json!({ "resources": amounts(&pool.resources) });
    if let Some(fields) = document.as_object_mut().filter(|_| !pool.labels.is_empty()) {
        fields.insert("labels".to_owned(), json!(pool.labels));
    }
    document
}

fn party(party: &Party) -> Value {
    json!({ "id": party.id.as_str(), "name": party.name.as_str(), "publicKey": party.key.to_string() })
}

fn prices(prices: &Prices) -> Value {
    let price = |price: Quantity| Value::from(price.with_format(Format::DecimalSi).to_string());
    let per_unit: Map<String, Value> =
        prices.iter().map(|(name, amount)| (name.to_string(), price(amount))).collect();
    json!({ "currency": prices.currency().as_str(), "period": prices.period().seconds(), "perUnit": per_unit })
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct TermsText {
    #[serde(rename = "version")]
    _version: u64,
    contract: String,
    sequence: u64,
    predecessor: Option<String>,
    provider: PartyText,
    consumer: PartyText,
    resources: BTreeMap<String, String>,
    #[serde(default)]
    pools: BTreeMap<String, PoolText>,
    prices: Option<PricesText>,
    not_before: String,
    not_after: String,
    renewal: Option<u64>,
    enforcement: String,
    #[serde(default)]
    service_level: BTreeMap<String, String>,
    offer: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct PoolText {
    resources: BTreeMap<String, String>,
    #[serde(default)]
    labels: BTreeMap<String, String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct PartyText {
    id: String,
    name: String,
    public_key: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct PricesText {
    currency: String,
    period: u64,
    per_unit: BTreeMap<String, String>,
}

/// The clauses that a document says.
pub(super) fn clauses(document: Value) -> Result<Clauses, InvalidTerms> {
    // Before anything else, as a later version may have any other fields.
    let version = document.get("version").and_then(Value::as_u64);
    if let Some(other) = version.filter(|version| *version != VERSION) {
        return Err(InvalidTerms::Version(other));
    }
    let text: TermsText =
        serde_json::from_value(document).map_err(|error| InvalidTerms::field("terms", error))?;
    let predecessor = text.predecessor.map(|digest| read("predecessor", &digest)).transpose()?;
    let renewal = text.renewal.map(|seconds| {
        Span::from_seconds(seconds)
            .ok_or_else(|| InvalidTerms::field("renewal", "must be more than 0 and at most 100 years"))
    });
    Ok(Clauses {
        contract: read("contract", &text.contract)?,
        sequence: text.sequence,
        predecessor,
        provider: read_party("provider", &text.provider)?,
        consumer: read_party("consumer", &text.consumer)?,
        resources: read_amounts("resources", &text.resources)?,
        pools: text.pools.into_iter().map(read_pool).collect::<Result<_, _>>()?,
        prices: text.prices.as_ref().map(read_prices).transpose()?,
        not_before: read::<Timestamp>("notBefore", &text.not_before)?,
        not_after: read::<Timestamp>("notAfter", &text.not_after)?,
        renewal: renewal.transpose()?,
        enforcement: match text.enforcement.as_str() {
            "hard" => Enforcement::Hard,
            "soft" => Enforcement::Soft,
            _ => return Err(InvalidTerms::field("enforcement", "must be hard or soft")),
        },
        service_level: ServiceLevel::new(text.service_level)
            .map_err(|problem| InvalidTerms::field("serviceLevel", problem))?,
        offer: read("offer", &text.offer)?,
    })
}

fn read<T: FromStr<Err: Display>>(field: &str, text: &str) -> Result<T, InvalidTerms> {
    text.parse().map_err(|problem| InvalidTerms::field(field, problem))
}

fn read_party(role: &str, party: &PartyText) -> Result<Party, InvalidTerms> {
    Ok(Party {
        id: read(&format!("{role}.id"), &party.id)?,
        name: read(&format!("{role}.name"), &party.name)?,
        key: read(&format!("{role}.publicKey"), &party.public_key)?,
    })
}

fn read_pool((name, pool): (String, PoolText)) -> Result<(PoolName, Pool), InvalidTerms> {
    let name: PoolName = read("pools", &name)?;
    let resources = read_amounts(&format!("pools[{name}].resources"), &pool.resources)?;
    Ok((name, Pool { resources, labels: pool.labels }))
}

fn read_amounts(field: &str, amounts: &BTreeMap<String, String>) -> Result<Resources, InvalidTerms> {
    if amounts.len() > MOST_RESOURCES {
        let problem = format!("has {} entries, at most {MOST_RESOURCES} are allowed", amounts.len());
        return Err(InvalidTerms::field(field, problem));
    }
    let amounts = Resources::parse(amounts.iter()).into_result();
    amounts.map_err(|problems| InvalidTerms::field(field, problems))
}

fn read_prices(text: &PricesText) -> Result<Prices, InvalidTerms> {
    let period = Period::from_seconds(text.period).ok_or_else(|| {
        InvalidTerms::field("prices.period", "must be more than 0 seconds and at most 100 years")
    })?;
    let per_unit: Vec<(ResourceName, Quantity)> =
        read_amounts("prices.perUnit", &text.per_unit)?.into_iter().collect();
    let currency = read("prices.currency", &text.currency)?;
    Prices::new(currency, period, per_unit).map_err(|problem| InvalidTerms::field("prices", problem))
}
