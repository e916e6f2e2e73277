//! What is kept of claims and volumes.

use k8s_openapi::api::core::v1::{PersistentVolume, PersistentVolumeClaim};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use kube::ResourceExt;
use liqo_api::{annotations, labels};
use liqo_kit::Key;

use super::SELECTED_NODE;
use crate::mirror::{Here, read_here};
use crate::policies::Policy;

/// A claim of the virtual class.
#[derive(Clone, Debug)]
pub(crate) struct Claim {
    pub(crate) uid: Box<str>,
    pub(crate) version: Box<str>,
    /// The node of its first consumer, once it is chosen.
    pub(crate) node: Option<Box<str>>,
    /// Whether it has a volume.
    pub(crate) bound: bool,
    pub(crate) deleting: bool,
    /// Whether it was made for a volume that lives as long as its pod: the provider makes its own.
    pub(crate) of_pod: bool,
    /// What is sent to a provider; nothing if it stays at home.
    pub(crate) original: Option<Here>,
    pub(crate) wish: Wish,
}

/// What a claim asks for.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Wish {
    pub(crate) size: Option<Quantity>,
    pub(crate) access_modes: Vec<String>,
    pub(crate) volume_mode: Option<String>,
}

impl Claim {
    /// Reads a claim; `None` if it is of another class.
    pub(crate) fn read(claim: PersistentVolumeClaim, class: &str, policy: Policy) -> Option<Self> {
        let spec = claim.spec.as_ref()?;
        if spec.storage_class_name.as_deref() != Some(class) {
            return None;
        }
        let requests = spec.resources.as_ref().and_then(|resources| resources.requests.as_ref());
        let wish = Wish {
            size: requests.and_then(|requests| requests.get("storage")).cloned(),
            access_modes: spec.access_modes.clone().unwrap_or_default(),
            volume_mode: spec.volume_mode.clone(),
        };
        let goes = policy.lets(claim.metadata.name.as_deref(), claim.metadata.annotations.as_ref());
        let is_pod = |controller: Option<bool>, kind: &str| controller == Some(true) && kind == "Pod";
        Some(Self {
            uid: claim.uid().unwrap_or_default().into(),
            version: claim.resource_version().unwrap_or_default().into(),
            node: claim.annotations().get(SELECTED_NODE).map(|node| node.as_str().into()),
            bound: spec.volume_name.as_deref().is_some_and(|name| !name.is_empty()),
            deleting: claim.metadata.deletion_timestamp.is_some(),
            of_pod: claim.owner_references().iter().any(|owner| is_pod(owner.controller, &owner.kind)),
            original: if goes { read_here(claim) } else { None },
            wish,
        })
    }
}

/// A volume of the virtual class.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Volume {
    pub(crate) name: Box<str>,
    pub(crate) uid: Box<str>,
    /// The claim that it was made for.
    pub(crate) claim: Key,
    pub(crate) claim_uid: Box<str>,
    /// Where it is; nowhere means here.
    pub(crate) provider: Option<Box<str>>,
    /// Whether its claim is gone.
    pub(crate) released: bool,
    /// Whether what is behind it goes when its claim is gone.
    pub(crate) delete: bool,
    pub(crate) deleting: bool,
}

impl Volume {
    /// Reads a volume; `None` if it was not made for a claim.
    pub(crate) fn read(volume: &PersistentVolume) -> Option<Self> {
        let claim_uid = volume.annotations().get(annotations::VIRTUAL_CLAIM_UID)?;
        let spec = volume.spec.as_ref()?;
        let phase = volume.status.as_ref().and_then(|status| status.phase.as_deref());
        Some(Self {
            name: volume.name_any().into(),
            uid: volume.uid().unwrap_or_default().into(),
            claim: made_for(volume)?,
            claim_uid: claim_uid.as_str().into(),
            provider: volume.labels().get(labels::REMOTE_CLUSTER_ID).map(|it| it.as_str().into()),
            released: matches!(phase, Some("Released" | "Failed")),
            delete: spec.persistent_volume_reclaim_policy.as_deref() == Some("Delete"),
            deleting: volume.metadata.deletion_timestamp.is_some(),
        })
    }
}

/// The claim of a real class behind one of the virtual class.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Real {
    pub(crate) key: Key,
    pub(crate) uid: Box<str>,
    /// The claim that it was made for.
    pub(crate) claim: Key,
    pub(crate) claim_uid: Box<str>,
    /// Its volume, once it has one.
    pub(crate) volume: Option<Box<str>>,
    /// The node that it should be on; whoever provides it takes that away if it cannot be there.
    pub(crate) node: Option<Box<str>>,
    pub(crate) deleting: bool,
}

impl Real {
    /// Reads a claim; `None` if it was made for nobody.
    pub(crate) fn read(claim: &PersistentVolumeClaim) -> Option<Self> {
        let bound = claim.status.as_ref().and_then(|status| status.phase.as_deref()) == Some("Bound");
        let volume = claim.spec.as_ref().and_then(|spec| spec.volume_name.as_deref());
        Some(Self {
            key: Key::new(claim.namespace().as_deref(), &claim.name_any()),
            uid: claim.uid().unwrap_or_default().into(),
            claim: made_for(claim)?,
            claim_uid: claim.annotations().get(annotations::VIRTUAL_CLAIM_UID)?.as_str().into(),
            volume: volume.filter(|_| bound).map(Box::from),
            node: claim.annotations().get(SELECTED_NODE).map(|node| node.as_str().into()),
            deleting: claim.metadata.deletion_timestamp.is_some(),
        })
    }
}

/// The claim that the user made.
fn made_for(object: &impl ResourceExt) -> Option<Key> {
    // Names may be longer than labels.
    let note = |key: &str| object.annotations().get(key);
    Some(Key::namespaced(note(labels::VIRTUAL_CLAIM_NAMESPACE)?, note(labels::VIRTUAL_CLAIM_NAME)?))
}
