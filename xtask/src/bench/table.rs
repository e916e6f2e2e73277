//! The table on standard output.

use super::measure::{Measurement, Times};

#[cfg(test)]
mod tests;

const HEAD: [&str; 7] =
    ["WHAT", "MEASURED", "MIN … MAX", "TARGET", "MET", "BASELINE OF THE SAME RUN", "RATIO"];

/// One line for each measurement, columns as wide as they need to be.
pub(super) fn draw(measurements: &[Measurement]) -> String {
    let rows: Vec<[String; 7]> =
        std::iter::once(HEAD.map(String::from)).chain(measurements.iter().map(row)).collect();
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let widths: [usize; 7] = std::array::from_fn(width);
    let line = |row: &[String; 7]| {
        let cells: Vec<String> =
            row.iter().zip(widths).map(|(cell, width)| format!("{cell:<width$}")).collect();
        cells.join("   ").trim_end().to_owned()
    };
    rows.iter().map(line).collect::<Vec<_>>().join("\n")
}

fn row(measurement: &Measurement) -> [String; 7] {
    let Measurement { what, unit, samples, target, baseline } = measurement;
    let (min, max) = samples.range();
    let range = match samples.count() {
        1 => "one run".to_owned(),
        count => format!("{} … {} of {count}", unit.show(min), unit.show(max)),
    };
    let met = measurement.met().map_or("-", |met| if met { "yes" } else { "NO" });
    [
        what.clone(),
        unit.show(samples.median()),
        range,
        target.map_or("-".to_owned(), |target| format!("< {}", unit.show(target))),
        met.to_owned(),
        format!("{}: {}", baseline.what, unit.show(baseline.samples.median())),
        Times(measurement.ratio()).to_string(),
    ]
}
