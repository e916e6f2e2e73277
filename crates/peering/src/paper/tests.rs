use std::sync::OnceLock;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use liqo_api::contract::{Agreed, ContractPhase, ContractStatus};
use liqo_api::{Contract, ContractSpec, ResourceOfferSpec};
use liqo_core::Resources;
use liqo_core::names::ContractId;
use liqo_identity::{Identity, Wanted};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::offer::{Read, texts};

fn now() -> Timestamp {
    "2026-03-01T12:00:00.7Z".parse().unwrap()
}

fn hours(hours: i64) -> Timestamp {
    Timestamp::from_second(now().as_second() + hours * 3600).unwrap()
}

fn list(text: &str) -> Resources {
    let entries = text.split(',').map(str::trim).filter(|entry| !entry.is_empty());
    Resources::parse(entries.map(|entry| entry.split_once('=').unwrap())).into_result().unwrap()
}

fn cluster(id: &str) -> Identity {
    let wanted = Wanted { id: Some(id.parse().unwrap()), name: Some(format!("{id}-name").parse().unwrap()) };
    Identity::generate(&wanted).unwrap()
}

macro_rules! clusters {
    ($($name:ident),*) => { $(
        fn $name() -> &'static Identity {
            static CLUSTER: OnceLock<Identity> = OnceLock::new();
            CLUSTER.get_or_init(|| cluster(stringify!($name)))
        }
    )* };
}

clusters!(north, south, stranger);

#[expect(clippy::needless_pass_by_value, reason = "json! makes values")]
fn offer(change: Value) -> Read {
    let mut spec = json!({
        "clusterId": "north",
        "resourceQuota": {"hard": {"cpu": "4", "memory": "8Gi", "pods": "50"}},
        "prices": {"cpu": "20m", "memory": "4m"}, "currency": "EUR", "pricePeriod": "Hourly",
        "contract": {"duration": "24h", "serviceLevel": {"availability": "99.9"}},
        "policy": "paid",
    });
    for (field, value) in change.as_object().unwrap() {
        spec[field] = value.clone();
    }
    let spec: ResourceOfferSpec = serde_json::from_value(spec).unwrap();
    Read::of(&spec).unwrap()
}

fn id() -> ContractId {
    "c-0123456789abcdef0123".parse().unwrap()
}

/// What `south` drafts of an offer when it takes this much.
struct Desk {
    offer: Read,
    taken: Resources,
}

impl Desk {
    fn new(change: Value, taken: &str) -> Self {
        let offer = offer(change);
        let taken = if taken.is_empty() { offer.resources.clone() } else { list(taken) };
        Self { offer, taken }
    }

