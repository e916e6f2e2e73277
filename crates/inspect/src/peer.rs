//! A peer as a ForeignCluster shows it.

use serde::Serialize;
use serde_json::Value;

/// A peer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PeerView {
    /// The ForeignCluster's name.
    pub name: String,
    /// The peer's cluster ID, once it is known.
    #[serde(rename = "clusterID", skip_serializing_if = "Option::is_none")]
    pub cluster_id: Option<String>,
    /// Whether we borrow from it.
    pub outgoing: String,
    /// Whether it borrows from us.
    pub incoming: String,
    /// Whether the networks are connected.
    pub network: String,
    /// Whether we have an identity there.
    pub authentication: String,
    /// What is wrong, in its conditions' words.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub troubles: Vec<String>,
}

/// Conditions in these states need somebody's attention.
const BAD: [&str; 3] = ["Error", "Denied", NOT_LET_IN];
/// Nobody has told us a token.
const NOT_LET_IN: &str = "EmptyDenied";

impl PeerView {
    /// Reads what is there; a peer of another version may have more.
    pub(crate) fn new(object: &Value) -> Self {
        let conditions =
            object["status"]["peeringConditions"].as_array().map(Vec::as_slice).unwrap_or_default();
        let state = |part: &str| {
            let condition = conditions.iter().find(|condition| condition["type"] == part);
            condition.and_then(|it| it["status"].as_str()).unwrap_or("None").to_owned()
        };
        // A cluster from which nobody wants anything need not let us in: one that was only found, or that borrows from us.
        let wanted = state("OutgoingPeering") != "None";
        let is_bad = |status: &str| BAD.contains(&status) && (wanted || status != NOT_LET_IN);
        let bad = conditions.iter().filter(|it| it["status"].as_str().is_some_and(is_bad));
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let troubles = bad.map(|it| {
            let message = text(&it["message"]);
            let message = if message.is_empty() { String::new() } else { format!(": {message}") };
            format!("{} is {}{message}", text(&it["type"]), text(&it["status"]))
        });
        Self {
            name: text(&object["metadata"]["name"]),
            cluster_id: object["spec"]["clusterIdentity"]["clusterID"].as_str().map(str::to_owned),
            outgoing: state("OutgoingPeering"),
            incoming: state("IncomingPeering"),
            network: state("NetworkStatus"),
            authentication: state("AuthenticationStatus"),
            troubles: troubles.collect(),
        }
    }
}
