use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use liqo_api::Borrowing;
use liqo_core::Span;
use liqo_core::acceptance::{Decision, decide};
use liqo_core::capacity::{Capacity, Load, Node};
use liqo_core::ledger::Ledger;
use liqo_core::policy::{Evaluation, Offer, Peer, Percent, Policy, Spec, Verdict, evaluate};
use liqo_core::threshold::Difference;
use serde_json::{Value, json};

use super::*;
use crate::stock::{Goods, Image};

fn now() -> Timestamp {
    "2026-03-01T12:00:00.7Z".parse().unwrap()
}

fn later(seconds: i64) -> Timestamp {
    Timestamp::from_second(now().as_second() + seconds).unwrap()
}

fn list(text: &str) -> Resources {
    let entries = text.split(',').map(str::trim).filter(|entry| !entry.is_empty());
    Resources::parse(entries.map(|entry| entry.split_once('=').unwrap())).into_result().unwrap()
}

/// What a policy gives on one node.
fn offer(allocatable: &str, spec: &Value) -> Offer {
    let policy = Policy::read("paid", &serde_json::from_value::<Spec>(spec.clone()).unwrap());
    assert_eq!(policy.problems(), []);
    let mut capacity = Capacity::default();
    let node = Node {
        name: "n".to_owned(),
        allocatable: list(allocatable),
        ready: true,
        schedulable: true,
        ..Node::default()
    };
    capacity.insert(node, Load::default());
    let peer = Peer {
        id: "south".parse().unwrap(),
        labels: BTreeMap::new(),
        approved: false,
        wants: Resources::new(),
    };
    let Evaluation { verdict, .. } =
        evaluate(&[policy], Percent::ALL, &peer, &capacity, &Ledger::default(), now());
    match verdict {
        Verdict::Offer(offer) => *offer,
        other => panic!("{other:?}"),
    }
}

fn paid() -> Value {
    json!({
        "share": {"percentage": 50},
        "prices": {"currency": "EUR", "period": "Hourly", "perUnit": {"cpu": "0.02", "memory": "0.004"}},
        "contract": {"offerValidity": "10m", "duration": "7d", "serviceLevel": {"availability": "99.9"}},
        "notAfter": "2026-12-31T23:00:00.5Z",
    })
}

fn goods() -> Goods {
    Goods {
        storage_classes: vec![("fast".to_owned(), true), ("slow".to_owned(), false)],
        services: vec![("shop".to_owned(), "web".to_owned())],
        images: vec![Arc::new(Image { names: vec!["nginx:1".to_owned()], size: 7 })],
    }
}

fn make_at(allocatable: &str, spec: &Value, now: Timestamp) -> ResourceOfferSpec {
    let labels = [("liqo.io/provider".to_owned(), "north".to_owned())].into();
    let offer = offer(allocatable, spec);
    Making { provider: "north", offer: &offer, goods: &goods(), labels: &labels, now }.spec()
}

fn make(allocatable: &str, spec: &Value) -> ResourceOfferSpec {
    make_at(allocatable, spec, now())
}

/// As the other side gets it.
fn sent(spec: &ResourceOfferSpec) -> ResourceOfferSpec {
    serde_json::from_value(serde_json::to_value(spec).unwrap()).unwrap()
}

#[test]
fn an_offer_says_what_the_policy_gives_and_reads_back_the_same() {
    let spec = make("cpu=8, memory=16Gi, pods=110", &paid());
    assert_eq!(
        serde_json::to_value(&spec).unwrap(),
        json!({
            "clusterId": "north",
            "images": [{"names": ["nginx:1"], "sizeBytes": 7}],
            "resourceQuota": {"hard": {"cpu": "4", "memory": "8Gi", "pods": "55"}},
            "labels": {"liqo.io/provider": "north"},
            "prices": {"cpu": "20m", "memory": "4m"},
            "currency": "EUR",
            "pricePeriod": "Hourly",
            "validUntil": "2026-03-01T12:10:00Z",
            "largestPod": {"onOneNode": {"cpu": "4", "memory": "8Gi"}, "ofEach": {"cpu": "4", "memory": "8Gi"}},
            "services": [{"namespace": "shop", "name": "web"}],
            "contract": {
                "duration": "1w", "renewal": "Auto", "enforcement": "Hard", "serviceLevel": {"availability": "99.9"},
                "endsBy": "2026-12-31T23:00:00Z",
            },
            "policy": "paid",
            "storageClasses": [
                {"storageClassName": "fast", "default": true}, {"storageClassName": "slow", "default": false},
            ],
        })
    );
    assert_eq!(sent(&spec), spec, "nothing is lost on the way");
    let read = Read::of(&spec).unwrap();
    assert_eq!(read.resources, list("cpu=4, memory=8Gi, pods=55"));
    let total = read.prices.as_ref().unwrap().total(&read.resources).unwrap();
    assert_eq!(total.to_string(), "0.112 per hour");
    assert_eq!((read.duration.to_string(), read.renewal), ("1w".to_owned(), Some(read.duration)));
    assert_eq!((read.oddities.len(), read.withdrawn, read.policy.as_deref()), (0, false, Some("paid")));
    assert_eq!(read.end_by(later(60)), later(60));
    assert_eq!(read.taken(&list("cpu=1, memory=0")), list("cpu=1, pods=55"));
}

