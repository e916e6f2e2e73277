use jiff::Timestamp;
use proptest::prelude::*;

use super::{Ledger, Limits, NotAdmitted, Sale, Shortage};
use crate::resources::Resources;
use crate::testing::{contract_id, id, list};

fn sale(contract: &str, sequence: u64, pot: Option<&str>, resources: &str) -> Sale {
    Sale {
        contract: contract_id(contract),
        sequence,
        peer: id(&format!("peer-of-{contract}")),
        pot: pot.map(ToOwned::to_owned),
        resources: list(resources),
        pools: [].into(),
        since: Timestamp::UNIX_EPOCH,
    }
}

fn limits(pot: &str, total: &str) -> Limits {
    let pots = [None, Some("gold".to_owned()), Some("any".to_owned())].into();
    Limits { pot: list(pot), total: list(total), pots, ..Limits::default() }
}

fn admitted(ledger: &Ledger, limits: &Limits, sale: Sale) -> Ledger {
    let (contract, sequence) = (sale.contract.clone(), sale.sequence);
    ledger.admit(limits, sale).unwrap().confirm(contract.as_str(), sequence)
}

fn shortfall(result: Result<Ledger, NotAdmitted>) -> Resources {
    match result {
        Err(NotAdmitted::Shortfall(resources)) => resources,
        other => panic!("expected a shortfall, got {other:?}"),
    }
}

#[test]
fn a_pool_is_not_sold_twice_though_others_have_room() {
    let pools = |amounts: &[(&str, &str)]| -> std::collections::BTreeMap<_, _> {
        amounts.iter().map(|(name, amounts)| (name.parse().unwrap(), list(amounts))).collect()
    };
    let limits = Limits { pools: pools(&[("gpu", "cpu=4"), ("plain", "cpu=4")]), ..limits("cpu=8", "cpu=8") };
    let of = |contract: &str, sequence, amounts: &[(&str, &str)], all: &str| Sale {
        pools: pools(amounts),
        ..sale(contract, sequence, None, all)
    };
    let ledger = admitted(&Ledger::default(), &limits, of("a", 0, &[("gpu", "cpu=3")], "cpu=3"));
    assert_eq!(shortfall(ledger.admit(&limits, of("b", 0, &[("gpu", "cpu=2")], "cpu=2"))), list("cpu=1"));
    assert_eq!(shortfall(ledger.admit(&limits, of("b", 0, &[("other", "cpu=2")], "cpu=2"))), list("cpu=2"));
    assert!(ledger.admit(&limits, of("b", 0, &[("gpu", "cpu=1"), ("plain", "cpu=4")], "cpu=5")).is_ok());
    // Giving back is possible also when there is less than was sold.
    let less = Limits { pools: pools(&[("gpu", "cpu=1")]), ..limits };
    assert!(ledger.admit(&less, of("a", 1, &[("gpu", "cpu=2")], "cpu=2")).is_ok());
}

#[test]
fn what_is_sold_cannot_be_sold_again() {
    let limits = limits("cpu=4, memory=8Gi", "cpu=8, memory=16Gi");
    let ledger = admitted(&Ledger::default(), &limits, sale("a", 0, None, "cpu=3, memory=2Gi"));
    let refused = ledger.admit(&limits, sale("b", 0, None, "cpu=2, memory=6Gi"));
    assert_eq!(shortfall(refused), list("cpu=1"));
    let ledger = admitted(&ledger, &limits, sale("b", 0, None, "cpu=1, memory=6Gi"));
    assert_eq!(ledger.sold(), list("cpu=4, memory=8Gi"));
    assert_eq!(ledger.sold_to("peer-of-b"), list("cpu=1, memory=6Gi"));
}

#[test]
fn a_proposal_is_reserved_before_it_is_signed() {
    let limits = limits("cpu=4", "cpu=8");
    let ledger = Ledger::default().admit(&limits, sale("a", 0, None, "cpu=4")).unwrap();
    assert_eq!(shortfall(ledger.admit(&limits, sale("b", 0, None, "cpu=1"))), list("cpu=1"));
    let ledger = ledger.abandon("a", 0);
    assert_eq!(ledger, Ledger::default());
    assert!(ledger.admit(&limits, sale("b", 0, None, "cpu=4")).is_ok());
}

