//! The chart: a bar for each promised number on a scale where every target is at the same place.
//!
//! Written by hand as SVG, so that it needs no program to draw and looks right in light and dark pages.

use std::fmt::Write as _;

use super::measure::{Measurement, Times};

#[cfg(test)]
mod tests;

const WIDTH: f64 = 760.0;
const MARGIN: f64 = 28.0;
const HEAD: f64 = 92.0;
const ROW: f64 = 76.0;
const FOOT: f64 = 44.0;
/// Where the targets are.
const TARGET: f64 = 470.0;
/// Bars that would go beyond the edge end in an arrow; their number is written anyway.
const EDGE: f64 = WIDTH - MARGIN;

const STYLE: &str = "
    .page { fill: #ffffff } .text { fill: #1f2430 } .soft { fill: #5b6472 }
    .ours { fill: #2f6fde } .missed { fill: #c8372d } .base { fill: #b9c1cd }
    .target { stroke: #1f2430 } .range { stroke: #0d2f6b }
    text { font: 14px system-ui, -apple-system, 'Segoe UI', 'DejaVu Sans', sans-serif }
    .title { font-size: 18px; font-weight: 600 } .value { font-weight: 600 } .small { font-size: 12px }
    @media (prefers-color-scheme: dark) {
      .page { fill: #12161d } .text { fill: #e7eaf0 } .soft { fill: #a2abba }
      .ours { fill: #6ea3ff } .missed { fill: #ff7a6e } .base { fill: #4a5363 }
      .target { stroke: #e7eaf0 } .range { stroke: #dbe7ff }
    }";

/// Draws the measurements that have a target.
pub(super) fn draw(measurements: &[Measurement], machine: &str) -> String {
    let promised: Vec<(&Measurement, f64)> =
        measurements.iter().filter_map(|measurement| Some((measurement, measurement.target?))).collect();
    let bottom = HEAD + ROW * promised.len() as f64;
    let height = bottom + FOOT;
    let mut svg = String::new();
    let title = "Measured against the targets";
    let _ = write!(
        svg,
        r#"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}" role="img" aria-label="{title}">
  <style>{STYLE}
  </style>
  <rect class="page" width="{WIDTH}" height="{height}" rx="8"/>
  <text class="text title" x="{MARGIN}" y="36">{title}</text>
  <text class="soft small" x="{MARGIN}" y="56">shorter is better; wide: measured, thin line: slowest and fastest run; narrow: baseline of the same run</text>
  <text class="soft small" x="{TARGET}" y="78" text-anchor="middle">target</text>
"#
    );
    for (number, (measurement, target)) in promised.iter().enumerate() {
        draw_row(&mut svg, HEAD + ROW * number as f64, measurement, *target);
    }
    let _ = write!(
        svg,
        r#"  <line class="target" x1="{TARGET}" x2="{TARGET}" y1="84" y2="{bottom}" stroke-width="1.5" stroke-dasharray="5 4"/>
  <text class="soft small" x="{MARGIN}" y="{}">{}</text>
</svg>
"#,
        height - 16.0,
        escape(machine)
    );
    svg
}

fn draw_row(svg: &mut String, top: f64, measurement: &Measurement, target: f64) {
    let Measurement { what, unit, samples, baseline, .. } = measurement;
    let class = if measurement.met() == Some(false) { "missed" } else { "ours" };
    let value = format!("{} of {}", unit.show(samples.median()), unit.show(target));
    let against = format!(
        "{}: {}, ratio {}",
        baseline.what,
        unit.show(baseline.samples.median()),
        Times(measurement.ratio())
    );
    // The writing keeps clear of the target's line, which runs through all rows.
    let _ = writeln!(
        svg,
        r#"  <text class="text" x="{MARGIN}" y="{y}">{}</text>
  <text class="text value" x="{EDGE}" y="{y}" text-anchor="end">{}</text>"#,
        escape(what),
        escape(&value),
        y = top + 16.0,
    );
    bar(svg, class, top + 24.0, 16.0, samples.median() / target);
    bar(svg, "base", top + 42.0, 7.0, baseline.samples.median() / target);
    let (min, max) = samples.range();
    let (left, right) = (position(min / target), position(max / target));
    if samples.count() > 1 {
        let _ = writeln!(
            svg,
            r#"  <line class="range" x1="{left:.1}" x2="{right:.1}" y1="{y}" y2="{y}" stroke-width="2"/>"#,
            y = top + 32.0
        );
    }
    let _ = writeln!(
        svg,
        r#"  <text class="soft small" x="{MARGIN}" y="{}">{}</text>"#,
        top + 63.0,
        escape(&against)
    );
}

/// Where a share of the target ends on the page.
fn position(share: f64) -> f64 {
    (MARGIN + share * (TARGET - MARGIN)).min(EDGE)
}

fn bar(svg: &mut String, class: &str, top: f64, height: f64, share: f64) {
    let end = position(share);
    let (middle, bottom) = (top + height / 2.0, top + height);
    // A bar of nothing would be no bar.
    let end = end.max(MARGIN + 1.0);
    let shape = if end < EDGE {
        format!("M{MARGIN} {top}H{end:.1}V{bottom}H{MARGIN}Z")
    } else {
        format!(
            "M{MARGIN} {top}H{:.1}L{EDGE} {middle}L{:.1} {bottom}H{MARGIN}Z",
            EDGE - height,
            EDGE - height
        )
    };
    let _ = writeln!(svg, r#"  <path class="{class}" d="{shape}"/>"#);
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}
