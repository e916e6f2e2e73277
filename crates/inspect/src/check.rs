//! Is everything as it should be? Sections of findings, from facts that were read once.

mod authentication;
mod configuration;
mod control_plane;
mod definitions;
pub(crate) mod docs;
mod identity;
mod kubernetes;
mod namespace;
mod network;
mod peers;
mod permissions;
mod pods;
mod rights;
mod webhooks;

use liqo_install::finding::{Finding, Outcome};
use serde::Serialize;

use crate::facts::{Facts, Hello, Server};
use crate::installation::{Installation, Unread};
use crate::version::Build;

/// What `liqoctl check` tells.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Report {
    /// Nothing has failed; there may be warnings.
    pub healthy: bool,
    /// The findings, by what they are about.
    pub sections: Vec<Section>,
}

/// Findings about one thing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Section {
    /// What they are about.
    pub name: String,
    /// What was found, good and bad.
    pub findings: Vec<Finding>,
}

impl Report {
    /// These sections; those without findings are left out.
    pub fn new(sections: Vec<Section>) -> Self {
        let sections: Vec<Section> = sections.into_iter().filter(|it| !it.findings.is_empty()).collect();
        let healthy = sections.iter().flat_map(|it| &it.findings).all(|it| it.result != Outcome::Failed);
        Self { healthy, sections }
    }

    /// What is not as it should be, the worst first.
    pub fn problems(&self) -> Vec<&Finding> {
        let all = self.sections.iter().flat_map(|section| &section.findings);
        let mut problems: Vec<&Finding> = all.filter(|it| it.result != Outcome::Ok).collect();
        problems.sort_by_key(|finding| std::cmp::Reverse(finding.result));
        problems
    }
}

impl Section {
    /// Findings under a name.
    pub fn new(name: &str, findings: Vec<Finding>) -> Self {
        Self { name: name.to_owned(), findings }
    }
}

impl Installation {
    /// Looks at everything.
    pub async fn check(&self, server: &Server) -> Report {
        let (facts, hello) = tokio::join!(Box::pin(self.facts(server)), self.hello());
        evaluate(&World::new(&facts, &hello))
    }
}

/// What findings are made of.
#[derive(Clone, Copy)]
pub(crate) struct World<'a> {
    pub(crate) facts: &'a Facts,
    pub(crate) hello: &'a Hello,
    /// The version of this program.
    pub(crate) client: &'a str,
}

impl<'a> World<'a> {
    pub(crate) fn new(facts: &'a Facts, hello: &'a Hello) -> Self {
        Self { facts, hello, client: Build::this().version }
    }
}

/// What the facts mean.
pub(crate) fn evaluate(world: &World<'_>) -> Report {
    let mut sections = vec![
        Section::new("kubernetes-api", kubernetes::answers(world)),
        Section::new("kubernetes-version", kubernetes::version(world)),
    ];
    if control_plane::is_absent(world.facts) {
        sections.push(Section::new("control-plane", control_plane::absent(world.facts)));
        sections.push(Section::new("leftovers", webhooks::check(world)));
        return Report::new(sections);
    }
    sections.extend([
        Section::new("permissions", permissions::check(world)),
        Section::new("namespace", namespace::check(world)),
        Section::new("kinds", definitions::check(world)),
        Section::new("control-plane", control_plane::check(world)),
        Section::new("identity", identity::check(world)),
        Section::new("configuration", configuration::check(world)),
        Section::new("network", network::check(world)),
        Section::new("authentication", authentication::check(world)),
        Section::new("discovery", authentication::discovery(world)),
        Section::new("webhooks", webhooks::check(world)),
        Section::new("peers", peers::check(world)),
    ]);
    Report::new(sections)
}

/// What was found before an installation.
pub fn before_installing(server: &Server, findings: Vec<Finding>) -> Report {
    let answers = Finding::ok(kubernetes::ANSWERS, server.address.clone());
    Report::new(vec![Section::new("kubernetes-api", vec![answers]), Section::new("pre-install", findings)])
}

/// The cluster could not be asked at all.
pub fn unreachable(why: &str, hint: &str, refused: bool) -> Report {
    let anchor = if refused { docs::CREDENTIALS } else { docs::API_SERVER };
    let finding = Finding::failed(kubernetes::ANSWERS, why).hint(hint).docs(anchor);
    Report::new(vec![Section::new("kubernetes-api", vec![finding])])
}

/// What to say about something that could not be read and is not merely absent.
fn not_looked_at(name: &str, why: &Unread) -> Finding {
    match why {
        Unread::Forbidden { what, .. } => {
            Finding::warning(name, format!("not looked at: no permission to read {what}"))
                .docs(docs::PERMISSIONS)
        }
        other => {
            Finding::failed(name, other.to_string()).docs(docs::API_SERVER).hint("Try again in a moment")
        }
    }
}

#[cfg(test)]
mod tests;
#[cfg(test)]
pub(crate) mod worlds;