    fn with<T>(&self, work: impl FnOnce(Draft<'_>) -> T) -> T {
        let (provider, consumer) = (party(north()).unwrap(), party(south()).unwrap());
        work(Draft { consumer: &consumer, provider: &provider, offer: &self.offer, taken: &self.taken })
    }

    fn proposal(&self) -> Terms {
        self.with(|draft| draft.proposal(id(), now())).unwrap()
    }

    fn amendment(&self, agreed: &Terms, renewed: bool, at: Timestamp) -> Option<Terms> {
        self.with(|draft| draft.amendment(agreed, renewed, at)).unwrap()
    }
}

/// A contract that both signed.
fn signed(terms: &Terms) -> Contract {
    let text = String::from_utf8(terms.canonical().to_vec()).unwrap();
    let mut contract = Contract::new(
        terms.contract.as_str(),
        ContractSpec {
            provider_id: "north".to_owned(),
            consumer_id: "south".to_owned(),
            terms: text.clone(),
            consumer_signature: sign(south(), terms),
            ended: None,
        },
    );
    contract.status = Some(ContractStatus {
        phase: ContractPhase::Active,
        agreed: Some(Agreed {
            terms: text,
            consumer_signature: sign(south(), terms),
            provider_signature: sign(north(), terms),
            time: Time(now()),
        }),
        digest: Some(terms.digest().to_string()),
        sequence: Some(terms.sequence),
        resources: texts(&terms.resources),
        valid_until: Some(Time(terms.not_after)),
        price: price(terms),
        conditions: Vec::new(),
    });
    contract
}

fn keys() -> Keys {
    Keys { provider: party(north()).unwrap().key, consumer: party(south()).unwrap().key }
}

#[test]
fn a_proposal_says_what_was_offered_and_taken() {
    let terms = Desk::new(json!({}), "cpu=2, pods=10").proposal();
    assert_eq!((terms.sequence, terms.predecessor), (0, None));
    assert_eq!(terms.resources, list("cpu=2, pods=10"));
    assert_eq!(terms.prices.as_ref().unwrap().iter().len(), 1, "no price for what is not taken");
    assert_eq!((terms.not_before, terms.not_after), (hours(0), hours(24)));
    assert_eq!(terms.renewal.map(liqo_core::Span::seconds), Some(86_400));
    assert_eq!(terms.service_level.iter().next(), Some(("availability", "99.9")));
    assert_eq!(price(&terms).as_deref(), Some("EUR 0.04 per hour"));
    let free = Desk::new(json!({"prices": {}}), "cpu=2").proposal();
    assert_eq!((free.prices.as_ref(), price(&free)), (None, None));
    let unpaid = Desk::new(json!({}), "pods=2").proposal();
    assert_eq!(unpaid.prices, None);
    let short =
        Desk::new(json!({"contract": {"duration": "24h", "endsBy": "2026-03-01T14:00:00Z"}}), "").proposal();
    assert_eq!(short.not_after, hours(2));
}

#[test]
fn names_of_contracts_are_legal_and_different() {
    let (one, two) = (new_contract_id().unwrap(), new_contract_id().unwrap());
    assert_ne!(one, two);
    assert!(one.as_str().starts_with("c-") && one.as_str().len() == 22, "{one}");
}

#[test]
fn an_amendment_follows_and_changes_what_changed() {
    let first = Desk::new(json!({}), "").proposal();
    let same = Desk::new(json!({}), "");
    assert_eq!(same.amendment(&first, false, hours(1)), None);

    let less = Desk::new(json!({"resourceQuota": {"hard": {"cpu": "2"}}}), "");
    let second = less.amendment(&first, false, hours(1)).unwrap();
    second.check_follows(&first).unwrap();
    assert_eq!(second.resources, list("cpu=2"));
    assert_eq!((second.not_before, second.not_after), (first.not_before, first.not_after));
    assert_eq!(less.amendment(&second, false, hours(2)), None);

    // Other storage classes are another offer, which is another agreement.
    let classes = Desk::new(json!({"storageClasses": [{"storageClassName": "fast", "default": true}]}), "");
    let third = classes.amendment(&first, false, hours(1)).unwrap();
    assert_eq!((third.resources == first.resources, third.offer == first.offer), (true, false));
}

#[test]
fn a_renewal_goes_on_from_now_for_as_long_as_the_offer_says() {
    let desk = Desk::new(json!({}), "");
    let first = desk.proposal();
    let renewed = desk.amendment(&first, true, hours(16)).unwrap();
    assert_eq!((renewed.not_before, renewed.not_after), (hours(16), hours(40)));
    renewed.check_follows(&first).unwrap();
    assert_eq!(desk.amendment(&renewed, true, hours(16)), None, "not twice at the same time");

    let ending = Desk::new(json!({"contract": {"duration": "24h", "endsBy": "2026-03-02T12:00:00Z"}}), "");
    let last = ending.proposal();
    assert_eq!(ending.amendment(&last, true, hours(16)), None, "what ends, ends");
    let sooner = Desk::new(json!({"contract": {"duration": "24h", "endsBy": "2026-03-01T20:00:00Z"}}), "");
    let cut = sooner.amendment(&first, false, hours(1)).unwrap();
    assert_eq!(cut.not_after, hours(8), "what ends sooner than agreed is agreed on anew");
    let over = Desk::new(json!({"contract": {"duration": "24h", "endsBy": "2026-03-01T12:30:00Z"}}), "");
    assert_eq!(over.amendment(&first, false, hours(1)), None, "nobody signs what is over");
}

#[test]
fn a_shorter_duration_shortens_what_was_agreed() {
    let first = Desk::new(json!({}), "").proposal();
    let shorter = Desk::new(json!({"contract": {"duration": "6h"}}), "");
    let second = shorter.amendment(&first, false, hours(1)).unwrap();
    assert_eq!((second.not_before, second.not_after), (hours(0), hours(6)));
}

#[test]
fn a_signature_is_that_of_one_key_under_one_text() {
    let terms = Desk::new(json!({}), "").proposal();
    let other = Desk::new(json!({}), "cpu=1").proposal();
    let signature = sign(south(), &terms);
    assert_eq!(signature.len(), "ed25519:".len() + 128);
    let key = party(south()).unwrap().key;
    assert!(is_signed(&key, &terms, &signature));
    assert!(!is_signed(&key, &other, &signature));
    assert!(!is_signed(&party(north()).unwrap().key, &terms, &signature));
    for wrong in [
        "",
        "ed25519:",
        &signature.to_uppercase(),
        signature.replace("ed25519:", "ED25519:").as_str(),
        &signature[8..],
        &format!("{signature}00"),
        &signature[..signature.len() - 2],
        &format!("{}é{}", &signature[..20], &signature[22..]),
    ] {
        assert!(!is_signed(&key, &terms, wrong), "{wrong}");
    }
}

#[test]
fn keys_are_read_in_the_forms_in_which_they_are_passed_on() {
    let pem = south().public_key().to_pem();
    let key = party(south()).unwrap().key;
    assert_eq!(key_from_text(&pem), Ok(key));
    assert_eq!(key_from_text(&format!("  {key}\n")), Ok(key));
    let base64: String = pem.lines().filter(|line| !line.starts_with('-')).collect();
    assert_eq!(key_from_spki(&base64), Ok(key));
    let private = south().key.to_pem().unwrap();
    for wrong in ["", "ed25519:00", &private, &base64, &"x".repeat(1 << 20), "ssh-ed25519 AAAA"] {
        assert_eq!(key_from_text(wrong), Err(NoKey), "{wrong:.40}");
    }
    assert_eq!(key_from_spki(&pem), Err(NoKey));
}

fn problems(contract: &Contract, keys: &Keys) -> Vec<String> {
    let found = verify(contract, keys);
    assert_eq!(found.is_valid(), found.checks.iter().all(|check| check.problem.is_none()));
    let broken = found.checks.into_iter().filter(|check| check.problem.is_some());
    broken.map(|check| check.what).collect()
}

#[test]
fn what_both_signed_holds() {
    let first = Desk::new(json!({}), "").proposal();
    let contract = signed(&first);
    assert_eq!(problems(&contract, &keys()), Vec::<String>::new());
    assert!(verify(&contract, &keys()).is_valid());

    let less = Desk::new(json!({}), "cpu=1");
    let second = less.amendment(&first, false, hours(1)).unwrap();
    let mut amending = signed(&first);
    amending.spec.terms = String::from_utf8(second.canonical().to_vec()).unwrap();
    amending.spec.consumer_signature = sign(south(), &second);
    assert!(verify(&amending, &keys()).is_valid(), "an amendment under way spoils nothing");
    amending.spec.consumer_signature = sign(stranger(), &second);
    assert_eq!(problems(&amending, &keys()), ["the consumer signed what it proposes"]);
}

/// What somebody changed, and what is noticed.
#[test]
fn whatever_is_changed_is_noticed() {
    let terms = Desk::new(json!({}), "").proposal();
    let more = Desk::new(json!({}), "cpu=3").proposal();
    let text = |terms: &Terms| String::from_utf8(terms.canonical().to_vec()).unwrap();
    type Change<'a> = Box<dyn Fn(&mut Contract, &mut ContractStatus, &mut Agreed) + 'a>;
    let cases: Vec<(&str, Change<'_>)> = vec![
        ("the terms are in canonical form", Box::new(|_, _, agreed| agreed.terms.push(' '))),
        (
            "the terms are in canonical form",
            Box::new(|_, _, agreed| {
                agreed.terms = agreed.terms.replace("\"cpu\":\"4\"", "\"cpu\":\"4000m\"");
            }),
        ),
        ("the consumer signed these terms", Box::new(|_, _, agreed| agreed.terms = text(&more))),
        (
            "the provider signed these terms",
            Box::new(|_, _, agreed| agreed.provider_signature = agreed.consumer_signature.clone()),
        ),
        (
            "the provider signed these terms",
            Box::new(|_, _, agreed| agreed.provider_signature = sign(stranger(), &terms)),
        ),
        (
            "the consumer signed these terms",
            Box::new(|_, _, agreed| agreed.consumer_signature = sign(south(), &more)),
        ),
        (
            "the terms are those of this contract",
            Box::new(|it, _, _| it.metadata.name = Some("c-other".to_owned())),
        ),
        (
            "the provider is the one that the contract names",
            Box::new(|it, _, _| it.spec.provider_id = "west".to_owned()),
        ),
        (
            "the consumer is the one that the contract names",
            Box::new(|it, _, _| it.spec.consumer_id = "west".to_owned()),
        ),
        (
            "what stands beside the terms says the same",
            Box::new(|_, status, _| status.resources = texts(&list("cpu=1"))),
        ),
        (
            "what stands beside the terms says the same",
            Box::new(|_, status, _| status.price = Some("EUR 1".to_owned())),
        ),
        ("what stands beside the terms says the same", Box::new(|_, status, _| status.sequence = Some(7))),
        (
            "what stands beside the terms says the same",
            Box::new(|_, status, _| status.valid_until = Some(Time(hours(99)))),
        ),
        (
            "what stands beside the terms says the same",
            Box::new(|_, status, _| status.digest = Some(more.digest().to_string())),
        ),
        ("the consumer signed what it proposes", Box::new(|it, _, _| it.spec.terms = "{}".to_owned())),
    ];
    for (expected, change) in cases {
        let mut contract = signed(&terms);
        let mut status = contract.status.take().unwrap();
        let mut agreed = status.agreed.take().unwrap();
        change(&mut contract, &mut status, &mut agreed);
        status.agreed = Some(agreed);
        contract.status = Some(status);
        let found = problems(&contract, &keys());
        assert!(found.iter().any(|what| what == expected), "{expected}: {found:?}");
    }
}

#[test]
fn other_keys_and_missing_signatures_are_told() {
    let terms = Desk::new(json!({}), "").proposal();
    let contract = signed(&terms);
    let swapped = Keys { provider: keys().consumer, consumer: keys().provider };
    let found = problems(&contract, &swapped);
    assert_eq!(found.len(), 4, "{found:?}");
    let other = Keys { provider: party(stranger()).unwrap().key, ..keys() };
    assert_eq!(
        problems(&contract, &other),
        ["the provider's key is the given one", "the provider signed these terms"]
    );
    let mut proposed = signed(&terms);
    proposed.status.as_mut().unwrap().agreed = None;
    assert_eq!(problems(&proposed, &keys()), ["signed by both"]);
    proposed.status = None;
    assert_eq!(problems(&proposed, &keys()), ["signed by both"]);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_single_character_can_be_changed_unnoticed(place in 0_usize..2000, new in any::<char>(), field in 0_u8..3) {
        let mut contract = signed(&Desk::new(json!({}), "").proposal());
        let agreed = contract.status.as_mut().unwrap().agreed.as_mut().unwrap();
        let text = match field {
            0 => &mut agreed.terms,
            1 => &mut agreed.consumer_signature,
            _ => &mut agreed.provider_signature,
        };
        let mut characters: Vec<char> = text.chars().collect();
        let place = place % characters.len();
        prop_assume!(characters[place] != new);
        characters[place] = new;
        *text = characters.into_iter().collect();
        prop_assert!(!verify(&contract, &keys()).is_valid());
    }
}
