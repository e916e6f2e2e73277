use liqo_api::contract::{Agreed, ContractPhase, ContractSpec, ContractStatus, Ended};
use liqo_api::resource_offer::{OfferedStorageClass, ResourceOfferSpec};
use liqo_core::Span;
use liqo_core::canonical::Digest;
use liqo_core::contract::{Clauses, Enforcement, Party, PublicKey, ServiceLevel};

use super::*;

fn terms(provider: &str, consumer: &str, cpu: &str, until: &str) -> Terms {
    let party = |id: &str, key| Party {
        id: id.parse().unwrap(),
        name: id.parse().unwrap(),
        key: PublicKey::new([key; 32]),
    };
    let clauses = Clauses {
        contract: "c-1".parse().unwrap(),
        sequence: 0,
        predecessor: None,
        provider: party(provider, 1),
        consumer: party(consumer, 2),
        resources: [("cpu".parse().unwrap(), cpu.parse().unwrap())].into_iter().collect(),
        pools: [].into(),
        prices: None,
        not_before: "2026-03-01T12:00:00Z".parse().unwrap(),
        not_after: until.parse().unwrap(),
        renewal: Some(Span::clamped(86_400)),
        enforcement: Enforcement::Hard,
        service_level: ServiceLevel::default(),
        offer: Digest::of("test", b"offer"),
    };
    Terms::new(clauses).unwrap()
}

fn contract(name: &str, phase: ContractPhase, terms: &Terms) -> Contract {
    let text = String::from_utf8(terms.canonical().to_vec()).unwrap();
    let agreed = Agreed {
        terms: text.clone(),
        consumer_signature: String::new(),
        provider_signature: String::new(),
        time: k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(terms.not_before),
    };
    let spec = ContractSpec {
        provider_id: terms.provider.id.to_string(),
        consumer_id: terms.consumer.id.to_string(),
        terms: text,
        ..ContractSpec::default()
    };
    let mut contract = Contract::new(name, spec);
    contract.status = Some(ContractStatus { phase, agreed: Some(agreed), ..ContractStatus::default() });
    contract
}

fn ended(mut contract: Contract) -> Contract {
    let time = k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(Timestamp::UNIX_EPOCH);
    contract.spec.ended = Some(Ended { time, reason: "Asked".into(), message: String::new() });
    contract
}

fn see(index: &mut Index, namespace: &str, contract: &Contract) {
    let key = Key::namespaced(namespace, &contract.name_any());
    match Deal::read(contract) {
        Some(deal) => liqo_kit::Index::apply(index, &key, deal),
        None => liqo_kit::Index::<Deal>::delete(index, &key),
    }
}

fn lent(index: &Index) -> Vec<(String, String, bool)> {
    let list = index.providers(&"south".parse().unwrap());
    let lent = list.values().filter_map(|it| it.lent.as_ref().map(|lent| (it.id.to_string(), lent)));
    lent.map(|(id, lent)| (id, lent.contract.clone(), lent.ending)).collect()
}

const LATE: &str = "2026-03-09T12:00:00Z";
const EARLY: &str = "2026-03-02T12:00:00Z";

#[test]
fn a_contract_lends_while_it_is_in_force_and_we_are_the_consumer() {
    let mut index = Index::default();
    let terms = terms("north", "south", "2", EARLY);
    for (phase, lends) in [
        (ContractPhase::Proposed, false),
        (ContractPhase::Active, true),
        (ContractPhase::Amending, true),
        (ContractPhase::Ended, false),
    ] {
        see(&mut index, "tenant", &contract("c-1", phase, &terms));
        assert_eq!(!lent(&index).is_empty(), lends, "{phase:?}");
    }
    see(
        &mut index,
        "tenant",
        &contract("c-2", ContractPhase::Active, &self::terms("south", "north", "2", EARLY)),
    );
    assert!(lent(&index).is_empty(), "what we lend is not lent to us");
}

#[test]
fn of_several_contracts_the_one_that_stays_longest_counts_and_one_that_we_ended_counts_last() {
    let mut index = Index::default();
    see(&mut index, "tenant", &contract("c-1", ContractPhase::Active, &terms("north", "south", "2", EARLY)));
    let longer = contract("c-2", ContractPhase::Active, &terms("north", "south", "4", LATE));
    see(&mut index, "tenant", &longer);
    assert_eq!(lent(&index), [("north".to_owned(), "c-2".to_owned(), false)]);
    see(&mut index, "tenant", &ended(longer));
    assert_eq!(lent(&index), [("north".to_owned(), "c-1".to_owned(), false)]);
}

#[test]
fn one_that_we_ended_is_told_as_ending() {
    let mut index = Index::default();
    let only = contract("c-1", ContractPhase::Active, &terms("north", "south", "2", EARLY));
    see(&mut index, "tenant", &ended(only));
    assert_eq!(lent(&index), [("north".to_owned(), "c-1".to_owned(), true)]);
}

#[test]
fn terms_about_others_than_the_object_names_count_for_nothing() {
    let mut forged = contract("c-1", ContractPhase::Active, &terms("north", "south", "2", EARLY));
    forged.spec.provider_id = "west".to_owned();
    assert_eq!(Deal::read(&forged), None);
}

#[test]
fn the_offer_of_the_same_namespace_tells_labels_and_storage_classes() {
    let mut index = Index::default();
    see(&mut index, "tenant", &contract("c-1", ContractPhase::Active, &terms("north", "south", "2", EARLY)));
    let class = |name: &str, default| OfferedStorageClass { storage_class_name: name.into(), default };
    for (namespace, region) in [("other", "moon"), ("tenant", "earth")] {
        let spec = ResourceOfferSpec {
            cluster_id: "north".to_owned(),
            labels: [("region".to_owned(), region.to_owned())].into(),
            storage_classes: vec![class("slow", false), class("fast", true)],
            ..ResourceOfferSpec::default()
        };
        let key = Key::namespaced(namespace, "north");
        liqo_kit::Index::apply(&mut index, &key, Extras::read(ResourceOffer::new("north", spec)));
    }
    let list = index.providers(&"south".parse().unwrap());
    let lent = list.values().next().unwrap().lent.clone().unwrap();
    assert_eq!(lent.labels["region"], "earth");
    assert_eq!(lent.storage_classes, ["fast", "slow"]);
}

#[test]
fn one_without_identity_is_listed_with_the_reason_why_it_cannot_be_used() {
    let mut index = Index::default();
    see(&mut index, "tenant", &contract("c-1", ContractPhase::Active, &terms("north", "south", "2", EARLY)));
    let list = index.providers(&"south".parse().unwrap());
    let north = list.values().next().unwrap();
    assert_eq!(north.link.as_ref().err().map(|why| &**why), Some("we have no identity there yet"));
    assert_eq!(&*north.local_namespace, "tenant");
}
