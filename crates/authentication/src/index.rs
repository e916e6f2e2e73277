//! What is known: the objects that both sides of the room look at, trimmed to what decides.

use std::collections::BTreeMap;

use jiff::Timestamp;
use k8s_openapi::api::certificates::v1::CertificateSigningRequest;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Secret};
use k8s_openapi::api::rbac::v1::{Role, RoleBinding};
use kube::ResourceExt;
use liqo_api::credentials::{self, OWN_TOKEN_SECRET, SERVING_CERTIFICATE_SECRET, TOKEN_KEY};
use liqo_api::names::{ClusterId, NamespaceName};
use liqo_api::{ForeignCluster, annotations, labels};
use liqo_identity::key::PublicKey;
use liqo_kit::index::Grouped;
use liqo_kit::serve::Certificates;
use liqo_kit::write::Target;
use liqo_kit::{Index as Indexed, Key, Store};

use crate::calling::Attempt;
use crate::certificate::Serving;
use crate::client::Certified;
use crate::objects::{PEER_ROLE, peer_policy, peer_subjects};
use crate::tokens::{AdmittedBy, Book, DENIED_TOKEN_KEY, Record, Token, text_of};
use crate::wire::key_from_base64;

#[cfg(test)]
mod tests;

/// ConfigMap with the network's settings, made by the chart; and the key that says what peers are told.
const NETWORK_CONFIG_MAP: &str = "liqo-network";
const API_SERVER_KEY: &str = "apiServerAddress";

/// ConfigMap with the authority of the API server, which Kubernetes puts into every namespace; and its key.
const ROOT_CA_CONFIG_MAP: &str = "kube-root-ca.crt";
const ROOT_CA_KEY: &str = "ca.crt";

/// All that is known.
pub(crate) struct Index {
    /// By the ID of the peer.
    pub(crate) clusters: Grouped<ForeignCluster, String>,
    /// By the ID of the peer.
    pub(crate) tenants: Grouped<Tenant, String>,
    /// By the ID of the peer.
    pub(crate) identities: Grouped<Held, String>,
    pub(crate) roles: Store<PeerRole>,
    pub(crate) bindings: Store<PeerBinding>,
    pub(crate) requests: Store<Signing>,
    pub(crate) book: Book,
    /// Tokens that others gave us, by their ID.
    pub(crate) remote_tokens: BTreeMap<String, RemoteToken>,
    pub(crate) serving: Option<Serving>,
    /// Whether there is a Secret of that name, usable or not.
    pub(crate) own_token_exists: bool,
    pub(crate) serving_exists: bool,
    /// Peers that were put out, by their ID.
    pub(crate) denied: BTreeMap<String, Denied>,
    pub(crate) api_server: Option<String>,
    pub(crate) root_ca: Option<Vec<u8>>,
    /// What this process remembers of its calls, by the name of the ForeignCluster.
    pub(crate) attempts: BTreeMap<String, Attempt>,
    /// Objects that could not be written, and why; until they are.
    pub(crate) failures: BTreeMap<Target, String>,
}

impl Default for Index {
    fn default() -> Self {
        Self {
            clusters: Grouped::by(|_, cluster| cluster_id(cluster).map(str::to_owned)),
            tenants: Grouped::by(|_, tenant| Some(tenant.peer.to_string())),
            identities: Grouped::by(|_, held| Some(held.peer.to_string())),
            roles: Store::default(),
            bindings: Store::default(),
            requests: Store::default(),
            book: Book::default(),
            remote_tokens: BTreeMap::new(),
            serving: None,
            own_token_exists: false,
            serving_exists: false,
            denied: BTreeMap::new(),
            api_server: None,
            root_ca: None,
            attempts: BTreeMap::new(),
            failures: BTreeMap::new(),
        }
    }
}

