use super::*;

fn measurement(value: f64, target: Option<f64>, baseline: f64) -> Measurement {
    let samples = |value| Samples::new([value]).expect("one run");
    Measurement {
        what: "up".into(),
        unit: Unit::Seconds,
        samples: samples(value),
        target,
        baseline: Baseline { what: "bare".into(), samples: samples(baseline) },
    }
}

#[test]
fn the_median_of_an_even_number_of_runs_lies_between_the_two_in_the_middle() {
    let samples = Samples::new([4.0, 1.0, 2.0, 9.0]).expect("four runs");
    assert_eq!((samples.median(), samples.range(), samples.count()), (3.0, (1.0, 9.0), 4));
    assert_eq!(Samples::new([5.0, 1.0, 2.0]).expect("three runs").median(), 2.0);
}

#[test]
fn nothing_measured_is_no_number() {
    assert_eq!(Samples::new([]), None);
}

#[test]
fn a_target_is_met_only_below_it() {
    assert_eq!(measurement(4.9, Some(5.0), 1.0).met(), Some(true));
    assert_eq!(measurement(5.0, Some(5.0), 1.0).met(), Some(false));
    assert_eq!(measurement(5.0, None, 1.0).met(), None);
}

#[test]
fn results_carry_runs_target_and_the_ratio_to_the_baseline() {
    let json = serde_json::to_value(measurement(3.0, Some(5.0), 2.0)).expect("plain data");
    assert_eq!(json["ratio"], 1.5);
    assert_eq!(json["met"], true);
    assert_eq!(json["runs"], serde_json::json!([3.0]));
    assert_eq!(json["baseline"]["median"], 2.0);
    assert_eq!(json["unit"], "seconds");
}
