//! Comparing fractions of any size, exactly.

use std::cmp::Ordering;

/// How `a.0 / a.1` compares with `b.0 / b.1`. Something of nothing is more than any number; nothing of nothing is
/// nothing.
///
/// Multiplying crosswise would need 256 bits, so that the whole parts are compared, then the reciprocals of what is
/// left: Euclid's algorithm on both at once.
pub(crate) fn compare(a: (u128, u128), b: (u128, u128)) -> Ordering {
    let defined = |fraction| if fraction == (0, 0) { (0, 1) } else { fraction };
    let (mut a, mut b) = (defined(a), defined(b));
    let mut swapped = false;
    loop {
        let order = match (whole(a), whole(b)) {
            (Whole::Endless, Whole::Endless) => Ordering::Equal,
            (Whole::Endless, _) => Ordering::Greater,
            (_, Whole::Endless) => Ordering::Less,
            (Whole::Number(of_a, rest_a), Whole::Number(of_b, rest_b)) => {
                if of_a == of_b && !(rest_a == 0 && rest_b == 0) {
                    (a, b) = ((a.1, rest_a), (b.1, rest_b));
                    swapped = !swapped;
                    continue;
                }
                of_a.cmp(&of_b)
            }
        };
        return if swapped { order.reverse() } else { order };
    }
}

enum Whole {
    /// Something divided by nothing.
    Endless,
    /// The whole part and the remainder.
    Number(u128, u128),
}

fn whole((numerator, denominator): (u128, u128)) -> Whole {
    match numerator.checked_div(denominator) {
        Some(quotient) => Whole::Number(quotient, numerator - quotient * denominator),
        None => Whole::Endless,
    }
}

#[cfg(test)]
mod tests;
