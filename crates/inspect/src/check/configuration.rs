//! What the cluster says of itself: the conditions of its ClusterConfig.

use liqo_install::finding::Finding;
use serde_json::Value;

use super::{World, docs, not_looked_at};

const THERE: &str = "the manager tells how the cluster is";

pub(super) fn check(world: &World<'_>) -> Vec<Finding> {
    let config = match &world.facts.config {
        Ok(config) => config,
        Err(why) if why.is_absent() => {
            return vec![
                Finding::failed(THERE, why.to_string())
                    .hint("The manager makes it at its first start; what keeps it from that: liqoctl logs")
                    .docs(docs::CONDITIONS),
            ];
        }
        Err(why) => return vec![not_looked_at(THERE, why)],
    };
    let conditions = config["status"]["conditions"].as_array().map(Vec::as_slice).unwrap_or_default();
    if conditions.is_empty() {
        return vec![
            Finding::failed(THERE, "the ClusterConfig has no conditions yet")
                .hint("Is a manager running? See control-plane above, and liqoctl logs")
                .docs(docs::CONDITIONS),
        ];
    }
    conditions.iter().map(condition).collect()
}

fn condition(condition: &Value) -> Finding {
    let text = |field: &str| condition[field].as_str().unwrap_or_default().to_owned();
    let name = format!("{} is true", text("type"));
    if text("status") == "True" {
        return Finding::ok(name, "");
    }
    let said: Vec<String> =
        [text("reason"), text("message")].into_iter().filter(|it| !it.is_empty()).collect();
    Finding::failed(name, format!("it is {}: {}", text("status"), said.join(": ")))
        .hint("The message tells what to do; more is in liqoctl logs")
        .docs(docs::CONDITIONS)
}
