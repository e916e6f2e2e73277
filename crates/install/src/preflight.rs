//! Everything that is checked before the first write. Pure: what was read, in; findings, out.

mod identity;
mod neighbours;
mod networks;
mod platform;
mod ports;

use crate::changes::Planned;
use crate::detect::{Detected, Distribution};
use crate::existing::Existing;
use crate::facts::Facts;
use crate::finding::Finding;
use crate::permissions::Rights;
use crate::values::Settings;

/// Headings of docs/troubleshooting.md.
pub(crate) mod anchor {
    pub(crate) const VERSION: &str = "kubernetes-is-too-old";
    pub(crate) const DISTRIBUTION: &str = "the-wrong-distribution";
    pub(crate) const RIGHTS: &str = "rights-are-missing";
    pub(crate) const NETWORKS: &str = "networks-overlap-or-are-unknown";
    pub(crate) const API_SERVER: &str = "peers-cannot-reach-the-api-server";
    pub(crate) const PORT: &str = "a-port-of-the-nodes-is-taken";
    pub(crate) const NEIGHBOUR: &str = "another-liqo-is-in-the-cluster";
    pub(crate) const NAME: &str = "the-clusters-name";
    pub(crate) const DOWNGRADE: &str = "a-newer-version-is-installed";
    pub(crate) const NODES: &str = "nodes-are-not-ready";
    pub(crate) const WEBHOOKS: &str = "a-webhook-stands-in-the-way";
    pub(crate) const DELETED: &str = "something-is-still-being-deleted";
}

/// Everything that the checks look at.
pub(crate) struct World<'a> {
    pub(crate) facts: &'a Facts,
    pub(crate) detected: &'a Detected,
    /// The distribution that the user named.
    pub(crate) told: Option<Distribution>,
    pub(crate) existing: &'a Existing,
    pub(crate) settings: &'a Settings,
    pub(crate) planned: &'a [Planned],
    pub(crate) rights: &'a Rights,
    /// Why peers would not reach the API server, if that was tried.
    pub(crate) unreachable: Option<&'a str>,
    /// The version that would be installed.
    pub(crate) version: &'a str,
    pub(crate) namespace: &'a str,
    /// `--context …` and `-n …` for commands that the user is to type.
    pub(crate) flags: &'a str,
    /// `--force`: what would be refused is only told.
    pub(crate) force: bool,
}

/// Checks all of it.
pub(crate) fn findings(world: &World<'_>) -> Vec<Finding> {
    let mut findings = vec![platform::version(world)];
    findings.extend(platform::distribution(world));
    findings.push(platform::rights(world));
    findings.extend(platform::useful_rights(world));
    findings.push(platform::nodes(world));
    findings.push(networks::networks(world));
    findings.push(networks::api_server(world));
    findings.push(ports::tunnels(world));
    findings.extend(ports::others(world));
    findings.push(neighbours::another_liqo(world));
    findings.extend(neighbours::foreign_objects(world));
    findings.extend(neighbours::webhooks(world));
    findings.extend(neighbours::being_deleted(world));
    findings.push(identity::name(world));
    findings.push(identity::downgrade(world));
    findings
}

/// What is wrong with values before they are used for anything: names and networks that are none.
pub(crate) fn mistyped(settings: &Settings, existing: &Existing) -> Vec<Finding> {
    let facts = Facts::default();
    let world = World {
        facts: &facts,
        detected: &Detected::default(),
        told: None,
        existing,
        settings,
        planned: &[],
        rights: &Rights::default(),
        unreachable: None,
        version: "",
        namespace: "",
        flags: "",
        force: false,
    };
    let findings = [
        identity::name(&world),
        networks::networks(&world),
        networks::api_server(&world),
        ports::tunnels(&world),
    ];
    findings.into_iter().filter(|finding| finding.result == crate::finding::Outcome::Failed).collect()
}

/// Something that `--force` overrides.
fn refusal(world: &World<'_>, name: &str, why: String) -> Finding {
    if world.force {
        Finding::warning(name, format!("{why}; going on, as --force says"))
    } else {
        Finding::failed(name, why)
    }
}

#[cfg(test)]
mod tests;