#[test]
fn pots_are_apart_and_together_at_most_what_there_is() {
    let (gold, any) = (limits("cpu=6", "cpu=8"), limits("cpu=4", "cpu=8"));
    let ledger = admitted(&Ledger::default(), &gold, sale("a", 0, Some("gold"), "cpu=6"));
    let refused = ledger.admit(&any, sale("b", 0, Some("any"), "cpu=3"));
    assert_eq!(shortfall(refused), list("cpu=1"), "the pot has 4, but the cluster only 2 left");
    assert!(ledger.admit(&any, sale("b", 0, Some("any"), "cpu=2")).is_ok());
}

#[test]
fn sales_of_a_policy_that_is_gone_count_against_every_pot() {
    let limits = limits("cpu=4", "cpu=100");
    let ledger = Ledger::default().restore(sale("a", 0, Some("deleted"), "cpu=3"), true);
    for pot in [None, Some("gold"), Some("any")] {
        assert_eq!(shortfall(ledger.admit(&limits, sale("b", 0, pot, "cpu=2"))), list("cpu=1"));
    }
}

#[test]
fn a_resource_without_limit_is_not_for_sale() {
    let refused =
        Ledger::default().admit(&limits("cpu=4", "cpu=4"), sale("a", 0, None, "cpu=1, nvidia.com/gpu=1"));
    assert_eq!(shortfall(refused), list("nvidia.com/gpu=1"));
    let negative = limits("cpu=-3", "cpu=4");
    assert_eq!(shortfall(Ledger::default().admit(&negative, sale("a", 0, None, "cpu=1"))), list("cpu=1"));
}

#[test]
fn an_amendment_replaces_its_predecessor_once_it_is_confirmed() {
    let limits = limits("cpu=4", "cpu=4");
    let ledger = admitted(&Ledger::default(), &limits, sale("a", 0, None, "cpu=3, memory=0"));
    let amending = ledger.admit(&limits, sale("a", 1, None, "cpu=1")).unwrap();
    assert_eq!(
        amending.sold().amount("cpu"),
        list("cpu=3").amount("cpu"),
        "the old stands until the new is signed"
    );
    assert_eq!(amending.confirm("a", 1).sold(), list("cpu=1"));
    assert_eq!(amending.abandon("a", 1), ledger);
    assert_eq!(amending.confirm("a", 7).abandon("a", 7), amending, "of another amendment nothing is known");

    let growing = ledger.admit(&limits, sale("a", 1, None, "cpu=4")).unwrap();
    assert_eq!(shortfall(growing.admit(&limits, sale("b", 0, None, "cpu=1"))), list("cpu=1"));
    assert_eq!(growing.end("a"), Ledger::default(), "nothing stays reserved for an ended contract");
}

#[test]
fn an_amendment_that_changes_the_pot_is_reserved_in_both_until_it_is_settled() {
    let limits = limits("cpu=4", "cpu=100");
    let ledger = admitted(&Ledger::default(), &limits, sale("a", 0, Some("gold"), "cpu=3"));
    let amending = ledger.admit(&limits, sale("a", 1, Some("any"), "cpu=3")).unwrap();
    for pot in ["gold", "any"] {
        assert_eq!(
            shortfall(amending.admit(&limits, sale("b", 0, Some(pot), "cpu=2"))),
            list("cpu=1"),
            "{pot}"
        );
    }
    assert_eq!(amending.sold(), list("cpu=3"), "the cluster is asked for it only once");
    let full = admitted(&ledger, &limits, sale("b", 0, Some("any"), "cpu=2"));
    assert_eq!(shortfall(full.admit(&limits, sale("a", 1, Some("any"), "cpu=3"))), list("cpu=1"));
}

