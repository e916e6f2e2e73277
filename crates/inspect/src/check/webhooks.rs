//! Webhooks that nobody answers.

use liqo_install::finding::Finding;

use super::{World, docs, not_looked_at};
use crate::webhook::{Answer, Webhook};

const NAME: &str = "no webhook was left behind";

pub(super) fn check(world: &World<'_>) -> Vec<Finding> {
    let webhooks = match &world.facts.webhooks {
        Ok(webhooks) => webhooks,
        Err(why) => return vec![not_looked_at(NAME, why)],
    };
    let mut findings: Vec<Finding> = webhooks.iter().filter_map(trouble).collect();
    if findings.is_empty() {
        findings.push(Finding::ok(NAME, ""));
    }
    findings
}

fn trouble(webhook: &Webhook) -> Option<Finding> {
    let Webhook { kind, configuration, name, failure_policy, namespace, service, answer } = webhook;
    let title = format!("webhook {name} is answered");
    let lack = match answer {
        Answer::Somebody => return None,
        Answer::Unknown(why) => return Some(not_looked_at(&title, why)),
        Answer::NoService => "which is not there",
        Answer::Nobody => "behind which no pod is ready",
    };
    let why = format!("{kind} {configuration} calls Service {service} of namespace {namespace}, {lack}");
    let finding = if failure_policy == "Ignore" {
        Finding::warning(title, why)
    } else {
        Finding::failed(title, format!("{why}; what it is asked about is refused until then"))
    };
    let hint =
        format!("If liqo was removed: kubectl delete {kind} {configuration}. Else run liqoctl install again");
    Some(finding.hint(hint).docs(docs::WEBHOOKS))
}
