//! What is known of each peer: its namespace and rights here, and our identity there.

use jiff::Timestamp;
use k8s_openapi::api::certificates::v1::CertificateSigningRequest;
use k8s_openapi::api::core::v1::{Namespace, Secret};
use k8s_openapi::api::rbac::v1::{Role, RoleBinding};
use kube::ResourceExt;
use liqo_api::names::{ClusterId, NamespaceName};
use liqo_api::{annotations, credentials, labels};
use liqo_identity::key::PublicKey;
use liqo_kit::Key;
use liqo_kit::serve::Certificates;

use crate::client::Certified;
use crate::objects::{PEER_ROLE, peer_policy, peer_subjects};
use crate::tokens::{AdmittedBy, text_of};
use crate::wire::key_from_base64;

/// A tenant namespace.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Tenant {
    pub(crate) name: String,
    pub(crate) uid: String,
    pub(crate) resource_version: String,
    pub(crate) created: Option<Timestamp>,
    pub(crate) deleting: bool,
    pub(crate) peer: ClusterId,
    pub(crate) key: KnownKey,
    pub(crate) admitted_by: Option<AdmittedBy>,
    /// Whether it says that the peer is put out.
    pub(crate) put_out: bool,
    /// The last time another cluster was refused that said it was this one.
    pub(crate) claim: Option<Claim>,
}

/// What is known of a peer's key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum KnownKey {
    /// Nothing.
    None,
    /// It is this one.
    Key(PublicKey),
    /// Something is noted that is no key: nobody can be that.
    Unreadable,
}

impl KnownKey {
    /// Whether a peer that shows this key may be the one that is known.
    pub(crate) fn allows(&self, shown: Option<&PublicKey>) -> bool {
        match self {
            Self::None => true,
            Self::Key(known) => shown == Some(known),
            Self::Unreadable => false,
        }
    }
}

/// A claim that was refused, as the annotation has it: a time and the fingerprint of the other key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Claim {
    pub(crate) at: Timestamp,
    pub(crate) fingerprint: String,
}

/// Annotation on a tenant namespace: when another cluster said that it was this one, and the fingerprint of its key.
pub(crate) const CLAIM_REFUSED: &str = "authentication.liqo.io/claim-refused";

/// The fingerprint of a claim without a key.
pub(crate) const NO_KEY: &str = "none";

impl Claim {
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let (at, fingerprint) = text.split_once(' ')?;
        let is_fingerprint = fingerprint == NO_KEY
            || (fingerprint.len() == 64 && fingerprint.bytes().all(|byte| byte.is_ascii_hexdigit()));
        is_fingerprint.then_some(Self { at: at.parse().ok()?, fingerprint: fingerprint.to_owned() })
    }

    pub(crate) fn to_annotation(&self) -> String {
        format!("{} {}", self.at, self.fingerprint)
    }
}

impl Tenant {
    /// Reads a namespace; `None` if it is no peer's.
    pub(crate) fn read(namespace: &Namespace) -> Option<Self> {
        let is_tenant = namespace.labels().get(labels::TENANT_NAMESPACE).map(String::as_str);
        if is_tenant != Some(labels::TRUE) {
            return None;
        }
        let annotation = |key: &str| namespace.annotations().get(key).map(String::as_str);
        Some(Self {
            name: namespace.name_any(),
            uid: namespace.uid().unwrap_or_default(),
            resource_version: namespace.resource_version().unwrap_or_default(),
            created: namespace.creation_timestamp().map(|time| time.0),
            deleting: namespace.metadata.deletion_timestamp.is_some(),
            peer: namespace.labels().get(labels::CLUSTER_ID)?.parse().ok()?,
            key: match annotation(annotations::PEER_PUBLIC_KEY).map(key_from_base64) {
                None => KnownKey::None,
                Some(Ok(key)) => KnownKey::Key(key),
                Some(Err(_)) => KnownKey::Unreadable,
            },
            admitted_by: annotation(annotations::ADMITTED_BY).map(AdmittedBy::from),
            put_out: annotation(annotations::PUT_OUT).is_some(),
            claim: annotation(CLAIM_REFUSED).and_then(Claim::parse),
        })
    }
}