#[test]
fn the_digest_covers_what_is_agreed_on_and_nothing_else() {
    let spec = make("cpu=8, memory=16Gi", &paid());
    let of = |change: &dyn Fn(&mut ResourceOfferSpec)| {
        let mut other = spec.clone();
        change(&mut other);
        digest(&other).unwrap()
    };
    let same = digest(&spec).unwrap();
    assert_eq!(same, digest(&sent(&spec)).unwrap());
    assert_eq!(same, of(&|spec| spec.valid_until = None));
    assert_eq!(same, of(&|spec| spec.withdrawal_timestamp = Some(make::time(now()))));
    assert_eq!(same, of(&|spec| spec.largest_pod = None));
    assert_eq!(same, of(&|spec| spec.images.clear()));
    for change in [
        &(|spec: &mut ResourceOfferSpec| spec.cluster_id = "west".to_owned())
            as &dyn Fn(&mut ResourceOfferSpec),
        &|spec| drop(spec.resource_quota.hard.insert("cpu".to_owned(), Text("5".to_owned()))),
        &|spec| spec.labels.clear(),
        &|spec| drop(spec.prices.insert("cpu".to_owned(), Text("1".to_owned()))),
        &|spec| spec.currency = Some("USD".to_owned()),
        &|spec| spec.price_period = Some("Daily".to_owned()),
        &|spec| spec.services.clear(),
        &|spec| spec.contract = None,
        &|spec| spec.policy = None,
        &|spec| spec.storage_classes.clear(),
    ] {
        assert_ne!(same, of(change));
    }
}

fn percent(percent: i64) -> Percent {
    Percent::new(percent).unwrap()
}

fn planned(written: &ResourceOfferSpec, new: &ResourceOfferSpec, at: Timestamp) -> Plan {
    plan(Some(written), new, Span::clamped(600), percent(5), at)
}

#[test]
fn an_offer_is_written_when_there_is_none_and_left_alone_while_it_is_the_same() {
    let spec = make("cpu=8, memory=16Gi", &paid());
    assert!(matches!(plan(None, &spec, Span::clamped(600), percent(5), now()), Plan::Write { .. }));
    assert_eq!(planned(&sent(&spec), &spec, now()), Plan::Keep(later(300)));
    let again = make_at("cpu=8, memory=16Gi", &paid(), later(299));
    assert_eq!(planned(&spec, &again, later(299)), Plan::Keep(later(300)), "also after a restart");
}

#[test]
fn an_offer_that_soon_ends_is_told_again_with_the_same_amounts() {
    let spec = make("cpu=8, memory=16Gi", &paid());
    let new = make_at("cpu=8010m, memory=16Gi", &paid(), later(301));
    let Plan::Write { spec: written, differences } = planned(&spec, &new, later(301)) else {
        panic!("it must be written")
    };
    assert_eq!(differences, []);
    assert_eq!(written.valid_until, new.valid_until);
    assert_eq!(digest(&written), digest(&spec), "nobody has to accept it again");
    assert_eq!(written.resource_quota, spec.resource_quota);
}

#[test]
fn an_offer_whose_end_is_near_is_not_told_again_for_ever() {
    let until = json!({"notAfter": "2026-03-01T12:04:00Z"});
    let spec = make("cpu=8", &until);
    let new = make_at("cpu=8", &until, later(120));
    assert_eq!(spec.valid_until, new.valid_until);
    assert!(matches!(planned(&spec, &new, later(120)), Plan::Keep(_)));
}