/// The peer's ID, as far as it is known.
pub(crate) fn cluster_id(cluster: &ForeignCluster) -> Option<&str> {
    let spec = cluster.spec.cluster_identity.as_ref().and_then(|identity| identity.cluster_id.as_deref());
    spec.or_else(|| cluster.labels().get(labels::CLUSTER_ID).map(String::as_str))
}

impl Index {
    /// The ForeignCluster of a peer. Of several, the one that was there first: the others are told that they are not it.
    pub(crate) fn cluster_of(&self, peer: &ClusterId) -> Option<&ForeignCluster> {
        let group = peer.to_string();
        let clusters = self.clusters.group(&group).map(|(_, cluster)| cluster);
        clusters.min_by_key(|cluster| {
            let deleting = cluster.metadata.deletion_timestamp.is_some();
            (deleting, cluster.creation_timestamp().map(|time| time.0), cluster.name_any())
        })
    }

    /// The tenant namespace of a peer.
    pub(crate) fn tenant_of(&self, peer: &ClusterId) -> Option<&Tenant> {
        // One that goes away counts only if there is no other.
        self.tenants.group(&peer.to_string()).map(|(_, tenant)| tenant).min_by_key(|tenant| tenant.deleting)
    }

    /// Our identity at a peer.
    pub(crate) fn identity_at(&self, peer: &ClusterId) -> Option<&Held> {
        self.identities.group(&peer.to_string()).map(|(_, held)| held).next()
    }

    /// Whether the peer of this namespace is to be let do what peers may.
    pub(crate) fn standing(&self, tenant: &Tenant) -> Standing {
        let Some(by) = &tenant.admitted_by else { return Standing::NotAdmitted };
        match by {
            AdmittedBy::Token(id) if self.book.is_revoked(id) => Standing::Revoked,
            AdmittedBy::Own if self.is_denied(&tenant.peer) => Standing::Revoked,
            _ => Standing::Admitted,
        }
    }

    /// Whether the peer is not to come by the cluster's own token, as it is now.
    pub(crate) fn is_denied(&self, peer: &ClusterId) -> bool {
        let denied = self.denied.get(peer.as_str());
        denied.is_some_and(|denied| {
            self.book.own.as_ref().is_some_and(|own| own.digest() == denied.token_digest)
        })
    }
}

/// Whether a peer is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Standing {
    /// It never came.
    NotAdmitted,
    /// It is in.
    Admitted,
    /// It was in, and was put out.
    Revoked,
}

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
    fn parse(text: &str) -> Option<Self> {
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
}

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

/// A token that another cluster gave us.
#[derive(Clone, Debug)]
pub(crate) struct RemoteToken {
    pub(crate) name: String,
    pub(crate) uid: String,
    pub(crate) token: Token,
}

/// A Secret in Liqo's namespace that means something here.
#[derive(Clone, Debug)]
pub(crate) enum HouseSecret {
    OwnToken(Token),
    PeerToken(Record),
    RemoteToken(ClusterId, RemoteToken),
    Serving(Option<Serving>),
}

impl HouseSecret {
    pub(crate) fn read(secret: &Secret) -> Option<Self> {
        let token = || Token::new(&text_of(secret, TOKEN_KEY).unwrap_or_default());
        let name = secret.name_any();
        match name.as_str() {
            OWN_TOKEN_SECRET => return Some(Self::OwnToken(token())),
            SERVING_CERTIFICATE_SECRET => return Some(Self::Serving(Serving::read(secret))),
            _ => {}
        }
        if secret.labels().contains_key(labels::AUTH_TOKEN) {
            let peer = secret.labels().get(labels::CLUSTER_ID)?.parse().ok()?;
            let uid = secret.uid().unwrap_or_default();
            return Some(Self::RemoteToken(peer, RemoteToken { name, uid, token: token() }));
        }
        Record::read(secret).map(Self::PeerToken)
    }
}