/// Our identity at a peer, as it is kept.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Held {
    pub(crate) key: Key,
    pub(crate) uid: String,
    pub(crate) resource_version: String,
    pub(crate) peer: ClusterId,
    /// The certificate, or what is wrong with what is kept.
    pub(crate) certificate: Result<Certified, String>,
    /// Our tenant namespace there.
    pub(crate) remote_namespace: Option<NamespaceName>,
    /// Of the token that we showed for it.
    pub(crate) token_digest: Option<String>,
}

/// Annotation on our identity at a peer: the digest of the token that it was given for. Who gets another token was put out, or is
/// to be let in by it for another reason: the old identity may do nothing any more, however long it is valid.
pub(crate) const TOKEN_DIGEST: &str = "authentication.liqo.io/token-digest";

impl Held {
    pub(crate) fn read(secret: &Secret) -> Option<Self> {
        use credentials::identity as key;
        let text = |key: &str| text_of(secret, key).ok_or_else(|| format!("its key {key} is missing"));
        let read = || -> Result<Certified, String> {
            let (certificate, private_key) = (text(key::CERTIFICATE)?, text(key::PRIVATE_KEY)?);
            text(key::API_SERVER_URL)?;
            text(key::NAMESPACE)?.parse::<NamespaceName>().map_err(|error| error.to_string())?;
            Certificates::from_pem(certificate.as_bytes(), private_key.as_bytes())
                .map_err(|_| "its certificate and its key do not belong together".to_owned())?;
            Certified::read(certificate.as_bytes())
        };
        Some(Self {
            key: Key::new(secret.namespace().as_deref(), &secret.name_any()),
            uid: secret.uid().unwrap_or_default(),
            resource_version: secret.resource_version().unwrap_or_default(),
            peer: secret.labels().get(labels::CLUSTER_ID)?.parse().ok()?,
            certificate: read(),
            remote_namespace: text(key::NAMESPACE).ok().and_then(|name| name.parse().ok()),
            token_digest: secret.annotations().get(TOKEN_DIGEST).cloned(),
        })
    }
}

/// The role of a peer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PeerRole {
    /// Whether it allows exactly what it should.
    pub(crate) right: bool,
}

impl PeerRole {
    pub(crate) fn read(role: &Role) -> Option<Self> {
        let right = role.rules.as_deref().unwrap_or_default() == peer_policy();
        (role.name_any() == PEER_ROLE).then_some(Self { right })
    }
}

/// What gives a peer its role.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PeerBinding {
    pub(crate) uid: String,
    pub(crate) created: Option<Timestamp>,
    /// Whether it gives what it gives to the peer, and to nobody else.
    pub(crate) right_peer: bool,
    /// Whether it gives the peer's role.
    pub(crate) right_role: bool,
}

impl PeerBinding {
    pub(crate) fn read(binding: &RoleBinding) -> Option<Self> {
        let peer: Option<ClusterId> =
            binding.labels().get(labels::CLUSTER_ID).and_then(|peer| peer.parse().ok());
        let subjects = binding.subjects.as_deref().unwrap_or_default();
        (binding.name_any() == PEER_ROLE).then(|| Self {
            uid: binding.uid().unwrap_or_default(),
            created: binding.creation_timestamp().map(|time| time.0),
            right_peer: peer.is_some_and(|peer| subjects == peer_subjects(&peer)),
            right_role: binding.role_ref.kind == "Role" && binding.role_ref.name == PEER_ROLE,
        })
    }
}

/// What became of a signing request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Signing {
    pub(crate) approved: bool,
    /// PEM.
    pub(crate) certificate: Option<Vec<u8>>,
    /// Why there will be none.
    pub(crate) failed: Option<String>,
}

impl Signing {
    pub(crate) fn read(request: &CertificateSigningRequest) -> Self {
        let status = request.status.as_ref();
        let conditions = status.and_then(|status| status.conditions.as_deref()).unwrap_or_default();
        let condition = |kind: &str| conditions.iter().find(|condition| condition.type_ == kind);
        let failed = condition("Denied").or_else(|| condition("Failed"));
        Self {
            approved: condition("Approved").is_some(),
            certificate: status
                .and_then(|status| status.certificate.as_ref())
                .map(|certificate| certificate.0.clone())
                .filter(|certificate| !certificate.is_empty()),
            failed: failed.map(|condition| {
                let message = condition.message.as_deref().unwrap_or_default();
                format!("{}: {message}", condition.type_)
            }),
        }
    }
}