#[test]
fn small_changes_are_kept_to_oneself_and_larger_ones_replace_the_whole_offer() {
    let spec = make("cpu=8, memory=16Gi", &paid());
    let small = make("cpu=8400m, memory=16Gi", &paid());
    assert_eq!(planned(&spec, &small, now()), Plan::Keep(later(300)));
    assert!(matches!(plan(Some(&spec), &small, Span::clamped(600), percent(0), now()), Plan::Write { .. }));
    let large = make("cpu=8402m, memory=15Gi", &paid());
    let Plan::Write { spec: written, differences } = planned(&spec, &large, now()) else {
        panic!("it must be written")
    };
    assert_eq!(*written, large);
    let told: Vec<String> = differences.iter().map(ToString::to_string).collect();
    assert_eq!(told, ["cpu 4 → 4201m", "memory 8Gi → 7680Mi", "largest pod"]);
}

#[test]
fn every_other_difference_is_told_and_what_only_informs_changes_no_amount() {
    let spec = make("cpu=8, memory=16Gi", &paid());
    let small = make("cpu=8100m, memory=16Gi", &paid());
    let changed = |change: &dyn Fn(&mut ResourceOfferSpec)| {
        let mut new = small.clone();
        change(&mut new);
        match planned(&spec, &new, now()) {
            Plan::Write { spec, differences } => (*spec, differences),
            Plan::Keep(_) => panic!("it must be written"),
        }
    };
    type Change = fn(&mut ResourceOfferSpec);
    let told: [(Change, Difference, bool); 8] = [
        (|it| it.prices.clear(), Difference::Prices, true),
        (|it| it.services.clear(), Difference::Extras, true),
        (|it| it.storage_classes.clear(), Difference::Extras, true),
        (|it| it.labels.clear(), Difference::Labels, true),
        (|it| it.policy = None, Difference::Policy, true),
        (|it| it.contract.as_mut().unwrap().duration = "2d".to_owned(), Difference::Conditions, true),
        (|it| it.images.clear(), Difference::Images, false),
        (|it| it.largest_pod = None, Difference::LargestPod, false),
    ];
    for (change, difference, replaces) in told {
        let (written, differences) = changed(&change);
        assert_eq!(differences, [difference]);
        assert_eq!(written.resource_quota == small.resource_quota, replaces);
        assert_eq!(digest(&written) == digest(&spec), !replaces);
    }
    let withdrawn = ResourceOfferSpec { withdrawal_timestamp: Some(make::time(now())), ..spec.clone() };
    let Plan::Write { spec: written, .. } = planned(&withdrawn, &spec, now()) else { panic!("made anew") };
    assert_eq!(*written, spec);
}

#[test]
fn pools_are_offered_read_back_and_shared_out() {
    let policy = json!({ "pools": [{ "name": "all", "labels": { "speed": "high" } }] });
    let spec = make("cpu=8, memory=16Gi, pods=110", &policy);
    let largest = json!({ "cpu": "8", "memory": "16Gi" });
    assert_eq!(
        serde_json::to_value(&spec.pools).unwrap(),
        json!([{
            "name": "all", "resources": { "cpu": "8", "memory": "16Gi", "pods": "110" }, "labels": { "speed": "high" },
            "largestPod": { "onOneNode": largest, "ofEach": largest },
        }])
    );
    assert_eq!(sent(&spec), spec, "nothing is lost on the way");
    let without = ResourceOfferSpec { pools: Vec::new(), ..spec.clone() };
    assert_ne!(digest(&spec), digest(&without), "what is offered by pool is part of the offer");
    let Plan::Write { differences, .. } = planned(&without, &spec, now()) else { panic!("it must be told") };
    assert_eq!(differences, [Difference::Pools]);

    // What fits into one pod informs and binds nobody, by pool as in all.
    let mut fuller = spec.clone();
    fuller.pools[0].largest_pod =
        Some(serde_json::from_value(json!({ "onOneNode": { "cpu": "1" } })).unwrap());
    assert_eq!(digest(&spec), digest(&fuller));
    let Plan::Write { spec: told, differences } = planned(&spec, &fuller, now()) else {
        panic!("it must be told")
    };
    assert_eq!((differences, &told.pools), (vec![Difference::LargestPod], &fuller.pools));

    let read = hostile(json!({
        "prices": {}, "resourceQuota": { "hard": { "cpu": "9", "memory": "4Gi" } },
        "pools": [{ "name": "a", "resources": { "cpu": "6", "memory": "4Gi" } }, { "name": "b", "resources": { "cpu": "3" } }],
    }));
    let read = read.unwrap();
    let of = |taken: &str| -> Vec<String> {
        let pools = read.pools_of(&list(taken));
        pools.iter().map(|(name, pool)| format!("{name}: {}", pool.resources)).collect()
    };
    assert_eq!(of("cpu=9, memory=4Gi"), ["a: cpu=6, memory=4Gi", "b: cpu=3"]);
    assert_eq!(of("cpu=3, memory=1Gi"), ["a: cpu=2, memory=1Gi", "b: cpu=1"]);
    assert_eq!(of("memory=1Gi"), ["a: memory=1Gi"]);
}

