//! The objects that this room makes.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::ByteString;
use k8s_openapi::api::certificates::v1::{CertificateSigningRequest, CertificateSigningRequestSpec};
use k8s_openapi::api::core::v1::{Namespace, ObjectReference, Secret};
use k8s_openapi::api::events::v1::Event;
use k8s_openapi::api::rbac::v1::{PolicyRule, Role, RoleBinding, RoleRef, Subject};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use kube::Resource;
use kube::api::ObjectMeta;
use liqo_api::credentials::REMOTE_CERTIFICATE_SECRET;
use liqo_api::foreign_cluster::{DiscoveryType, ForeignIdentity};
use liqo_api::names::{ClusterId, Identity};
use liqo_api::{ForeignCluster, ForeignClusterSpec, annotations, credentials, fence, finalizers, labels};
use liqo_kit::rbac::Rule;
use sha2::{Digest, Sha256};

use crate::csr::Csr;
use crate::tokens::hex;

/// The name under which this room owns fields.
pub(crate) const FIELD_MANAGER: &str = "liqo-authentication";

/// Who made an object and reports events.
const CONTROLLER: &str = "liqo-controller-manager";

/// The longest note of an event; the API server refuses longer ones.
const MAX_NOTE: usize = 1024;

/// Role and RoleBinding of a peer, in its tenant namespace.
pub(crate) const PEER_ROLE: &str = "liqo-peer";

/// The group of the roles.
pub(crate) const RBAC: &str = "rbac.authorization.k8s.io";

/// Events about objects without namespace are there.
pub(crate) const EVENT_NAMESPACE: &str = "default";

/// The signer that makes certificates for clients of the API server.
pub(crate) const SIGNER: &str = "kubernetes.io/kube-apiserver-client";

/// What a peer may do in its tenant namespace, and nothing else anywhere.
///
/// It asks for resources, sees and answers offers, and sees and signs contracts. It creates offers and contracts, because
/// who calls and who lends are two questions; it deletes neither, as what was agreed on is not one side's to remove. It says
/// which namespaces it wants, and that it is there.
pub const PEER_RULES: &[Rule] = &[
    Rule::namespace(
        &["discovery.liqo.io"],
        &["resourcerequests"],
        &["get", "list", "watch", "create", "update", "patch", "delete"],
        "ask for resources, and ask no longer",
    ),
    Rule::namespace(
        &["sharing.liqo.io"],
        &["resourceoffers", "contracts"],
        &["get", "list", "watch", "create", "patch"],
        "see what is offered and agreed on, and offer and sign in turn",
    ),
    Rule::namespace(
        &["sharing.liqo.io"],
        &["resourceoffers/status", "contracts/status"],
        &["get", "patch"],
        "accept, refuse and sign",
    ),
    Rule::namespace(
        &["virtualkubelet.liqo.io"],
        &["namespacemaps"],
        &["get", "list", "watch", "create", "update", "patch", "delete"],
        "say which namespaces it wants here, and see which it has",
    ),
    // Bound to the name, `create` allows to apply that one, and not to post any.
    Rule::namespace(
        &["coordination.k8s.io"],
        &["leases"],
        &["get", "create", "patch"],
        "say that it is there, for pods that must never run twice",
    )
    .named(&[fence::LEASE]),
];

type Labels = BTreeMap<String, String>;

/// No version among them: an upgrade would have to write objects that it does not otherwise change.
pub(crate) fn labels_of(name: &str) -> Labels {
    let pairs = [
        ("app.kubernetes.io/name", name),
        ("app.kubernetes.io/component", "authentication"),
        ("app.kubernetes.io/managed-by", CONTROLLER),
        (labels::PART_OF, labels::PART_OF_LIQO),
    ];
    pairs.map(|(key, value)| (key.to_owned(), value.to_owned())).into()
}

fn peer_labels(peer: &ClusterId) -> Labels {
    let mut labels = labels_of("liqo");
    labels.insert(labels::CLUSTER_ID.to_owned(), peer.to_string());
    labels
}

fn metadata(name: String, namespace: Option<&str>, labels: Labels) -> ObjectMeta {
    ObjectMeta {
        name: Some(name),
        namespace: namespace.map(str::to_owned),
        labels: Some(labels),
        ..ObjectMeta::default()
    }
}

