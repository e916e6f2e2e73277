use proptest::prelude::*;

use super::*;
use crate::testing::list;

fn has(pools: &[(&str, &str)]) -> BTreeMap<PoolName, Resources> {
    pools.iter().map(|(name, amounts)| (name.parse().unwrap(), list(amounts))).collect()
}

fn total(parts: &BTreeMap<PoolName, Resources>) -> Resources {
    let mut sum = Resources::new();
    parts.values().for_each(|part| sum.accumulate(part));
    sum
}

#[test]
fn an_amount_is_shared_out_in_proportion_to_what_is_there() {
    let pools = has(&[("gpu", "cpu=28, memory=100Gi, nvidia.com/gpu=3"), ("plain", "cpu=14, memory=50Gi")]);
    let parts = split(&list("cpu=21, memory=90Gi, nvidia.com/gpu=2"), &pools);
    assert_eq!(
        parts,
        has(&[("gpu", "cpu=14, memory=60Gi, nvidia.com/gpu=2"), ("plain", "cpu=7, memory=30Gi")])
    );
}

#[test]
fn what_rounding_leaves_is_not_lost() {
    let pools = has(&[("a", "nvidia.com/gpu=1"), ("b", "nvidia.com/gpu=1"), ("c", "nvidia.com/gpu=1")]);
    let parts = split(&list("nvidia.com/gpu=2"), &pools);
    assert_eq!(parts, has(&[("a", "nvidia.com/gpu=1"), ("b", "nvidia.com/gpu=1"), ("c", "")]));
}

#[test]
fn bytes_that_are_no_whole_portions_add_up_as_well() {
    let pools = has(&[("a", "memory=1000001"), ("b", "memory=2")]);
    let parts = split(&list("memory=1000003"), &pools);
    assert_eq!(parts, pools);
}

#[test]
fn nobody_gets_more_than_is_there() {
    let parts = split(&list("cpu=100"), &has(&[("a", "cpu=1"), ("b", "cpu=2500m")]));
    assert_eq!(parts, has(&[("a", "cpu=1"), ("b", "cpu=2500m")]));
}

proptest! {
    #[test]
    fn the_parts_add_up_and_fit(
        amounts in prop::collection::vec((0_i64..100_000, 0_i64..1 << 50, 0_i64..20), 1..6),
        wanted in (0_i64..300_000, 0_i64..1 << 52, 0_i64..60),
    ) {
        let of = |(cpu, memory, gpu): (i64, i64, i64)| {
            list(&format!("cpu={cpu}m, memory={memory}, nvidia.com/gpu={gpu}"))
        };
        let pools: BTreeMap<PoolName, Resources> = amounts
            .into_iter()
            .enumerate()
            .map(|(index, amounts)| (format!("p{index}").parse().unwrap(), of(amounts)))
            .collect();
        let (all, wanted) = (total(&pools), of(wanted));
        let parts = split(&wanted, &pools);
        for (name, part) in &parts {
            prop_assert!(part.fits_in(&pools[name]), "{part} of {}", pools[name]);
        }
        let mut expected = wanted.min(&all);
        expected.retain(|_, amount| amount.is_positive());
        prop_assert_eq!(total(&parts), expected);
    }

    #[test]
    fn the_largest_amounts_are_shared_out_too(first in any::<u128>(), second in any::<u128>(), total in any::<u128>()) {
        let shares = in_proportion(total, &[first, second]);
        prop_assert!(shares[0] <= first && shares[1] <= second);
        prop_assert_eq!(shares[0].checked_add(shares[1]), Some(total.min(first.saturating_add(second))));
    }
}
