//! Webhooks that nobody answers.

use liqo_install::finding::Finding;

use super::{World, docs, not_looked_at};
use crate::webhook::Webhook;

const NAME: &str = "no webhook was left behind";

pub(super) fn check(world: &World<'_>) -> Vec<Finding> {
    let webhooks = match &world.facts.webhooks {
        Ok(webhooks) => webhooks,
        Err(why) => return vec![not_looked_at(NAME, why)],
    };
    let Ok(services) = &world.facts.services else { return vec![] };
    let answered = |webhook: &&Webhook| {
        services.iter().any(|service| {
            service.metadata.name.as_deref() == Some(&webhook.service)
                && service.metadata.namespace.as_deref() == Some(&webhook.namespace)
        })
    };
    let mut findings: Vec<Finding> =
        webhooks.iter().filter(|webhook| !answered(webhook)).map(orphan).collect();
    if findings.is_empty() {
        findings.push(Finding::ok(NAME, ""));
    }
    findings
}

fn orphan(webhook: &Webhook) -> Finding {
    let Webhook { kind, configuration, name, failure_policy, namespace, service } = webhook;
    let why = format!(
        "{kind} {configuration} calls Service {service} of namespace {namespace}, which is not there"
    );
    let finding = if failure_policy == "Ignore" {
        Finding::warning(format!("webhook {name} is answered"), why)
    } else {
        Finding::failed(
            format!("webhook {name} is answered"),
            format!("{why}; what it is asked about is refused until then"),
        )
    };
    finding
        .hint(format!(
            "If liqo was removed: kubectl delete {kind} {configuration}. Else run liqoctl install again"
        ))
        .docs(docs::WEBHOOKS)
}