#[test]
fn giving_back_is_always_possible() {
    let ledger = admitted(
        &Ledger::default(),
        &limits("cpu=9, memory=9Gi", "cpu=9, memory=9Gi"),
        sale("a", 0, None, "cpu=9, memory=4Gi"),
    );
    let shrunk = limits("cpu=2, memory=9Gi", "cpu=2, memory=9Gi");
    assert!(ledger.admit(&shrunk, sale("a", 1, None, "cpu=5, memory=8Gi")).is_ok());
    assert_eq!(shortfall(ledger.admit(&shrunk, sale("a", 1, None, "cpu=10, memory=1Gi"))), list("cpu=8"));
}

#[test]
fn repeating_changes_nothing_and_coming_late_is_refused() {
    let limits = limits("cpu=4", "cpu=4");
    let first = sale("a", 0, None, "cpu=4");
    let ledger = admitted(&Ledger::default(), &limits, first.clone());
    assert_eq!(ledger.admit(&limits, first), Ok(ledger.clone()));
    let late = ledger.admit(&limits, sale("a", 0, None, "cpu=1")).unwrap_err();
    assert_eq!(late.to_string(), "contract a is at amendment 0 already; amendment 0 comes too late");

    let mut stolen = sale("a", 1, None, "cpu=1");
    stolen.peer = id("thief");
    let refused = ledger.admit(&limits, stolen).unwrap_err().to_string();
    assert_eq!(refused, "contract a belongs to another cluster than thief");
    let negative = ledger.admit(&limits, sale("b", 0, None, "cpu=-4")).unwrap_err().to_string();
    assert!(negative.contains("must not be negative"), "{negative}");
}

#[test]
fn the_ledger_is_the_same_in_whatever_order_it_is_made_anew() {
    let sales = [
        (sale("a", 0, None, "cpu=3"), true),
        (sale("a", 1, None, "cpu=1"), true),
        (sale("a", 2, None, "cpu=2"), false),
    ];
    let restore = |order: [usize; 3]| order.iter().map(|index| sales[*index].clone()).collect::<Ledger>();
    let ledger = restore([0, 1, 2]);
    assert_eq!(ledger.sold(), list("cpu=2"));
    for order in [[0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]] {
        assert_eq!(restore(order), ledger, "{order:?}");
    }
    let confirmed = ledger.restore(sale("a", 2, None, "cpu=2"), true);
    assert_eq!(confirmed, Ledger::default().restore(sale("a", 2, None, "cpu=2"), true));
}

#[test]
fn who_came_last_bears_what_is_missing() {
    let at = |second, contract: &str, resources: &str| {
        let mut sale = sale(contract, 0, None, resources);
        sale.since = Timestamp::from_second(second).unwrap();
        sale
    };
    let ledger =
        [at(1, "first", "cpu=4, memory=4Gi"), at(2, "second", "cpu=3, memory=1Gi"), at(3, "third", "cpu=2")]
            .into_iter()
            .fold(Ledger::default(), |ledger, sale| ledger.restore(sale, true));
    let shortages = |backing: &str| ledger.shortages(|_| true, &list(backing));
    let short = |contract: &str, missing: &str| {
        let peer = id(&format!("peer-of-{contract}"));
        Shortage { contract: contract_id(contract), peer, missing: list(missing) }
    };
    assert_eq!(shortages("cpu=9, memory=5Gi"), []);
    assert_eq!(shortages("cpu=8, memory=5Gi"), [short("third", "cpu=1")]);
    assert_eq!(
        shortages("cpu=6, memory=2Gi"),
        [short("third", "cpu=2"), short("second", "cpu=1, memory=1Gi"), short("first", "memory=2Gi")]
    );
    assert_eq!(
        shortages("cpu=-50, memory=5Gi").last(),
        Some(&short("first", "cpu=4")),
        "never more than promised"
    );
    assert_eq!(ledger.shortages(Option::is_some, &list("")), [], "other pots do not count");
}

/// What many clients do at once, each with an idea of the limits that may be old.
#[derive(Clone, Debug)]
enum Step {
    Capacity { pot: [i64; 2], total: i64 },
    Propose { contract: u8, sequence: u64, pot: u8, cpu: i64, gpu: i64 },
    Confirm { contract: u8, sequence: u64 },
    Abandon { contract: u8, sequence: u64 },
    End { contract: u8 },
}