/// Where everything about the peering with `peer` lives. Pods that someone might start there get no rights of the node.
pub(crate) fn tenant_namespace(peer: &Identity, annotations: Labels) -> Namespace {
    let mut labels = peer_labels(&peer.id);
    labels.insert(labels::TENANT_NAMESPACE.to_owned(), labels::TRUE.to_owned());
    for mode in ["enforce", "audit", "warn"] {
        labels.insert(format!("pod-security.kubernetes.io/{mode}"), "restricted".to_owned());
    }
    let mut metadata = metadata(peer.tenant_namespace().into(), None, labels);
    metadata.annotations = Some(annotations).filter(|annotations| !annotations.is_empty());
    Namespace { metadata, ..Namespace::default() }
}

/// The rules of a peer's role.
pub(crate) fn peer_policy() -> Vec<PolicyRule> {
    let texts = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
    let policy = |rule: &Rule| PolicyRule {
        api_groups: Some(texts(rule.groups)),
        resources: Some(texts(rule.resources)),
        resource_names: Some(texts(rule.names)).filter(|names| !names.is_empty()),
        verbs: texts(rule.verbs),
        ..PolicyRule::default()
    };
    PEER_RULES.iter().map(policy).collect()
}

pub(crate) fn peer_role(peer: &ClusterId, namespace: &str) -> Role {
    Role {
        metadata: metadata(PEER_ROLE.to_owned(), Some(namespace), peer_labels(peer)),
        rules: Some(peer_policy()),
    }
}

/// Who a peer is for the API server: the user that its certificate names.
pub(crate) fn peer_subjects(peer: &ClusterId) -> Vec<Subject> {
    vec![Subject {
        api_group: Some(RBAC.to_owned()),
        kind: "User".to_owned(),
        name: peer.to_string(),
        namespace: None,
    }]
}

pub(crate) fn peer_role_binding(peer: &ClusterId, namespace: &str) -> RoleBinding {
    RoleBinding {
        metadata: metadata(PEER_ROLE.to_owned(), Some(namespace), peer_labels(peer)),
        role_ref: RoleRef { api_group: RBAC.to_owned(), kind: "Role".to_owned(), name: PEER_ROLE.to_owned() },
        subjects: Some(peer_subjects(peer)),
    }
}

/// A peer that came by itself. Nobody needs to call it back, so nobody knows where it is.
pub(crate) fn incoming_cluster(peer: &Identity, name: &str) -> ForeignCluster {
    let spec = ForeignClusterSpec {
        cluster_identity: Some(ForeignIdentity::from(peer.clone())),
        ..ForeignClusterSpec::new("")
    };
    let mut cluster = ForeignCluster::new(name, spec);
    let mut labels = peer_labels(&peer.id);
    labels.insert(labels::DISCOVERY_TYPE.to_owned(), DiscoveryType::IncomingPeering.as_label().to_owned());
    cluster.metadata.labels = Some(labels);
    cluster.metadata.finalizers = Some(vec![finalizers::AUTHENTICATION.to_owned()]);
    cluster
}

/// The name follows from what is asked for, so that asking twice makes one object.
pub(crate) fn csr_name(peer: &Identity, csr: &Csr) -> String {
    format!("{}-{}", peer.tenant_namespace(), csr.digest.get(..16).unwrap_or(&csr.digest))
}

pub(crate) fn signing_request(peer: &Identity, csr: &Csr, lifetime: Duration) -> CertificateSigningRequest {
    let mut labels = peer_labels(&peer.id);
    labels.insert(labels::REMOTE_TENANT_CSR.to_owned(), labels::TRUE.to_owned());
    CertificateSigningRequest {
        metadata: metadata(csr_name(peer, csr), None, labels),
        spec: CertificateSigningRequestSpec {
            request: ByteString(csr.pem.clone().into_bytes()),
            signer_name: SIGNER.to_owned(),
            usages: Some(
                ["digital signature", "key encipherment", "client auth"].map(str::to_owned).to_vec(),
            ),
            expiration_seconds: i32::try_from(lifetime.as_secs()).ok(),
            ..CertificateSigningRequestSpec::default()
        },
        status: None,
    }
}

/// Key of the Secret with the certificate that a peer got: the digest of what it asked with.
pub(crate) const CSR_DIGEST: &str = "csr-digest";

