//! The cluster itself: its version, what it is, the user's rights, its nodes.

use super::{World, anchor};
use crate::facts::Unread;
use crate::finding::Finding;
use crate::permissions::{Right, snippet};

/// The rules of the kinds need an API server of at least this version.
pub(crate) const OLDEST: (u64, u64) = (1, 32);
/// More missing rights than this are counted, not listed: all of them are in the hint.
const LISTED: usize = 6;

pub(super) fn version(world: &World<'_>) -> Finding {
    let name = format!("Kubernetes is {}.{} or later", OLDEST.0, OLDEST.1);
    let told = &world.facts.version;
    match minor(told) {
        Some(version) if version >= OLDEST => Finding::ok(name, told),
        Some(_) => Finding::failed(name, format!("this one is {told}"))
            .hint("upgrade the cluster first; liqo's kinds need rules that older API servers do not know")
            .docs(anchor::VERSION),
        None => {
            Finding::warning(name, format!("the API server calls its version {told:?}, which tells nothing"))
                .docs(anchor::VERSION)
        }
    }
}

fn minor(version: &str) -> Option<(u64, u64)> {
    let mut parts = version.trim_start_matches('v').split('.');
    let number = |text: &str| text.trim_end_matches(|c: char| !c.is_ascii_digit()).parse().ok();
    Some((number(parts.next()?)?, number(parts.next()?)?))
}

pub(super) fn distribution(world: &World<'_>) -> Option<Finding> {
    let told = world.told?;
    let found = world.detected.distribution.as_ref()?;
    (found.value != told).then(|| {
        Finding::warning(
            format!("the cluster is {told}, as was said"),
            format!("it looks like {} (from {})", found.value, found.source),
        )
        .hint("check --context; without naming a distribution, liqoctl goes by what it finds")
        .docs(anchor::DISTRIBUTION)
    })
}

pub(super) fn rights(world: &World<'_>) -> Finding {
    const NAME: &str = "you have the rights that installing needs";
    let rights = world.rights;
    if let Some(why) = &rights.unasked {
        return Finding::warning(NAME, format!("could not be asked: {why}")).docs(anchor::RIGHTS);
    }
    let all: Vec<Right> = rights.missing.iter().chain(&rights.ungrantable).cloned().collect();
    if all.is_empty() {
        return Finding::ok(NAME, "");
    }
    let listed: Vec<String> = all.iter().take(LISTED).map(ToString::to_string).collect();
    let more = if all.len() > LISTED { format!(" and {} more", all.len() - LISTED) } else { String::new() };
    let who = rights.subject.as_ref().map_or_else(|| "you".to_owned(), ToString::to_string);
    Finding::failed(NAME, format!("{who} may not {}{more}", listed.join(", ")))
        .hint(format!(
            "ask an administrator to run liqoctl install, or to give you the rights that are missing:\n{}\
             kubectl apply -f - <<'EOF'\n{}EOF",
            make_namespace(world, &all),
            snippet(&all, rights.subject.as_ref())
        ))
        .docs(anchor::RIGHTS)
}

/// A Role needs its namespace to be there.
fn make_namespace(world: &World<'_>, missing: &[Right]) -> String {
    let absent = world.existing.namespace.is_none();
    let inside = missing.iter().any(|right| right.namespace.as_deref() == Some(world.namespace));
    if absent && inside { format!("kubectl create namespace {}\n", world.namespace) } else { String::new() }
}

pub(super) fn useful_rights(world: &World<'_>) -> Option<Finding> {
    let missing: Vec<String> = world.rights.useful.iter().map(ToString::to_string).collect();
    let unread: Vec<String> = world.facts.unread.iter().chain(&world.existing.unread).map(unread).collect();
    if missing.is_empty() && unread.is_empty() {
        return None;
    }
    let mut why = Vec::new();
    if !missing.is_empty() {
        why.push(format!("you may not {}", missing.join(", ")));
    }
    if !unread.is_empty() {
        why.push(format!("could not be read: {}", unread.join(", ")));
    }
    Some(
        Finding::warning("everything could be looked at", why.join(". "))
            .hint("what is not seen cannot be checked, and a failed installation can be explained less well")
            .docs(anchor::RIGHTS),
    )
}

/// What could not be read; that it is forbidden needs no more words.
fn unread(one: &Unread) -> String {
    let why = if one.why.contains("is forbidden") { "forbidden" } else { one.why.as_str() };
    format!("{} ({why})", one.what)
}

pub(super) fn nodes(world: &World<'_>) -> Finding {
    const NAME: &str = "a node is ready for the manager";
    let nodes = &world.facts.nodes;
    let unread = world.facts.unread.iter().any(|one| one.what == "nodes");
    if unread {
        return Finding::warning(NAME, "the nodes cannot be listed").docs(anchor::NODES);
    }
    let usable = nodes.iter().filter(|node| node.ready && node.schedulable);
    let short = |pressure: &str| {
        let names: Vec<&str> = nodes
            .iter()
            .filter(|node| node.pressures.iter().any(|one| one == pressure))
            .map(|node| node.name.as_str())
            .collect();
        (!names.is_empty()).then(|| format!("{pressure} on {}", names.join(", ")))
    };
    let pressures: Vec<String> =
        ["DiskPressure", "MemoryPressure", "PIDPressure"].into_iter().filter_map(short).collect();
    let at_ease = usable.clone().filter(|node| node.pressures.is_empty()).count();
    let seen = format!("{} of {} ready", nodes.iter().filter(|node| node.ready).count(), nodes.len());
    let missing = if nodes.is_empty() {
        "the cluster has no node".to_owned()
    } else if usable.count() == 0 {
        format!("{seen}, none that takes ordinary pods")
    } else if at_ease == 0 {
        format!("{seen}, none without trouble: {}", pressures.join("; "))
    } else if pressures.is_empty() {
        return Finding::ok(NAME, seen);
    } else {
        format!("{seen}, but {}", pressures.join("; "))
    };
    let hint = if pressures.iter().any(|text| text.starts_with("DiskPressure")) {
        "make room on the disk of that node (unused images: crictl rmi --prune); pods are evicted from it until then"
    } else {
        "kubectl describe nodes tells why; the installation waits until a node takes the manager"
    };
    Finding::warning(NAME, missing).hint(hint).docs(anchor::NODES)
}
