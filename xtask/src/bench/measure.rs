//! A measured number with its target and its baseline.

use std::fmt;

use serde::Serialize;

#[cfg(test)]
mod tests;

/// What a number counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Unit {
    /// Wall-clock time.
    Seconds,
    /// Time of which a second is much.
    Milliseconds,
    /// Millions of bytes.
    Megabytes,
    /// CPU seconds per second.
    Cores,
    /// Connections, writes: things that are counted.
    Count,
}

impl Unit {
    /// A value with as many digits as it deserves.
    pub(super) fn show(self, value: f64) -> String {
        match self {
            Self::Seconds => format!("{value:.2} s"),
            Self::Milliseconds => format!("{value:.2} ms"),
            Self::Megabytes => format!("{value:.1} MB"),
            Self::Cores => format!("{value:.3} core"),
            Self::Count => format!("{value:.1}").trim_end_matches(".0").to_owned(),
        }
    }
}

/// One or more runs of the same thing, sorted. Never empty.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct Samples {
    median: f64,
    min: f64,
    max: f64,
    runs: Vec<f64>,
}

impl Samples {
    /// `None` without a single run.
    pub(super) fn new(runs: impl IntoIterator<Item = f64>) -> Option<Self> {
        let mut runs: Vec<f64> = runs.into_iter().collect();
        runs.sort_by(f64::total_cmp);
        let (min, max) = (*runs.first()?, *runs.last()?);
        let middle = runs.len() / 2;
        let median = if runs.len().is_multiple_of(2) {
            f64::midpoint(runs[middle - 1], runs[middle])
        } else {
            runs[middle]
        };
        Some(Self { median, min, max, runs })
    }

    pub(super) fn median(&self) -> f64 {
        self.median
    }

    pub(super) fn range(&self) -> (f64, f64) {
        (self.min, self.max)
    }

    pub(super) fn count(&self) -> usize {
        self.runs.len()
    }
}

/// What the same run says about the same work done otherwise.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Baseline {
    pub(super) what: String,
    #[serde(flatten)]
    pub(super) samples: Samples,
}

/// A number that the project promises.
#[derive(Clone, Debug, Serialize)]
#[serde(into = "Written")]
pub(super) struct Measurement {
    pub(super) what: String,
    pub(super) unit: Unit,
    pub(super) samples: Samples,
    /// The median must be below this.
    pub(super) target: Option<f64>,
    pub(super) baseline: Baseline,
}

impl Measurement {
    pub(super) fn met(&self) -> Option<bool> {
        self.target.map(|target| self.samples.median < target)
    }

    /// How many times the baseline.
    pub(super) fn ratio(&self) -> f64 {
        self.samples.median / self.baseline.samples.median
    }
}

/// A measurement as `results.json` has it.
#[derive(Serialize)]
struct Written {
    what: String,
    unit: Unit,
    #[serde(flatten)]
    samples: Samples,
    target: Option<f64>,
    met: Option<bool>,
    ratio: f64,
    baseline: Baseline,
}

impl From<Measurement> for Written {
    fn from(measurement: Measurement) -> Self {
        let (met, ratio) = (measurement.met(), measurement.ratio());
        let Measurement { what, unit, samples, target, baseline } = measurement;
        Self { what, unit, samples, target, met, ratio, baseline }
    }
}

/// A ratio as people say it.
pub(super) struct Times(pub(super) f64);

impl fmt::Display for Times {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.2}×", self.0)
    }
}