#[expect(clippy::needless_pass_by_value, reason = "json! makes values")]
fn hostile(change: Value) -> Result<Read, String> {
    let mut spec = serde_json::to_value(make("cpu=8, memory=16Gi", &paid())).unwrap();
    for (field, value) in change.as_object().unwrap() {
        spec[field] = value.clone();
    }
    Read::of(&serde_json::from_value(spec).unwrap()).map_err(|problems| problems.to_string())
}

#[test]
fn what_makes_no_sense_is_refused_in_words() {
    for (change, expected) in [
        (json!({"clusterId": "../../etc"}), "clusterId: \"../../etc\" is not a cluster ID"),
        (json!({"resourceQuota": {"hard": {}}}), "resourceQuota: nothing is offered"),
        (
            json!({"resourceQuota": {"hard": {"cpu": "-1", "memory": "0"}}}),
            "resourceQuota: nothing is offered",
        ),
        (json!({"prices": {"cpu": "-1"}}), "prices: the price of cpu is -1; it must not be negative"),
        (json!({"prices": {"cpu": "1e300"}}), "prices: the price of cpu is"),
        (json!({"prices": {"cpu": "free"}}), "prices: cannot read how much cpu there is"),
        (json!({"prices": {"c p u": "1"}}), "prices: \"c p u\" is not a resource name"),
        (json!({"currency": "euro"}), "currency: \"euro\" is not a currency"),
        (json!({"currency": null}), "currency: there are prices, and nothing says in which currency"),
        (json!({"pricePeriod": "sometimes"}), "pricePeriod: \"sometimes\" is not a length of time"),
        (json!({"pricePeriod": null}), "pricePeriod: there are prices, and nothing says for how long"),
        (json!({"contract": {"duration": "-1d"}}), "contract.duration: \"-1d\" is not a length of time"),
        (
            json!({"contract": {"duration": "1d", "serviceLevel": {"bad name": "x"}}}),
            "contract.serviceLevel: \"bad name\" is not a name",
        ),
        (
            json!({"contract": {"duration": "1d", "serviceLevel": {"a": "\u{1b}[31mred"}}}),
            "contract.serviceLevel: a has control characters",
        ),
        (
            json!({"pools": [{"name": "a", "resources": {"cpu": "1"}}]}),
            "pools: what they have does not add up",
        ),
        (json!({"pools": [{"name": "a"}]}), "pools: what they have does not add up"),
        (
            json!({"pools": [{"name": "../a", "resources": {"cpu": "1"}}]}),
            "pools: \"../a\" is not a pool name",
        ),
        (
            json!({"pools": [{"name": "a", "resources": {"cpu": "4"}}, {"name": "a", "resources": {"memory": "8Gi"}}]}),
            "pools: two of them have the same name",
        ),
    ] {
        let problem = hostile(change.clone()).unwrap_err();
        assert!(problem.contains(expected), "{change}: {problem}");
    }
    let both = hostile(json!({"currency": "€", "contract": {"duration": "x"}})).unwrap_err();
    assert!(both.contains("currency") && both.contains("duration"), "{both}");
}

