//! How a status looks to people.

use jiff::Timestamp;
use liqo_inspect::{Finding, Outcome, Status, age};

use crate::style::{Mark, Style};
use crate::table::Table;

pub(super) fn text(status: &Status, wide: bool, style: Style) -> String {
    let mut parts = Vec::new();
    if status.installed {
        parts.push(summary(status, wide));
        parts.extend(pods(status, wide).map(|table| titled("PODS", &table, style)));
        parts.extend(conditions(status, wide).map(|table| titled("CONDITIONS", &table, style)));
        parts.extend(peers(status, wide).map(|table| titled("PEERS", &table, style)));
    }
    if !status.problems.is_empty() {
        let lines: String = status.problems.iter().map(|problem| finding(problem, style)).collect();
        parts.push(match status.installed {
            true => titled("PROBLEMS", &lines, style),
            false => format!("liqo is not installed in namespace {}\n\n{lines}", status.namespace),
        });
    }
    parts.join("\n")
}

fn titled(title: &str, text: &dyn ToString, style: Style) -> String {
    format!("{}\n{}", style.bold(title), text.to_string())
}

/// A finding with the mark in colour; below it what to do and where to read more.
pub(crate) fn finding(finding: &Finding, style: Style) -> String {
    let mark = style.mark(match finding.result {
        Outcome::Ok => Mark::Good,
        Outcome::Warning => Mark::Warning,
        Outcome::Failed => Mark::Bad,
    });
    let why = if finding.why.is_empty() { String::new() } else { format!(": {}", finding.why) };
    let mut text = format!("{mark} {}{why}\n", finding.name);
    if finding.result != Outcome::Ok {
        text.extend(finding.hint.lines().map(|line| format!("    {line}\n")));
        text.extend(finding.link().map(|link| format!("    {}\n", style.dim(&format!("see {link}")))));
    }
    text
}

fn summary(status: &Status, wide: bool) -> String {
    let mut lines: Vec<(&str, String)> = Vec::new();
    let unknown = || "not known yet".to_owned();
    let cluster = status.cluster.as_ref();
    lines.push(("Cluster", cluster.map_or_else(unknown, |it| format!("{} (ID {})", it.name, it.id))));
    if let Some(fingerprint) = cluster.and_then(|it| it.fingerprint.as_ref()) {
        lines.push(("Fingerprint", fingerprint.clone()));
    }
    lines.push(("Working mode", status.working_mode.clone().unwrap_or_else(unknown)));
    let versions = &status.versions;
    let manager = versions.manager.clone().unwrap_or_else(unknown);
    let versions =
        format!("liqoctl {}, manager {manager}, Kubernetes {}", versions.client, versions.kubernetes);
    lines.push(("Versions", versions));
    let leader = status.leader.as_ref().map(|leader| {
        let renewed = leader.renewed.map(|time| format!(", seen {} ago", since(status.at, time)));
        format!("{}{}", leader.name, renewed.unwrap_or_default())
    });
    lines.push(("Leader", leader.unwrap_or_else(|| "none".into())));
    let reached = status.auth_url.clone().unwrap_or_else(|| "no address that other clusters know".into());
    lines.push(("Reached at", reached));
    if let Some(local) = status.local_network {
        let parts = [(local.discovery, "finds others"), (local.advertisement, "is found")];
        let parts: Vec<_> = parts.into_iter().filter(|(does, _)| *does).map(|(_, what)| what).collect();
        lines.push(("Local network", parts.join(", ")));
    }
    if let Some(network) = network(status) {
        lines.push(("Networks", network));
    }
    if wide && !status.capabilities.is_empty() {
        lines.push(("Capabilities", status.capabilities.join(", ")));
    }
    lines.into_iter().map(|(name, value)| format!("{:<14} {value}\n", format!("{name}:"))).collect()
}

fn network(status: &Status) -> Option<String> {
    let network = status.network.as_ref()?;
    let value = |key: &str| network.get(key).map(|value| value.trim()).filter(|value| !value.is_empty());
    let parts = [
        ("pods", "podCIDR"),
        ("Services", "serviceCIDR"),
        ("reserved", "reservedSubnets"),
        ("MTU", "mtu"),
        ("port", "listeningPort"),
        ("API server for peers", "apiServerAddress"),
    ];
    let known = parts.into_iter().filter_map(|(name, key)| Some(format!("{name} {}", value(key)?)));
    Some(known.collect::<Vec<_>>().join(", ")).filter(|text| !text.is_empty())
}

fn pods(status: &Status, wide: bool) -> Option<Table> {
    let headings = ["NAME", "READY", "STATUS", "RESTARTS", "AGE", "NODE", "IMAGE", "COMPONENT"];
    let columns = if wide { headings.len() } else { headings.len() - 1 };
    let mut table = Table::of(&headings[..columns]);
    for pod in &status.pods {
        let mut cells = vec![
            pod.name.clone(),
            format!("{}/{}", pod.ready_containers, pod.containers),
            pod.status.clone(),
            pod.restarts.to_string(),
            pod.created.map_or_else(|| "-".into(), |created| since(status.at, created)),
            pod.node.clone().unwrap_or_else(|| "-".into()),
            pod.image.clone().unwrap_or_else(|| "-".into()),
            pod.component.clone(),
        ];
        cells.truncate(columns);
        table.push(cells);
    }
    (!status.pods.is_empty()).then_some(table)
}

fn conditions(status: &Status, wide: bool) -> Option<Table> {
    let mut table = Table::new(["TYPE", "STATUS", "SINCE", "REASON", "MESSAGE"]);
    for condition in &status.conditions {
        table.row([
            condition.type_.clone(),
            condition.status.clone(),
            condition.since.map_or_else(|| "-".into(), |time| since(status.at, time)),
            condition.reason.clone(),
            if wide { condition.message.clone() } else { shorten(&condition.message) },
        ]);
    }
    (!status.conditions.is_empty()).then_some(table)
}

fn peers(status: &Status, wide: bool) -> Option<Table> {
    let headings = ["NAME", "OUTGOING", "INCOMING", "NETWORK", "AUTHENTICATION", "CLUSTER ID"];
    let columns = if wide { headings.len() } else { headings.len() - 1 };
    let mut table = Table::of(&headings[..columns]);
    for peer in &status.peers {
        let mut cells = vec![
            peer.name.clone(),
            peer.outgoing.clone(),
            peer.incoming.clone(),
            peer.network.clone(),
            peer.authentication.clone(),
            peer.cluster_id.clone().unwrap_or_else(|| "-".into()),
        ];
        cells.truncate(columns);
        table.push(cells);
    }
    (!status.peers.is_empty()).then_some(table)
}

/// The beginning of a long text; the whole is among the problems, or in `-o wide`.
fn shorten(text: &str) -> String {
    const LENGTH: usize = 80;
    if text.chars().count() <= LENGTH {
        return text.to_owned();
    }
    format!("{}…", text.chars().take(LENGTH - 1).collect::<String>())
}

fn since(now: Timestamp, time: Timestamp) -> String {
    age::text(now.duration_since(time))
}
