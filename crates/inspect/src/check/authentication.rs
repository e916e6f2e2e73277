//! Whether other clusters can come.

use liqo_install::finding::Finding;

use super::{World, docs, not_looked_at};
use crate::auth::{auth_url, waits_for_balancer};
use crate::installation::Unread;

const REACHED: &str = "other clusters can reach the authentication service";

pub(super) fn check(world: &World<'_>) -> Vec<Finding> {
    let facts = world.facts;
    let service = match &facts.auth_service {
        Ok(service) => service,
        Err(why) if why.is_absent() => {
            return vec![
                Finding::failed(REACHED, why.to_string())
                    .hint("Run liqoctl install again: it puts back what is missing")
                    .docs(docs::AUTH_SERVICE),
            ];
        }
        Err(why) => return vec![not_looked_at(REACHED, why)],
    };
    vec![match auth_url(&facts.auth_service, &facts.nodes, &facts.manager) {
        Ok(url) if waits_for_balancer(service) => {
            let why = format!("no load balancer has taken the Service liqo-auth yet; till then it is at {url}");
            Finding::warning(REACHED, why)
                .hint("If the cluster has no load balancer: liqoctl install --set auth.service.type=NodePort")
                .docs(docs::AUTH_SERVICE)
        }
        Ok(url) => Finding::ok(REACHED, url),
        Err(why) => match &facts.nodes {
            Err(unread) if unread.is_forbidden() => not_looked_at(REACHED, unread),
            _ => Finding::warning(REACHED, why)
                .hint("Only this cluster can call others then. Change it with --set auth.service.type=… or auth.config.addressOverride=…")
                .docs(docs::AUTH_SERVICE),
        },
    }]
}

/// What runs on the local network, if it is to.
pub(super) fn discovery(world: &World<'_>) -> Vec<Finding> {
    const NAME: &str = "the local network is listened to";
    let namespace = &world.facts.namespace_name;
    match &world.facts.discovery {
        Ok(discovery) => vec![super::control_plane::available(discovery, NAME, namespace)],
        // It is off unless somebody wants it.
        Err(Unread::Absent { .. }) => vec![],
        Err(why) => vec![not_looked_at(NAME, why)],
    }
}