#[test]
fn an_odd_resource_is_left_out_and_spoils_no_other() {
    let hard = json!({
        "cpu": "4", "memory": "-8Gi", "pods": "1e300", "nvidia.com/gpu": "1.5", "ephemeral-storage": "viel", "a/b/c": "1",
        "hugepages-2Mi": "0",
    });
    let read = hostile(json!({"resourceQuota": {"hard": hard}})).unwrap();
    assert_eq!(read.resources, list("cpu=4"));
    assert_eq!(read.oddities.len(), 5, "{:?}", read.oddities);
    assert_eq!(read.prices.unwrap().iter().len(), 1, "no price for what is not taken");
    let many: serde_json::Map<String, Value> =
        (0..100).map(|index| (format!("x/r{index:03}"), json!("1"))).collect();
    let read = hostile(json!({"resourceQuota": {"hard": many}})).unwrap();
    assert_eq!((read.resources.len(), read.oddities.len()), (64, 36));
}

#[test]
fn an_offer_without_terms_has_the_usual_ones() {
    let read = hostile(json!({"contract": null, "prices": {}})).unwrap();
    assert_eq!((read.duration.to_string().as_str(), read.prices), ("1d", None));
}

fn borrowing(value: Value) -> Borrowing {
    serde_json::from_value(value).unwrap()
}

#[test]
fn the_peers_wishes_come_before_the_general_ones_and_those_before_the_flag() {
    let general = borrowing(json!({
        "automatic": false, "wanted": {"cpu": "2"}, "currencies": ["EUR"],
        "maximumTotal": {"currency": "EUR", "period": "Daily", "amount": "5"},
    }));
    let of_peer = borrowing(json!({"wanted": {"cpu": "8", "memory": "1Gi"}, "minimum": {"cpu": "1"}}));
    let wants = Wants::read(&of_peer, &general, true).unwrap();
    assert_eq!((wants.wanted, wants.limits.at_least), (list("cpu=8, memory=1Gi"), list("cpu=1")));
    assert!(!wants.limits.automatic);
    assert_eq!(wants.limits.currencies.map(|currencies| currencies.len()), Some(1));
    assert_eq!(wants.limits.highest_total.unwrap().1.to_string(), "5 per day");
    let nothing = borrowing(json!({}));
    for automatic in [true, false] {
        assert_eq!(Wants::read(&nothing, &nothing, automatic).unwrap().limits.automatic, automatic);
    }
    let yes = borrowing(json!({"automatic": true}));
    assert!(Wants::read(&yes, &general, false).unwrap().limits.automatic);
}

#[test]
fn a_limit_that_cannot_be_read_accepts_nothing() {
    for (value, expected) in [
        (json!({"wanted": {"cpu": "-1"}}), "borrowing.wanted: there cannot be -1 of cpu"),
        (json!({"minimum": {"cpu": "some"}}), "borrowing.minimum: cannot read"),
        (json!({"currencies": ["EUR", "€"]}), "borrowing.currencies: \"€\" is not a currency"),
        (
            json!({"maximumPrices": {"currency": "EUR", "period": "Hourly", "perUnit": {"cpu": "-1"}}}),
            "borrowing.maximumPrices: the price of cpu is -1",
        ),
        (
            json!({"maximumTotal": {"currency": "EUR", "period": "Hourly", "amount": "-1"}}),
            "borrowing.maximumTotal: the amount must not be negative",
        ),
        (
            json!({"maximumTotal": {"currency": "EUR", "period": "never", "amount": "1"}}),
            "borrowing.maximumTotal: \"never\"",
        ),
    ] {
        let problems = Wants::read(&borrowing(value), &Borrowing::default(), true).unwrap_err();
        assert!(problems.to_string().contains(expected), "{problems}");
    }
}

#[test]
fn what_was_read_can_be_decided_about() {
    let read = Read::of(&make("cpu=8, memory=16Gi", &paid())).unwrap();
    let decision = |value: Value| {
        let wants = Wants::read(&borrowing(value), &Borrowing::default(), true).unwrap();
        let taken = read.taken(&wants.wanted);
        decide(&wants.limits, read.offered(&taken), now())
    };
    assert_eq!(decision(json!({})), Decision::Accept);
    let total = |amount: &str| json!({"currency": "EUR", "period": "Hourly", "amount": amount});
    assert!(matches!(decision(json!({"maximumTotal": total("0.1")})), Decision::Refuse(_)));
    // Who wants less pays less.
    let less = json!({"maximumTotal": total("0.1"), "wanted": {"cpu": "2"}});
    assert_eq!(decision(less), Decision::Accept);
    let manual = decision(json!({"automatic": false}));
    assert_eq!(manual, Decision::Manual("offers are accepted by hand here".to_owned()));
}
