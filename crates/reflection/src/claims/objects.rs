//! The volumes and claims that are made.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{
    CSIPersistentVolumeSource, Namespace, NodeSelector, NodeSelectorRequirement, NodeSelectorTerm,
    ObjectReference, PersistentVolume, PersistentVolumeClaim, PersistentVolumeClaimSpec,
    PersistentVolumeSpec, VolumeNodeAffinity, VolumeResourceRequirements,
};
use k8s_openapi::api::storage::v1::StorageClass;
use kube::api::ObjectMeta;
use liqo_api::{annotations, labels};
use liqo_kit::Key;

use super::facts::Claim;
use super::{PROVISIONER, SELECTED_NODE, volume_name};

/// The driver of volumes that stand for others. No node has it, so that no node mistakes such a volume for one of its own.
const DRIVER: &str = "storage.liqo.io";
/// The longest value of a label.
const LONGEST_LABEL: usize = 63;
/// What happens to a volume whose class says nothing, as in Kubernetes.
const DELETE: &str = "Delete";

/// The namespace of the claims behind volumes in this cluster, marked so that an uninstallation finds it.
pub(crate) fn namespace(name: &str) -> Namespace {
    let pairs = [
        ("app.kubernetes.io/name", "liqo"),
        ("app.kubernetes.io/component", "storage"),
        ("app.kubernetes.io/managed-by", "liqo-controller-manager"),
        (labels::PART_OF, labels::PART_OF_LIQO),
    ];
    let metadata = ObjectMeta {
        name: Some(name.to_owned()),
        labels: Some(pairs.map(|(key, value)| (key.to_owned(), value.to_owned())).into()),
        ..ObjectMeta::default()
    };
    Namespace { metadata, ..Namespace::default() }
}

/// A claim of the virtual class, and what was decided about it.
pub(crate) struct Order<'a> {
    pub(crate) key: &'a Key,
    pub(crate) claim: &'a Claim,
    /// The virtual class; `None` if nobody has it any more.
    pub(crate) class: Option<&'a StorageClass>,
    pub(crate) class_name: &'a str,
}