fn any_step() -> impl Strategy<Value = Step> {
    let contract = || 0_u8..6;
    let sequence = || 0_u64..4;
    prop_oneof![
        1 => ([-3_i64..30, -3_i64..30], -3_i64..40).prop_map(|(pot, total)| Step::Capacity { pot, total }),
        6 => (contract(), sequence(), 0_u8..2, 0_i64..12, 0_i64..3)
            .prop_map(|(contract, sequence, pot, cpu, gpu)| Step::Propose { contract, sequence, pot, cpu, gpu }),
        4 => (contract(), sequence()).prop_map(|(contract, sequence)| Step::Confirm { contract, sequence }),
        1 => (contract(), sequence()).prop_map(|(contract, sequence)| Step::Abandon { contract, sequence }),
        1 => contract().prop_map(|contract| Step::End { contract }),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_order_of_events_sells_more_than_is_allowed(steps in prop::collection::vec(any_step(), 1..80)) {
        let pots = [None, Some("gold".to_owned())];
        let mut ledger = Ledger::default();
        let mut allowed = ([10_i64, 10], 15_i64);
        for step in steps {
            match step {
                Step::Capacity { pot, total } => allowed = (pot, total),
                Step::Propose { contract, sequence, pot, cpu, gpu } => {
                    let mut new = sale(&format!("c{contract}"), sequence, None, &format!("cpu={cpu}, nvidia.com/gpu={gpu}"));
                    new.pot = pots[usize::from(pot)].clone();
                    let of_pot = allowed.0[usize::from(pot)];
                    let limits = Limits {
                        pot: list(&format!("cpu={of_pot}, nvidia.com/gpu={of_pot}")),
                        total: list(&format!("cpu={0}, nvidia.com/gpu={0}", allowed.1)),
                        pots: pots.iter().cloned().collect(),
                        ..Limits::default()
                    };
                    let Ok(after) = ledger.admit(&limits, new.clone()) else { continue };
                    let mine = |sale: &Sale| sale.contract == new.contract;
                    let in_pot = |sale: &Sale| sale.pot == new.pot;
                    for (before, sum, limit) in [
                        (ledger.sum(|sale| mine(sale) && in_pot(sale)), after.sum(in_pot), &limits.pot),
                        (ledger.sum(mine), after.sold(), &limits.total),
                    ] {
                        for (name, amount) in new.resources.iter() {
                            let grew = amount > before.amount(name.as_str());
                            prop_assert!(
                                !grew || sum.amount(name.as_str()) <= limit.amount(name.as_str()),
                                "{name}: sold {sum} of {limit} after admitting {new:?}"
                            );
                        }
                    }
                    ledger = after;
                }
                Step::Confirm { contract, sequence } => ledger = ledger.confirm(&format!("c{contract}"), sequence),
                Step::Abandon { contract, sequence } => ledger = ledger.abandon(&format!("c{contract}"), sequence),
                Step::End { contract } => {
                    ledger = ledger.end(&format!("c{contract}"));
                    let left = ledger.sold_to(&format!("peer-of-c{contract}"));
                    prop_assert!(left.is_zero(), "{}", left);
                }
            }
            prop_assert!(ledger.sold().iter().all(|(_, amount)| !amount.is_negative()));
        }
        for contract in 0..6 {
            ledger = ledger.end(&format!("c{contract}"));
        }
        prop_assert_eq!(ledger, Ledger::default());
    }

    #[test]
    fn shortages_are_exactly_what_is_missing(amounts in prop::collection::vec(0_i64..9, 0..6), backing in -5_i64..40) {
        let ledger = amounts.iter().enumerate().fold(Ledger::default(), |ledger, (index, cpu)| {
            ledger.restore(sale(&format!("c{index}"), 0, None, &format!("cpu={cpu}")), true)
        });
        let backing = list(&format!("cpu={backing}"));
        let missing = ledger
            .shortages(|_| true, &backing)
            .into_iter()
            .fold(Resources::new(), |sum, shortage| sum.saturating_add(&shortage.missing));
        let expected = ledger.sold().amount("cpu").sub_to_zero(backing.amount("cpu").max(crate::Quantity::ZERO));
        prop_assert_eq!(missing.amount("cpu"), expected);
    }
}
