use super::super::measure::{Baseline, Samples, Unit};
use super::*;

fn measurement(what: &str, value: f64, target: Option<f64>, baseline: f64) -> Measurement {
    let samples = |value| Samples::new([value]).expect("one run");
    Measurement {
        what: what.into(),
        unit: Unit::Seconds,
        samples: samples(value),
        target,
        baseline: Baseline { what: "bare".into(), samples: samples(baseline) },
    }
}

#[test]
fn a_bar_reaches_the_line_exactly_at_its_target() {
    assert_eq!(position(1.0), TARGET);
    assert_eq!(position(0.0), MARGIN);
}

#[test]
fn a_bar_beyond_the_edge_ends_in_an_arrow_and_keeps_its_number() {
    let svg = draw(&[measurement("up", 3.0, Some(5.0), 500.0)], "machine");
    assert!(svg.contains("bare: 500.00 s"), "{svg}");
    assert!(svg.contains(&format!("L{EDGE} ")), "{svg}");
}

#[test]
fn a_missed_target_has_another_colour() {
    let svg = draw(&[measurement("slow", 6.0, Some(5.0), 1.0)], "machine");
    assert!(svg.contains(r#"class="missed""#), "{svg}");
    assert!(!svg.contains(r#"class="ours""#), "{svg}");
}

#[test]
fn names_cannot_break_the_drawing_and_numbers_without_target_stay_out() {
    let svg =
        draw(&[measurement("a < b & c", 1.0, Some(5.0), 1.0), measurement("peak", 1.0, None, 1.0)], "m");
    assert!(svg.contains("a &lt; b &amp; c"), "{svg}");
    assert!(!svg.contains("peak"), "{svg}");
}
