//! `deploy/crds` and the chart's `crds`: one file per kind.

use std::collections::BTreeMap;

use anyhow::Context;
use serde::Serialize;
use serde_json::{Number, Value};

use super::{Folder, HEADER};

/// Helm installs what lies in this folder of a chart before anything else.
const CHART: &str = "deploy/helm/liqo/crds";

pub(super) fn folders() -> anyhow::Result<[Folder; 2]> {
    let files = files()?;
    Ok([Folder { path: "deploy/crds", files: files.clone() }, Folder { path: CHART, files }])
}

fn files() -> anyhow::Result<BTreeMap<String, String>> {
    let mut files = BTreeMap::new();
    for crd in liqo_api::crds() {
        let name = crd.metadata.name.clone().unwrap_or_default();
        let yaml = to_yaml(&crd).with_context(|| format!("cannot write {name} as YAML"))?;
        files.insert(format!("{name}.yaml"), format!("{HEADER}{yaml}"));
    }
    Ok(files)
}

fn to_yaml(object: &impl Serialize) -> anyhow::Result<String> {
    let mut value = serde_json::to_value(object)?;
    write_whole_numbers_without_fraction(&mut value);
    Ok(serde_saphyr::to_string(&value)?)
}

/// Bounds are floating-point numbers in the Rust types, and `minimum: 0.0` reads worse than `minimum: 0`.
fn write_whole_numbers_without_fraction(value: &mut Value) {
    match value {
        Value::Number(number) => {
            let whole = number.as_f64().filter(|float| float.fract() == 0.0 && float.abs() < 1e15);
            if let Some(whole) = whole {
                *number = Number::from(whole as i64);
            }
        }
        Value::Array(items) => items.iter_mut().for_each(write_whole_numbers_without_fraction),
        Value::Object(fields) => fields.values_mut().for_each(write_whole_numbers_without_fraction),
        _ => {}
    }
}
