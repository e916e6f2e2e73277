//! Notes on a node when its provider did not answer, once it does again.

use jiff::Timestamp;
use liqo_api::annotations;
use liqo_api::names::UNREACHABLE_TAINT;
use liqo_api::outage::Outage;
use serde_json::{Map, Value, json};

use crate::node::Facts;

/// Adds the note to `annotations` if `spec` takes the taint away that says that nobody answers: in the same write, so that
/// neither is there without the other. The taint knows since when, whoever led then.
pub(super) fn note(
    now: Timestamp,
    facts: &Facts,
    spec: &Map<String, Value>,
    annotations: &mut Map<String, Value>,
) {
    let Some(taint) = facts.taints.iter().find(|taint| taint.key == UNREACHABLE_TAINT) else { return };
    let Some(taints) = spec.get("taints").and_then(Value::as_array) else { return };
    if taints.iter().any(|taint| taint["key"] == UNREACHABLE_TAINT) {
        return;
    }
    let from = taint.time_added.as_ref().map_or(now, |time| time.0);
    let outage = Outage::new(from, now, Outage::read(&facts.annotations));
    annotations.insert(annotations::LAST_OUTAGE.to_owned(), json!(outage.to_string()));
}
