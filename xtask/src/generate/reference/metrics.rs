//! The metrics that programs register, read from the code that registers them.
//!
//! Asking a registry would not do: it does not tell of metrics that have no value yet.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context;

use super::cell;

/// The crates whose metrics the roles serve.
const SERVED: [&str; 10] = [
    "authentication",
    "discovery",
    "hosting",
    "identity",
    "kit",
    "liqo",
    "offloading",
    "peering",
    "reflection",
    "virtual-node",
];

/// What the kit's own collector tells of every process; it is not registered one by one.
const PROCESS: &str = "\
| `process_resident_memory_bytes` | gauge | Memory in RAM |
| `process_virtual_memory_bytes` | gauge | Address space |
| `process_open_fds` | gauge | Open file descriptors |
| `process_threads` | gauge | Threads |
| `process_start_time_seconds` | gauge | Start, since 1970 |
| `process_cpu_seconds_total` | counter | Time on a CPU |
";

pub(super) fn page(root: &Path) -> anyhow::Result<String> {
    let mut found = Vec::new();
    for room in SERVED {
        for file in sources(&root.join("crates").join(room).join("src"))? {
            let text =
                fs::read_to_string(&file).with_context(|| format!("cannot read {}", file.display()))?;
            found.extend(metrics(&without_comments(&text)));
        }
    }
    anyhow::ensure!(!found.is_empty(), "no crate registers a metric");
    found.sort_by(|a, b| a.name.cmp(&b.name));
    let rows: String = found
        .iter()
        .map(|metric| format!("| `{}` | {} | {} |\n", metric.name, metric.kind, cell(&metric.help)))
        .collect();
    Ok(format!(
        "# Metrics\n\nServed at `/metrics` on `--metrics-address` (`:8080`), in the format of OpenMetrics. `liqo discovery` \
         serves those of `liqo_discovery` about the local network, and the general ones.\n\n\
         | metric | type | what |\n|---|---|---|\n{rows}{PROCESS}"
    ))
}

/// The Rust files of the crates that run inside a cluster, without their tests.
fn sources(directory: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let mut entries: Vec<PathBuf> = fs::read_dir(directory)
        .with_context(|| format!("cannot list {}", directory.display()))?
        .map(|entry| entry.map(|entry| entry.path()))
        .collect::<Result<_, _>>()?;
    entries.sort();
    for path in entries {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if path.is_dir() && !["tests", "examples", "target"].contains(&name.as_str()) {
            found.extend(sources(&path)?);
        } else if name.ends_with(".rs") && name != "tests.rs" {
            found.push(path);
        }
    }
    Ok(found)
}

/// Examples in comments register nothing.
fn without_comments(text: &str) -> String {
    let lines = text.lines().filter(|line| !line.trim_start().starts_with("//"));
    lines.map(|line| format!("{line}\n")).collect()
}

/// What is known of a metric.
#[derive(Debug, PartialEq)]
pub(super) struct Metric {
    pub(super) name: String,
    pub(super) kind: &'static str,
    pub(super) help: String,
}

/// Calls that make or prefix metrics, and what is in front of their arguments.
const CALLS: [&str; 4] =
    ["sub_registry_with_prefix(", ".register(", ".register_with_unit(", ".encode_descriptor("];

/// The metrics that a file registers: `register("name", "help", self.field…)`, below a prefix where one is set. The help may
/// also be a variable that is bound to a text before.
pub(super) fn metrics(text: &str) -> Vec<Metric> {
    let (mut found, mut prefix, mut at) = (Vec::new(), String::new(), 0);
    while let Some((start, call)) =
        CALLS.iter().filter_map(|call| Some((at + text[at..].find(call)?, *call))).min()
    {
        at = start + call.len();
        let arguments = arguments(&text[at..]);
        let Some(name) = arguments.first().and_then(|name| literal(name)) else { continue };
        if call == CALLS[0] {
            prefix = format!("{name}_");
            continue;
        }
        let help = arguments.get(1).and_then(|help| literal(help).or_else(|| bound(&text[..start], help)));
        let Some(help) = help else { continue };
        let kind = match call {
            ".encode_descriptor(" if prefix.is_empty() => continue,
            ".encode_descriptor(" => "gauge",
            _ => kind(text, arguments.last().copied().unwrap_or_default()),
        };
        let unit = if arguments.contains(&"Unit::Seconds") { "_seconds" } else { "" };
        let suffix = match kind {
            "counter" => "_total",
            "info" => "_info",
            _ => "",
        };
        found.push(Metric { name: format!("{prefix}{name}{unit}{suffix}"), kind, help });
    }
    found
}

/// The arguments of a call, whose opening bracket has been read.
fn arguments(text: &str) -> Vec<&str> {
    let (mut found, mut depth, mut quoted, mut from) = (Vec::new(), 0, false, 0);
    for (at, character) in text.char_indices() {
        match character {
            '"' => quoted = !quoted,
            _ if quoted => {}
            '(' | '[' => depth += 1,
            ')' | ']' if depth > 0 => depth -= 1,
            ')' | ',' if depth == 0 => {
                found.push(text[from..at].trim());
                from = at + 1;
                if character == ')' {
                    break;
                }
            }
            _ => {}
        }
    }
    found.retain(|argument| !argument.is_empty());
    found
}

/// The text in quotes, if it is one, on one line.
fn literal(text: &str) -> Option<String> {
    let (_, from) = text.split_once('"')?;
    let (literal, _) = from.split_once('"')?;
    Some(literal.split_whitespace().collect::<Vec<_>>().join(" ").replace("\\ ", ""))
}

/// The text that a variable is bound to.
fn bound(before: &str, name: &str) -> Option<String> {
    let (_, after) = before.rsplit_once(&format!("let {name} = "))?;
    literal(after)
}

/// The type of the field or variable that is registered, as the same file declares it.
fn kind(text: &str, registered: &str) -> &'static str {
    let name = registered.split("self.").last().unwrap_or_default();
    let name = name.rsplit('.').find(|word| !word.contains("clone")).unwrap_or(name);
    let name = name.trim_matches(|c: char| !c.is_alphanumeric() && c != '_');
    let declared = text
        .lines()
        .find(|line| line.contains(&format!(" {name}:")) || line.contains(&format!("let {name} =")));
    let kinds = ["Counter", "Gauge", "Histogram", "Info", "Tally"];
    match kinds.into_iter().find(|kind| declared.is_some_and(|line| line.contains(kind))) {
        Some("Counter") => "counter",
        Some("Histogram") => "histogram",
        Some("Info") => "info",
        // Counts under a name of its own, which a counter would lengthen.
        Some("Tally") => "unknown",
        _ => "gauge",
    }
}
