//! The API server itself.

use liqo_install::finding::Finding;

use super::{World, docs};

pub(super) const ANSWERS: &str = "the API server answers";
/// A token or lease is judged by the minute; what differs less does no harm.
const CLOCK_TOLERANCE_SECONDS: i64 = 30;
/// The oldest version whose API server knows all that our kinds ask of it.
const OLDEST: (u32, u32) = (1, 32);

pub(super) fn answers(world: &World<'_>) -> Vec<Finding> {
    let mut findings = vec![Finding::ok(ANSWERS, world.facts.server.address.clone())];
    if let Some(user) = &world.hello.user {
        findings.push(Finding::ok("the credentials are accepted", format!("as {user}")));
    }
    findings.extend(world.hello.ahead.map(clock));
    findings
}

fn clock(ahead: i64) -> Finding {
    const NAME: &str = "this machine and the API server agree on the time";
    let way = if ahead < 0 { "behind" } else { "ahead" };
    match ahead.abs() {
        0..=CLOCK_TOLERANCE_SECONDS => Finding::ok(NAME, ""),
        seconds => Finding::warning(NAME, format!("this machine is {seconds} s {way}"))
            .hint("Set both clocks by NTP; ages and certificates are judged by them")
            .docs(docs::CLOCK),
    }
}

pub(super) fn version(world: &World<'_>) -> Vec<Finding> {
    let name = format!("Kubernetes is {}.{} or later", OLDEST.0, OLDEST.1);
    let version = &world.facts.server.version;
    vec![match parse(version) {
        Some(found) if found >= OLDEST => Finding::ok(name, version.clone()),
        Some(_) => Finding::failed(name, format!("it is {version}"))
            .hint("Upgrade the cluster: older API servers do not know rules that our kinds rely on")
            .docs(docs::KUBERNETES),
        None => {
            Finding::warning(name, format!("cannot tell from the version {version:?}")).docs(docs::KUBERNETES)
        }
    }]
}

/// `v1.34.1+k3s1` is 1.34.
fn parse(version: &str) -> Option<(u32, u32)> {
    let mut parts = version.strip_prefix('v').unwrap_or(version).split('.');
    let number = |part: Option<&str>| {
        let digits: String = part?.chars().take_while(char::is_ascii_digit).collect();
        digits.parse().ok()
    };
    Some((number(parts.next())?, number(parts.next())?))
}
