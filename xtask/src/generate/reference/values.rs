//! The chart's values: names and defaults from `values.yaml`, what they mean from the comments above them.

use std::fs;
use std::path::Path;

use anyhow::Context;

use super::cell;

/// Where the chart keeps them.
const FILE: &str = "deploy/helm/liqo/values.yaml";
/// How a comment begins that is meant for the reader of the reference.
const MARK: &str = "# --";

pub(super) fn page(root: &Path) -> anyhow::Result<String> {
    let text = fs::read_to_string(root.join(FILE)).with_context(|| format!("cannot read {FILE}"))?;
    let rows: Vec<String> = values(&text)
        .iter()
        .map(|value| format!("| `{}` | {} | {} |", value.path, code(&value.default), cell(&value.about)))
        .collect();
    anyhow::ensure!(!rows.is_empty(), "{FILE} has no value with a comment that begins with {MARK:?}");
    Ok(format!(
        "# Values of the chart\n\nFor `liqoctl install --set NAME=VALUE`, `--values FILE`, and for Helm. Unknown names and \
         values out of range are refused.\n\n| value | default | what |\n|---|---|---|\n{}\n",
        rows.join("\n")
    ))
}

fn code(default: &str) -> String {
    if default.is_empty() { String::new() } else { format!("`{}`", cell(default)) }
}

/// A documented value.
#[derive(Debug, PartialEq)]
pub(super) struct Value {
    pub(super) path: String,
    pub(super) default: String,
    pub(super) about: String,
}

/// Reads the lines: a marked comment belongs to the key below it, the indentation tells where that key is.
pub(super) fn values(text: &str) -> Vec<Value> {
    let (mut found, mut parents, mut about): (Vec<Value>, Vec<(usize, String)>, Option<String>) =
        (vec![], vec![], None);
    // Lines deeper than this belong to the default of the value found last.
    let mut inside: Option<usize> = None;
    for line in text.lines() {
        let indentation = line.len() - line.trim_start().len();
        let line = line.trim();
        if let Some(marked) = line.strip_prefix(MARK) {
            (about, inside) = (Some(marked.trim().to_owned()), None);
        } else if let Some(comment) = line.strip_prefix('#') {
            if let Some(about) = &mut about {
                *about = format!("{about} {}", comment.trim());
            }
        } else if line.is_empty() {
            about = None;
        } else if let Some((value, depth)) =
            found.last_mut().zip(inside).filter(|(_, depth)| indentation > *depth)
        {
            let _ = depth;
            value.default = format!("{} {line}", value.default).trim().to_owned();
        } else if let Some((key, default)) = line.split_once(':') {
            parents.retain(|(depth, _)| *depth < indentation);
            parents.push((indentation, key.trim_matches('"').replace('.', "\\.")));
            if let Some(about) = about.take() {
                let path: Vec<_> = parents.iter().map(|(_, key)| key.as_str()).collect();
                found.push(Value { path: path.join("."), default: default.trim().to_owned(), about });
                inside = Some(indentation);
            } else {
                inside = None;
            }
        }
    }
    found
}