impl Order<'_> {
    /// The volume that stands for the one at a provider, where it is called `remote`. Nodes of that provider, and of the same
    /// pool if it has some, can use it.
    pub(crate) fn stand(&self, provider: &str, pool: Option<&str>, remote: &str) -> PersistentVolume {
        let handle = format!("{provider}/{remote}");
        let source = CSIPersistentVolumeSource {
            driver: DRIVER.to_owned(),
            volume_handle: handle,
            ..CSIPersistentVolumeSource::default()
        };
        let mut expressions = vec![
            requirement(labels::NODE_TYPE, "In", &[labels::NODE_TYPE_VIRTUAL]),
            requirement(labels::REMOTE_CLUSTER_ID, "In", &[provider]),
        ];
        expressions.extend(pool.map(|pool| requirement(labels::POOL, "In", &[pool])));
        let term = NodeSelectorTerm { match_expressions: Some(expressions), match_fields: None };
        let spec = PersistentVolumeSpec {
            csi: Some(source),
            access_modes: Some(self.claim.wish.access_modes.clone()),
            capacity: self.claim.wish.size.clone().map(|size| [("storage".to_owned(), size)].into()),
            node_affinity: Some(at(vec![term])),
            volume_mode: self.claim.wish.volume_mode.clone(),
            ..PersistentVolumeSpec::default()
        };
        let mut volume = self.volume(spec);
        let own = volume.metadata.labels.get_or_insert_default();
        own.insert(labels::REMOTE_CLUSTER_ID.to_owned(), provider.to_owned());
        volume
    }

    /// The volume that is the twin of a real one of this cluster: the same, for another claim, and never on a virtual node.
    pub(crate) fn twin(&self, real: PersistentVolumeSpec) -> PersistentVolume {
        let required = real.node_affinity.as_ref().and_then(|affinity| affinity.required.clone());
        let mut terms = required.map(|selector| selector.node_selector_terms).unwrap_or_default();
        if terms.is_empty() {
            terms.push(NodeSelectorTerm::default());
        }
        for term in &mut terms {
            let expressions = term.match_expressions.get_or_insert_default();
            expressions.push(requirement(labels::NODE_TYPE, "NotIn", &[labels::NODE_TYPE_VIRTUAL]));
        }
        self.volume(PersistentVolumeSpec { node_affinity: Some(at(terms)), ..real })
    }

    fn volume(&self, spec: PersistentVolumeSpec) -> PersistentVolume {
        let policy = self.class.and_then(|class| class.reclaim_policy.clone());
        let claim = ObjectReference {
            api_version: Some("v1".to_owned()),
            kind: Some("PersistentVolumeClaim".to_owned()),
            namespace: self.key.namespace().map(str::to_owned),
            name: Some(self.key.name().to_owned()),
            uid: Some(self.claim.uid.to_string()),
            ..ObjectReference::default()
        };
        let mut metadata = self.metadata(volume_name(&self.claim.uid));
        let notes = metadata.annotations.get_or_insert_default();
        notes.insert("pv.kubernetes.io/provisioned-by".to_owned(), PROVISIONER.to_owned());
        PersistentVolume {
            metadata,
            spec: Some(PersistentVolumeSpec {
                claim_ref: Some(claim),
                persistent_volume_reclaim_policy: Some(policy.unwrap_or_else(|| DELETE.to_owned())),
                storage_class_name: Some(self.class_name.to_owned()),
                ..spec
            }),
            status: None,
        }
    }

    /// The claim of a real class, for a volume on this node.
    pub(crate) fn real(&self, namespace: &str, class: Option<&str>, node: &str) -> PersistentVolumeClaim {
        let wish = &self.claim.wish;
        let requests = wish.size.clone().map(|size| [("storage".to_owned(), size)].into());
        let mut metadata = self.metadata(real_name(self.claim));
        metadata.namespace = Some(namespace.to_owned());
        let notes = metadata.annotations.get_or_insert_default();
        notes.insert(SELECTED_NODE.to_owned(), node.to_owned());
        PersistentVolumeClaim {
            metadata,
            spec: Some(PersistentVolumeClaimSpec {
                access_modes: Some(wish.access_modes.clone()),
                resources: Some(VolumeResourceRequirements { requests, limits: None }),
                storage_class_name: class.map(str::to_owned),
                volume_mode: wish.volume_mode.clone(),
                ..PersistentVolumeClaimSpec::default()
            }),
            status: None,
        }
    }

    fn metadata(&self, name: String) -> ObjectMeta {
        let namespace = self.key.namespace().unwrap_or_default();
        let pairs =
            [(labels::VIRTUAL_CLAIM_NAMESPACE, namespace), (labels::VIRTUAL_CLAIM_NAME, self.key.name())];
        let owned = |(key, value): (&str, &str)| (key.to_owned(), value.to_owned());
        let mut notes: BTreeMap<_, _> = pairs.into_iter().map(owned).collect();
        notes.insert(annotations::VIRTUAL_CLAIM_UID.to_owned(), self.claim.uid.to_string());
        let short = |(_, value): &(&str, &str)| value.len() <= LONGEST_LABEL;
        let mut own: BTreeMap<_, _> = pairs.into_iter().filter(short).map(owned).collect();
        own.insert(labels::MANAGED_BY.to_owned(), labels::MANAGED_BY_STORAGE.to_owned());
        ObjectMeta { name: Some(name), labels: Some(own), annotations: Some(notes), ..ObjectMeta::default() }
    }
}

/// The name of the claim of a real class for this one.
pub(crate) fn real_name(claim: &Claim) -> String {
    claim.uid.to_string()
}

fn at(terms: Vec<NodeSelectorTerm>) -> VolumeNodeAffinity {
    VolumeNodeAffinity { required: Some(NodeSelector { node_selector_terms: terms }) }
}

fn requirement(key: &str, operator: &str, values: &[&str]) -> NodeSelectorRequirement {
    let values = values.iter().map(|it| (*it).to_owned()).collect();
    NodeSelectorRequirement { key: key.to_owned(), operator: operator.to_owned(), values: Some(values) }
}
