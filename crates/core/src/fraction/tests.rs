use std::cmp::Ordering;

use proptest::prelude::*;

use super::compare;

#[test]
fn the_largest_numbers_are_compared_exactly() {
    let max = u128::MAX;
    assert_eq!(compare((max, max), (max - 1, max - 1)), Ordering::Equal);
    assert_eq!(compare((max, max - 1), (max - 1, max - 2)), Ordering::Less);
    assert_eq!(compare((1, max), (1, max - 1)), Ordering::Less);
    assert_eq!(compare((0, max), (0, 1)), Ordering::Equal);
    assert_eq!(compare((1, 0), (max, 1)), Ordering::Greater);
    assert_eq!(compare((1, 0), (max, 0)), Ordering::Equal);
    assert_eq!(compare((0, 0), (0, 7)), Ordering::Equal);
    assert_eq!(compare((0, 0), (1, max)), Ordering::Less);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2048, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn small_fractions_compare_as_multiplied_crosswise(a in 0_u64..50, b in 1_u64..50, c in 0_u64..50, d in 1_u64..50) {
        let expected = (a * d).cmp(&(c * b));
        prop_assert_eq!(compare((a.into(), b.into()), (c.into(), d.into())), expected);
    }

    #[test]
    fn large_fractions_compare_as_multiplied_crosswise(a: u64, b in 1..u64::MAX, c: u64, d in 1..u64::MAX) {
        let (a, b, c, d) = (u128::from(a), u128::from(b), u128::from(c), u128::from(d));
        prop_assert_eq!(compare((a, b), (c, d)), (a * d).cmp(&(c * b)));
    }
}
