//! Why an identity is refused, and what to do about it.

use liqo_api::ClusterIdentity;
use liqo_api::cluster_config::{CLUSTER_ID_CONFIG_MAP, IDENTITY_SECRET};

use crate::Settings;
use crate::identity::Identity;
use crate::index::Published;

/// Why, in one word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Reason {
    /// The Secret is gone, the ConfigMap is not.
    KeyLost,
    /// The Secret is there and cannot be used.
    KeyUnreadable,
    /// Secret and ConfigMap are about different clusters or keys.
    Mismatch,
    /// The flags ask for another identity than the cluster has.
    IdentityChangeRefused,
}

impl Reason {
    /// All reasons.
    pub const ALL: [Self; 4] =
        [Self::KeyLost, Self::KeyUnreadable, Self::Mismatch, Self::IdentityChangeRefused];

    /// The word in conditions, events and metrics.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::KeyLost => "KeyLost",
            Self::KeyUnreadable => "KeyUnreadable",
            Self::Mismatch => "Mismatch",
            Self::IdentityChangeRefused => "IdentityChangeRefused",
        }
    }
}

/// The object that an event is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum About {
    ConfigMap,
    Secret,
}

/// Why an identity is refused, with the way out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Refusal {
    pub(crate) reason: Reason,
    pub(crate) about: About,
    pub(crate) message: String,
}

pub(super) fn key_lost(settings: &Settings, published: &Published) -> Refusal {
    let namespace = &settings.namespace;
    let who = described(published.identity.as_ref());
    // A stranger's text is no advice.
    let legal = published.identity.as_ref().filter(|identity| identity.parse().is_ok());
    let keep = legal.map_or_else(String::new, |identity| {
        format!(
            " To keep ID and name with a new key, first set --cluster-id={} --cluster-name={} (in the chart \
             discovery.config.clusterIDOverride and discovery.config.clusterName).",
            identity.cluster_id, identity.cluster_name
        )
    });
    let message = format!(
        "the Secret {IDENTITY_SECRET} with the cluster's private key is gone, but the ConfigMap \
         {CLUSTER_ID_CONFIG_MAP} says that this is cluster {who}. No new key is made, because peers would no longer \
         recognise this cluster. Restore the Secret from a backup: kubectl -n {namespace} apply -f BACKUP.yaml. \
         If there is none, give the cluster a new identity, after which its peerings must be made again: \
         kubectl -n {namespace} delete configmap {CLUSTER_ID_CONFIG_MAP}.{keep}"
    );
    Refusal { reason: Reason::KeyLost, about: About::ConfigMap, message }
}

pub(super) fn key_unreadable(settings: &Settings, problem: &str, published: Option<&Published>) -> Refusal {
    let namespace = &settings.namespace;
    let message = format!(
        "the Secret {IDENTITY_SECRET} with the cluster's private key cannot be used: {problem}. No new key is made, \
         because peers would no longer recognise this cluster. Restore the Secret from a backup: \
         kubectl -n {namespace} replace -f BACKUP.yaml. {}",
        new_identity(settings)
    );
    // kubectl shows events with a ConfigMap, but not with a Secret.
    let about = if published.is_some() { About::ConfigMap } else { About::Secret };
    Refusal { reason: Reason::KeyUnreadable, about, message }
}

/// Whether the ConfigMap is about another cluster or key than the Secret.
pub(super) fn disagreement(
    settings: &Settings,
    identity: &Identity,
    published: &Published,
) -> Option<Refusal> {
    let namespace = &settings.namespace;
    let ours = identity.cluster_identity();
    let fingerprint = identity.public_key().fingerprint();
    let difference = if published.identity.as_ref() != Some(&ours) {
        format!(
            "the ConfigMap {CLUSTER_ID_CONFIG_MAP} says that this is cluster {}, the Secret {IDENTITY_SECRET} that it \
             is cluster {}",
            described(published.identity.as_ref()),
            described(Some(&ours)),
        )
    } else {
        let noted = published.fingerprint.as_ref().filter(|noted| **noted != fingerprint)?;
        format!(
            "the key in the Secret {IDENTITY_SECRET} is not the one of cluster {}: its fingerprint is {fingerprint}, \
             the ConfigMap {CLUSTER_ID_CONFIG_MAP} has {noted}",
            described(Some(&ours)),
        )
    };
    let message = format!(
        "{difference}. Nothing is changed, because peers know the cluster by one of them. If the Secret is right, \
         delete the ConfigMap, and it is made again from the Secret: \
         kubectl -n {namespace} delete configmap {CLUSTER_ID_CONFIG_MAP}. If the ConfigMap is right, restore the \
         Secret from a backup: kubectl -n {namespace} replace -f BACKUP.yaml. {}",
        new_identity(settings)
    );
    Some(Refusal { reason: Reason::Mismatch, about: About::ConfigMap, message })
}

/// Whether the flags ask for another identity.
pub(super) fn contradiction(settings: &Settings, identity: &Identity) -> Option<Refusal> {
    let id = settings.wanted.id.as_ref().filter(|wanted| **wanted != identity.id);
    let name = settings.wanted.name.as_ref().filter(|wanted| **wanted != identity.name);
    let flags = [
        id.map(|id| (format!("--cluster-id={id}"), "discovery.config.clusterIDOverride")),
        name.map(|name| (format!("--cluster-name={name}"), "discovery.config.clusterName")),
    ];
    let flags: Vec<_> = flags.into_iter().flatten().collect();
    if flags.is_empty() {
        return None;
    }
    let given: Vec<_> = flags.iter().map(|(flag, _)| flag.as_str()).collect();
    let values: Vec<_> = flags.iter().map(|(_, value)| *value).collect();
    let message = format!(
        "{} is not what this cluster is: cluster {}. An identity is never changed, because peers would no longer \
         recognise this cluster. Take that back (in the chart {}). {}",
        given.join(" "),
        described(Some(&identity.cluster_identity())),
        values.join(" and "),
        new_identity(settings)
    );
    Some(Refusal { reason: Reason::IdentityChangeRefused, about: About::ConfigMap, message })
}

/// The Secret goes first: a ConfigMap alone would be made again from it.
fn new_identity(settings: &Settings) -> String {
    format!(
        "Or give the cluster a new identity, after which its peerings must be made again: kubectl -n {} delete \
         --ignore-not-found secret/{IDENTITY_SECRET} configmap/{CLUSTER_ID_CONFIG_MAP}",
        settings.namespace
    )
}

/// The cluster for people: `name (ID)`. What stands in an object is a stranger's text.
pub(super) fn described(identity: Option<&ClusterIdentity>) -> String {
    let Some(identity) = identity else { return "without ID or name".to_owned() };
    let shown = |text: &str| {
        let cut: String = text.chars().take(liqo_api::names::MAX_LABEL).collect();
        cut.escape_debug().to_string()
    };
    format!("{} ({})", shown(&identity.cluster_name), shown(&identity.cluster_id))
}
