//! What can be wrong with a chart or its values.

use std::path::PathBuf;

use crate::values::ValuesError;

/// Why a chart cannot be opened or rendered.
#[derive(Debug, thiserror::Error)]
pub enum ChartError {
    /// The chart's files cannot be read.
    #[error("cannot open the chart {}: {reason}", path.display())]
    Open {
        /// What should be a chart.
        path: PathBuf,
        /// Why it cannot be read.
        reason: String,
    },
    /// One of the files that every chart has is wrong.
    #[error("the chart's {file} cannot be used: {reason}")]
    File {
        /// The file's path in the chart.
        file: String,
        /// What is wrong with it.
        reason: String,
    },
    /// The chart's default values are no values.
    #[error("the chart's values.yaml cannot be used: {0}")]
    Defaults(#[source] ValuesError),
    /// The chart needs something that is not done here.
    #[error("the chart {chart} {what}, which needs Helm itself: use `helm install` for it")]
    NeedsHelm {
        /// The chart's name.
        chart: String,
        /// What it has.
        what: String,
    },
    /// The cluster is too old or too new for the chart.
    #[error("the chart {chart} needs Kubernetes {wanted}, but this cluster has {found}")]
    Kubernetes {
        /// The chart's name.
        chart: String,
        /// The chart's constraint.
        wanted: String,
        /// The cluster's version.
        found: String,
    },
    /// The values are not what the chart's schema asks for.
    #[error("the values do not fit the chart:{}", lines(.0))]
    Values(Vec<String>),
    /// A template cannot be read or run. The message starts with the file and the line.
    #[error("{place}: {message}{}", trail(.included_from))]
    Template {
        /// File and line.
        place: String,
        /// What is wrong there; a chart's own words if it refuses its values.
        message: String,
        /// The lines that included the template, innermost first.
        included_from: Vec<String>,
    },
    /// A template renders to something that is no Kubernetes object.
    #[error("{template} does not render to Kubernetes objects: {reason}")]
    Manifest {
        /// The template's file.
        template: String,
        /// What is wrong with what it renders to.
        reason: String,
    },
}

/// One mistake on the same line, more on a line each.
fn lines(mistakes: &[String]) -> String {
    match mistakes {
        [one] => format!(" {one}"),
        many => many.iter().map(|mistake| format!("\n- {mistake}")).collect(),
    }
}

fn trail(included_from: &[String]) -> String {
    included_from.iter().map(|place| format!(" (included at {place})")).collect()
}