/// A peer that was put out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Denied {
    pub(crate) uid: String,
    pub(crate) created: Option<Timestamp>,
    /// Of the token that it must not come with again.
    pub(crate) token_digest: String,
}

/// A ConfigMap in Liqo's namespace that means something here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum HouseConfigMap {
    Denied(ClusterId, Denied),
    Network(Option<String>),
    RootCa(Option<Vec<u8>>),
}

impl HouseConfigMap {
    pub(crate) fn read(map: &ConfigMap) -> Option<Self> {
        let value = |key: &str| {
            let value = map.data.as_ref()?.get(key)?.trim();
            (!value.is_empty()).then(|| value.to_owned())
        };
        match map.name_any().as_str() {
            NETWORK_CONFIG_MAP => return Some(Self::Network(value(API_SERVER_KEY))),
            ROOT_CA_CONFIG_MAP => return Some(Self::RootCa(value(ROOT_CA_KEY).map(String::into_bytes))),
            _ => {}
        }
        map.labels().get(labels::DENIED_PEER)?;
        let peer = map.labels().get(labels::CLUSTER_ID)?.parse().ok()?;
        let token_digest = value(DENIED_TOKEN_KEY)?;
        let created = map.creation_timestamp().map(|time| time.0);
        Some(Self::Denied(peer, Denied { uid: map.uid().unwrap_or_default(), created, token_digest }))
    }
}

/// Kinds that are kept as they come.
macro_rules! kept_in {
    ($kind:ty, $field:ident) => {
        impl Indexed<$kind> for Index {
            fn apply(&mut self, key: &Key, object: $kind) {
                self.$field.apply(key, object);
            }

            fn delete(&mut self, key: &Key) {
                self.$field.delete(key);
            }
        }
    };
}

kept_in!(ForeignCluster, clusters);
kept_in!(Tenant, tenants);
kept_in!(Held, identities);
kept_in!(PeerRole, roles);
kept_in!(PeerBinding, bindings);
kept_in!(Signing, requests);

impl Indexed<HouseSecret> for Index {
    fn apply(&mut self, key: &Key, object: HouseSecret) {
        // What the Secret was before, it may not be any more.
        Indexed::<HouseSecret>::delete(self, key);
        match object {
            HouseSecret::OwnToken(token) => {
                self.own_token_exists = true;
                self.book.own = Some(token);
            }
            HouseSecret::Serving(serving) => {
                self.serving_exists = true;
                self.serving = serving;
            }
            HouseSecret::PeerToken(record) => {
                self.book.peers.insert(record.id.clone(), record);
            }
            HouseSecret::RemoteToken(peer, token) => {
                self.remote_tokens.insert(peer.into(), token);
            }
        }
    }

    fn delete(&mut self, key: &Key) {
        match key.name() {
            OWN_TOKEN_SECRET => {
                self.own_token_exists = false;
                self.book.own = None;
            }
            SERVING_CERTIFICATE_SECRET => {
                self.serving_exists = false;
                self.serving = None;
            }
            name => {
                self.book.peers.retain(|id, _| crate::tokens::secret_name(id) != name);
                self.remote_tokens.retain(|_, token| token.name != name);
            }
        }
    }
}

impl Indexed<HouseConfigMap> for Index {
    fn apply(&mut self, key: &Key, object: HouseConfigMap) {
        Indexed::<HouseConfigMap>::delete(self, key);
        match object {
            HouseConfigMap::Denied(peer, denied) => {
                self.denied.insert(peer.into(), denied);
            }
            HouseConfigMap::Network(address) => self.api_server = address,
            HouseConfigMap::RootCa(ca) => self.root_ca = ca,
        }
    }

    fn delete(&mut self, key: &Key) {
        match key.name() {
            NETWORK_CONFIG_MAP => self.api_server = None,
            ROOT_CA_CONFIG_MAP => self.root_ca = None,
            name => self.denied.retain(|peer, _| format!("liqo-denied-{peer}") != name),
        }
    }
}
