use super::super::measure::{Baseline, Samples, Unit};
use super::*;

#[test]
fn a_missed_target_is_plain_to_see_beside_the_ratio() {
    let samples = |runs: &[f64]| Samples::new(runs.iter().copied()).expect("runs");
    let table = draw(&[Measurement {
        what: "cluster: up".into(),
        unit: Unit::Seconds,
        samples: samples(&[5.0, 6.0, 7.0]),
        target: Some(5.0),
        baseline: Baseline { what: "bare".into(), samples: samples(&[4.0]) },
    }]);
    let row: Vec<&str> = table.lines().nth(1).expect("a row").split("   ").map(str::trim).collect();
    let expected =
        ["cluster: up", "6.00 s", "5.00 s … 7.00 s of 3", "< 5.00 s", "NO", "bare: 4.00 s", "1.50×"];
    assert_eq!(row.into_iter().filter(|cell| !cell.is_empty()).collect::<Vec<_>>(), expected);
}
