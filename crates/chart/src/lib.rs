//! The Helm chart, rendered without Helm.
//!
//! `liqoctl install` works where no `helm` is, and yields the same objects: the chart in `deploy/helm/liqo` is compiled
//! in, and this crate knows enough of Helm to turn it into objects.
//!
//! ```text
//! defaults (values.yaml) ┐
//! values files, --set    ┴─values──▶ merged ──schema──▶ checked ──template──▶ YAML ──render──▶ objects in order
//! ```
//!
//! What a chart may use: all of Go's template language; the functions of text/template, Sprig and Helm that charts
//! commonly use (not those that give something else each time, such as `randAlphaNum` or `now`); `.Values`, `.Release`,
//! `.Chart`, `.Capabilities`, `.Files` and `.Template`. Not: dependencies on other charts, and hooks other than tests.
//!
//! Where it differs from Helm on purpose:
//!
//! | | here | Helm |
//! |---|---|---|
//! | `{{ .Values.n }}` with `n: 1000000` | `1000000` | `1e+06` |
//! | `eq .Values.n 2` and `printf "%d" .Values.n` | work | refuse, because `.Values.n` is a float |
//! | a name twice in one YAML map | is an error | the last one counts |
//! | maps keyed `y`, `n`, `on`, `off`, `yes`, `no` without quotes | are keyed so | are keyed `true` and `false` |
//! | a chart that does not end, or fills the memory | is an error | does not end, or fills the memory |

mod chart;
mod error;
mod glob;
mod release;
mod render;
mod schema;
mod template;
pub mod values;
mod yaml;

pub use chart::Chart;
pub use error::ChartError;
pub use release::Release;
