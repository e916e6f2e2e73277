//! How an installation looks to people and programs.

use std::fmt::Write as _;
use std::path::Path;

use anyhow::{Context as _, Result, bail};
use liqo_install::finding::{Finding, Outcome};
use liqo_install::{Action, Done, Outlook, Planned, Prepared, Progress, Target};
use serde_json::{Value, json};

use super::Steps;
use crate::output::DataFormat;

/// What was found, each with where it came from.
pub(super) fn facts(outlook: &Outlook, steps: &Steps) {
    match &outlook.distribution {
        Some(found) => steps.done(&format!("distribution: {found}")),
        None => steps.warn("the distribution is none that liqoctl knows: it is treated as plain Kubernetes"),
    }
    let values = &outlook.values;
    for (label, found) in &values.report {
        steps.done(&format!("{label}: {found}"));
    }
    for note in &values.notes {
        steps.warn(note);
    }
}

/// What was checked: the good in one line, the rest with what to do.
pub(super) fn findings(findings: &[Finding], steps: &Steps) {
    let good = findings.iter().filter(|finding| finding.result == Outcome::Ok).count();
    steps.done(&format!("{good} of {} checks passed", findings.len()));
    // What failed is told by the error that ends the command.
    for finding in findings.iter().filter(|finding| finding.result == Outcome::Warning) {
        steps.warn(&format!("{}: {}", finding.name, finding.why));
        let mut more = finding.hint.clone();
        if let Some(link) = finding.link() {
            let _ = write!(more, "\nsee {link}");
        }
        steps.detail(more.trim());
    }
}

/// Values as a file that Helm takes.
pub(super) fn values_text(values: &Value, format: Option<DataFormat>) -> Result<String> {
    Ok(match format {
        Some(DataFormat::Json) => serde_json::to_string_pretty(values)? + "\n",
        Some(DataFormat::Yaml) | None => serde_saphyr::to_string(values)?,
    })
}

/// Writes values; what somebody has edited is not lost.
pub(super) fn write_values(path: &Path, text: &str, force: bool) -> Result<()> {
    if let Ok(there) = std::fs::read_to_string(path)
        && there != text
        && !force
    {
        bail!(
            "{} is there already and has other values. Choose another file, or overwrite it with --force",
            path.display()
        );
    }
    std::fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))
}

fn verb(action: &Action) -> &'static str {
    match action {
        Action::Create => "create",
        Action::Change => "change",
        Action::Keep => "keep",
        Action::Remove => "remove",
    }
}

/// What would change: for people a line each, for programs the objects.
pub(super) fn changes(prepared: &Prepared, format: Option<DataFormat>) -> Result<String> {
    let changing: Vec<&Planned> = prepared.changes().filter(|one| one.is_change()).collect();
    let objects: Vec<&Value> = changing.iter().filter_map(|one| one.object.as_ref()).collect();
    Ok(match format {
        Some(DataFormat::Json) => {
            serde_json::to_string_pretty(&json!({"apiVersion": "v1", "kind": "List", "items": objects}))?
                + "\n"
        }
        Some(DataFormat::Yaml) => {
            let texts: Vec<String> = objects.iter().map(serde_saphyr::to_string).collect::<Result<_, _>>()?;
            texts.join("---\n")
        }
        None => lines(&changing),
    })
}

fn lines(changing: &[&Planned]) -> String {
    let mut text = String::new();
    for one in changing {
        let _ = writeln!(text, "{:<8}{}", verb(&one.action), one.id);
        for difference in &one.differences {
            let _ = writeln!(text, "          {difference}");
        }
    }
    text
}

/// How much would change, and what that could not be asked about.
pub(super) fn summary(prepared: &Prepared) -> String {
    let count = |action: Action| prepared.changes().filter(|one| one.action == action).count();
    let mut text = match prepared.is_done() {
        true => "nothing to change".to_owned(),
        false => format!(
            "{} objects would be created, {} changed, {} removed, {} stay as they are",
            count(Action::Create),
            count(Action::Change),
            count(Action::Remove),
            count(Action::Keep)
        ),
    };
    text += "; nothing was done, as --dry-run says";
    let unasked: Vec<&Planned> = prepared.changes().filter(|one| one.unasked.is_some()).collect();
    if let Some(why) = unasked.first().and_then(|one| one.unasked.as_deref()) {
        let _ = write!(
            text,
            "\nnote: the API server could not be asked about {} of them, which are shown as they would be sent: {why}",
            unasked.len()
        );
    }
    for finding in prepared.findings.iter().filter(|finding| finding.result == Outcome::Failed) {
        let _ = write!(text, "\n{finding}");
    }
    text
}

/// For programs: what was done.
pub(super) fn result(target: &Target, prepared: &Prepared, done: Done) -> Value {
    let done = match done {
        Done::Nothing => "nothing",
        Done::Installed => "installed",
        Done::Upgraded => "upgraded",
    };
    let facts: serde_json::Map<String, Value> = prepared
        .outlook
        .values
        .report
        .iter()
        .map(|(label, found)| (camel_case(label), json!({"value": found.value, "source": found.source})))
        .collect();
    json!({
        "done": done,
        "version": prepared.version,
        "namespace": target.namespace,
        "distribution": prepared.outlook.distribution,
        "facts": facts,
        "findings": prepared.findings,
    })
}

/// `pod CIDR` as programs read it: `podCIDR`.
fn camel_case(label: &str) -> String {
    let mut words = label.split(' ');
    let first = words.next().unwrap_or_default();
    let capital = |word: &str| {
        let mut letters = word.chars();
        letters
            .next()
            .map(|first| first.to_uppercase().chain(letters).collect::<String>())
            .unwrap_or_default()
    };
    std::iter::once(first.to_owned()).chain(words.map(capital)).collect()
}

/// For people: what was done, and what comes next.
pub(super) fn done(target: &Target, prepared: &Prepared, done: Done) -> String {
    let version = &prepared.version;
    let namespace = &target.namespace;
    let first = match done {
        Done::Nothing => format!(
            "liqo {version} is installed in namespace {namespace}, as it should be: nothing to change"
        ),
        Done::Installed => format!("liqo {version} is installed in namespace {namespace} and ready"),
        Done::Upgraded => format!("liqo {version} in namespace {namespace} is up to date and ready"),
    };
    let flags = target.flags();
    format!("{first}\nlook at it: liqoctl status{flags}, liqoctl check{flags}")
}