/// What a peer got last. Nothing in it is secret; Liqo keeps it in a Secret.
pub(crate) fn remote_certificate(peer: &Identity, namespace: &str, csr: &Csr, certificate: &[u8]) -> Secret {
    let data = [
        (credentials::identity::CERTIFICATE, certificate.to_vec()),
        (credentials::identity::CSR, csr.pem.clone().into_bytes()),
        (CSR_DIGEST, csr.digest.clone().into_bytes()),
    ];
    Secret {
        metadata: metadata(REMOTE_CERTIFICATE_SECRET.to_owned(), Some(namespace), peer_labels(&peer.id)),
        data: Some(data.map(|(key, value)| (key.to_owned(), ByteString(value))).into()),
        ..Secret::default()
    }
}

/// Our identity at a peer, as it is kept.
pub(crate) struct KeptIdentity<'a> {
    pub(crate) private_key: &'a str,
    pub(crate) csr: &'a str,
    pub(crate) certificate: &'a [u8],
    pub(crate) api_server_url: &'a str,
    pub(crate) api_server_ca: Option<&'a [u8]>,
    pub(crate) namespace: &'a str,
    pub(crate) proxy_url: Option<&'a str>,
    pub(crate) expires: Timestamp,
}

pub(crate) fn identity_secret(peer: &Identity, namespace: &str, kept: &KeptIdentity<'_>) -> Secret {
    use credentials::identity as key;
    let mut labels = peer_labels(&peer.id);
    labels.insert(labels::LOCAL_IDENTITY.to_owned(), labels::TRUE.to_owned());
    let mut metadata = metadata(credentials::identity_secret(peer), Some(namespace), labels);
    metadata.annotations =
        Some([(annotations::CERTIFICATE_EXPIRES.to_owned(), kept.expires.to_string())].into());
    let optional =
        [(key::API_SERVER_CA, kept.api_server_ca), (key::PROXY_URL, kept.proxy_url.map(str::as_bytes))];
    let data = [
        (key::PRIVATE_KEY, kept.private_key.as_bytes()),
        (key::CSR, kept.csr.as_bytes()),
        (key::CERTIFICATE, kept.certificate),
        (key::API_SERVER_URL, kept.api_server_url.as_bytes()),
        (key::NAMESPACE, kept.namespace.as_bytes()),
    ];
    let all = data.into_iter().chain(optional.into_iter().filter_map(|(key, value)| Some((key, value?))));
    Secret {
        metadata,
        data: Some(all.map(|(key, value)| (key.to_owned(), ByteString(value.to_vec()))).collect()),
        ..Secret::default()
    }
}

/// What is told about a ForeignCluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Report {
    pub(crate) cluster: String,
    pub(crate) uid: String,
    pub(crate) warning: bool,
    pub(crate) reason: String,
    pub(crate) message: String,
    /// What tells this occasion from an earlier one, in seconds since 1970.
    pub(crate) since: i64,
}

impl Report {
    /// The name follows from what it says, so that saying it twice makes one event.
    pub(crate) fn event_name(&self) -> String {
        let text = format!("{}\0{}\0{}\0{}", self.uid, self.reason, self.message, self.since);
        let mut digest = hex(&Sha256::digest(text));
        digest.truncate(16);
        format!("{}.{digest}", cut(&self.cluster, 200))
    }
}

pub(crate) fn event(report: &Report, pod: &str, now: Timestamp) -> Event {
    Event {
        metadata: metadata(report.event_name(), Some(EVENT_NAMESPACE), labels_of("liqo")),
        action: Some("Authenticate".to_owned()),
        event_time: Some(MicroTime(now)),
        note: Some(cut(&report.message, MAX_NOTE).to_owned()),
        reason: Some(report.reason.clone()),
        regarding: Some(ObjectReference {
            api_version: Some(ForeignCluster::api_version(&()).into_owned()),
            kind: Some(ForeignCluster::kind(&()).into_owned()),
            name: Some(report.cluster.clone()),
            uid: Some(report.uid.clone()),
            ..ObjectReference::default()
        }),
        reporting_controller: Some(format!("liqo.io/{CONTROLLER}")),
        reporting_instance: Some(pod.to_owned()),
        type_: Some(if report.warning { "Warning" } else { "Normal" }.to_owned()),
        ..Event::default()
    }
}

/// The beginning of a text, in at most `length` bytes.
pub(crate) fn cut(text: &str, length: usize) -> &str {
    &text[..text.floor_char_boundary(length)]
}
