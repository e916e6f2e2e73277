//! What the room that keeps the virtual nodes does to them, as far as these tests need it.

use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{Node, Taint};
use kube::Api;
use kube::api::{Patch, PatchParams};
use liqo_api::names::UNREACHABLE_TAINT;
use serde_json::json;

use crate::world::World;

/// The node says whether its provider answers.
pub(crate) async fn mark(world: &World<'_>, ready: bool) {
    let nodes: Api<Node> = Api::all(world.here.clone());
    let status = if ready { "True" } else { "False" };
    let now = jiff::Timestamp::from_second(jiff::Timestamp::now().as_second()).unwrap();
    let condition = json!({ "type": "Ready", "status": status, "reason": "Test", "message": "",
        "lastHeartbeatTime": now, "lastTransitionTime": now });
    let patch = Patch::Strategic(json!({ "status": { "conditions": [condition] } }));
    nodes.patch_status(&world.node, &PatchParams::default(), &patch).await.unwrap();
    let mut taints = nodes.get(&world.node).await.unwrap().spec.unwrap().taints.unwrap_or_default();
    taints.retain(|taint| taint.key != UNREACHABLE_TAINT);
    if !ready {
        let (key, effect) = (UNREACHABLE_TAINT.to_owned(), "NoExecute".to_owned());
        taints.push(Taint { key, effect, ..Taint::default() });
    }
    let patch = Patch::Merge(json!({ "spec": { "taints": taints } }));
    nodes.patch(&world.node, &PatchParams::default(), &patch).await.unwrap();
}

/// The node lives, as its Lease says.
pub(crate) async fn beat(world: &World<'_>) {
    let leases: Api<Lease> = world.at_home("kube-node-lease");
    let patch = Patch::Merge(json!({ "spec": { "renewTime": format!("{:.6}", jiff::Timestamp::now()) } }));
    leases.patch(&world.node, &PatchParams::default(), &patch).await.unwrap();
}
