//! What the leader does, as the plans say it.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Secret};
use k8s_openapi::api::events::v1::Event;
use k8s_openapi::api::rbac::v1::{Role, RoleBinding};
use kube::Resource;
use liqo_api::credentials::{OWN_TOKEN_SECRET, SERVING_CERTIFICATE_SECRET};
use liqo_api::names::{ClusterId, Identity};
use liqo_api::{ForeignCluster, annotations, credentials};
use liqo_kit::Key;
use liqo_kit::write::{Target, Write};
use serde_json::{Value, json};

use crate::calling::Received;
use crate::certificate;
use crate::index::TOKEN_DIGEST;
use crate::objects::{self, EVENT_NAMESPACE, KeptIdentity, PEER_ROLE, Report};
use crate::tokens::{Record, Token, denied_config_map, denied_name, own_secret, secret_name};
use crate::{Clock, Settings};

/// One thing to do: a call to a peer, or a write to our API server.
#[derive(Clone, Debug)]
pub(crate) enum Step {
    /// Ask a peer.
    Call(Call),
    /// Change a ForeignCluster as it was seen.
    PatchCluster {
        name: String,
        resource_version: String,
        patch: Value,
        what: &'static str,
    },
    /// Tell how far we are.
    WriteStatus {
        name: String,
        status: Value,
    },
    Report(Report),
    CreateTenant {
        peer: Identity,
        annotations: BTreeMap<String, String>,
    },
    MarkTenant {
        name: String,
        resource_version: String,
        annotations: BTreeMap<String, String>,
    },
    /// Says that a peer is put out, or that it no longer is: the other rooms lend nothing and take its rights by that.
    NotePutOut {
        name: String,
        resource_version: String,
        put_out: bool,
    },
    DeleteTenant {
        name: String,
        uid: String,
    },
    /// Keep what a peer gave us, whole and at once.
    StoreIdentity {
        peer: Identity,
        namespace: String,
        proxy_url: Option<String>,
        token_digest: Option<String>,
        received: Box<Received>,
    },
    DeleteIdentity {
        key: Key,
        uid: String,
    },
    DeleteRemoteToken {
        name: String,
        uid: String,
    },
    FixRole {
        peer: ClusterId,
        namespace: String,
    },
    FixBinding {
        peer: ClusterId,
        namespace: String,
    },
    DeleteBinding {
        namespace: String,
        uid: String,
    },
    RevokeToken {
        id: String,
        resource_version: String,
    },
    Deny {
        peer: ClusterId,
        token_digest: String,
    },
    LiftDenial {
        peer: String,
        uid: String,
    },
    CreateOwnToken,
    /// The Secret is there and has no token in it.
    FillOwnToken,
    CreateServing,
    ReplaceServing {
        resource_version: String,
    },
}

/// What is asked from a peer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Call {
    /// Who it is.
    Identify { cluster: String },
    /// A certificate, for the annotation of this value if there is one; it is tried before it replaces one that works.
    Obtain { cluster: String, rotation: Option<String>, try_first: bool },
}

impl Call {
    pub(crate) fn cluster(&self) -> &str {
        match self {
            Self::Identify { cluster } | Self::Obtain { cluster, .. } => cluster,
        }
    }
}

/// Why an object cannot be made.
#[derive(Debug, thiserror::Error)]
pub(crate) enum StepError {
    #[error(transparent)]
    Json(#[from] serde_json::Error),
    #[error(transparent)]
    Random(#[from] crate::tokens::NoRandomness),
    #[error(transparent)]
    Certificate(#[from] certificate::CertificateError),
}

impl Step {
    /// A word for logs and tests.
    pub(crate) fn word(&self) -> String {
        match self {
            Self::Call(Call::Identify { .. }) => "identify".to_owned(),
            Self::Call(Call::Obtain { rotation, try_first, .. }) => {
                let rotate = if rotation.is_some() { " for rotation" } else { "" };
                format!("obtain{rotate}{}", if *try_first { " and try" } else { "" })
            }
            Self::PatchCluster { what, .. } => (*what).to_owned(),
            Self::WriteStatus { status, .. } => {
                let first = &status["peeringConditions"][0];
                let word = |key: &str| first[key].as_str().unwrap_or_default().to_owned();
                format!("status {} {}", word("status"), word("reason"))
            }
            Self::Report(report) => format!("report {}", report.reason),
            Self::CreateTenant { .. } => "create tenant".to_owned(),
            Self::MarkTenant { .. } => "mark tenant".to_owned(),
            Self::NotePutOut { put_out: true, .. } => "put out".to_owned(),
            Self::NotePutOut { put_out: false, .. } => "let in".to_owned(),
            Self::DeleteTenant { .. } => "delete tenant".to_owned(),
            Self::StoreIdentity { .. } => "store identity".to_owned(),
            Self::DeleteIdentity { .. } => "delete identity".to_owned(),
            Self::DeleteRemoteToken { .. } => "delete remote token".to_owned(),
            Self::FixRole { .. } => "fix role".to_owned(),
            Self::FixBinding { .. } => "fix binding".to_owned(),
            Self::DeleteBinding { .. } => "delete binding".to_owned(),
            Self::RevokeToken { id, .. } => format!("revoke {id}"),
            Self::Deny { .. } => "deny".to_owned(),
            Self::LiftDenial { .. } => "lift denial".to_owned(),
            Self::CreateOwnToken => "create own token".to_owned(),
            Self::FillOwnToken => "fill own token".to_owned(),
            Self::CreateServing => "create serving certificate".to_owned(),
            Self::ReplaceServing { .. } => "replace serving certificate".to_owned(),
        }
    }

    /// The object that it is about, and whether about its status; nothing for a call.
    pub(crate) fn target(&self, settings: &Settings) -> Option<(Target, bool)> {
        let house = |name: &str| Key::namespaced(settings.namespace.as_str(), name);
        let target = match self {
            Self::Call(_) => return None,
            Self::WriteStatus { name, .. } => {
                return Some((Target::of::<ForeignCluster>(Key::cluster(name)), true));
            }
            Self::PatchCluster { name, .. } => Target::of::<ForeignCluster>(Key::cluster(name)),
            Self::Report(report) => {
                Target::of::<Event>(Key::namespaced(EVENT_NAMESPACE, &report.event_name()))
            }
            Self::CreateTenant { peer, .. } => {
                Target::of::<Namespace>(Key::cluster(peer.tenant_namespace().as_str()))
            }
            Self::MarkTenant { name, .. }
            | Self::NotePutOut { name, .. }
            | Self::DeleteTenant { name, .. } => Target::of::<Namespace>(Key::cluster(name)),
            Self::StoreIdentity { peer, namespace, .. } => {
                Target::of::<Secret>(Key::namespaced(namespace, &credentials::identity_secret(peer)))
            }
            Self::DeleteIdentity { key, .. } => Target::of::<Secret>(key.clone()),
            Self::DeleteRemoteToken { name, .. } => Target::of::<Secret>(house(name)),
            Self::FixRole { namespace, .. } => Target::of::<Role>(Key::namespaced(namespace, PEER_ROLE)),
            Self::FixBinding { namespace, .. } | Self::DeleteBinding { namespace, .. } => {
                Target::of::<RoleBinding>(Key::namespaced(namespace, PEER_ROLE))
            }
            Self::RevokeToken { id, .. } => Target::of::<Secret>(house(&secret_name(id))),
            Self::Deny { peer, .. } => Target::of::<ConfigMap>(house(&denied_name(peer))),
            Self::LiftDenial { peer, .. } => Target::of::<ConfigMap>(house(&format!("liqo-denied-{peer}"))),
            Self::CreateOwnToken | Self::FillOwnToken => Target::of::<Secret>(house(OWN_TOKEN_SECRET)),
            Self::CreateServing | Self::ReplaceServing { .. } => {
                Target::of::<Secret>(house(SERVING_CERTIFICATE_SECRET))
            }
        };
        Some((target, false))
    }

    /// The write that does it; nothing for a call.
    pub(crate) fn write(&self, settings: &Settings, clock: &Clock) -> Result<Option<Write>, StepError> {
        let Some((target, _)) = self.target(settings) else { return Ok(None) };
        let namespace = settings.namespace.as_str();
        let now = clock.now();
        let write = match self {
            Self::Call(_) => return Ok(None),
            Self::PatchCluster { resource_version, patch, .. } => {
                Write::merge(target, resource_version, patch)?
            }
            Self::WriteStatus { name, status } => {
                let object = json!({
                    "apiVersion": ForeignCluster::api_version(&()),
                    "kind": ForeignCluster::kind(&()),
                    "metadata": { "name": name },
                    "status": status,
                });
                Write::apply_status(target, &object)?
            }
            Self::Report(report) => {
                Write::create(target, &objects::event(report, &settings.pod, now))?.or_exists()
            }
            Self::CreateTenant { peer, annotations } => {
                Write::create(target, &objects::tenant_namespace(peer, annotations.clone()))?
            }
            Self::MarkTenant { resource_version, annotations, .. } => Write::merge(
                target,
                resource_version,
                &json!({ "metadata": { "annotations": annotations } }),
            )?,
            Self::NotePutOut { resource_version, put_out, .. } => {
                let since = put_out.then(|| now.to_string());
                let patch = json!({ "metadata": { "annotations": { annotations::PUT_OUT: since } } });
                Write::merge(target, resource_version, &patch)?
            }
            Self::StoreIdentity { peer, namespace, proxy_url, token_digest, received } => {
                let mut secret = stored(peer, namespace, proxy_url.as_deref(), received);
                let digest = token_digest.iter().map(|digest| (TOKEN_DIGEST.to_owned(), digest.clone()));
                secret.metadata.annotations.get_or_insert_default().extend(digest);
                Write::apply(target, &secret)?
            }
            Self::DeleteTenant { uid, .. }
            | Self::DeleteIdentity { uid, .. }
            | Self::DeleteRemoteToken { uid, .. }
            | Self::DeleteBinding { uid, .. }
            | Self::LiftDenial { uid, .. } => Write::delete(target, uid),
            Self::FixRole { peer, namespace } => Write::apply(target, &objects::peer_role(peer, namespace))?,
            Self::FixBinding { peer, namespace } => {
                Write::apply(target, &objects::peer_role_binding(peer, namespace))?
            }
            Self::RevokeToken { resource_version, .. } => {
                Write::merge(target, resource_version, &Record::revoke_patch(now))?
            }
            Self::Deny { peer, token_digest } => {
                Write::apply(target, &denied_config_map(peer, token_digest, namespace))?
            }
            Self::CreateOwnToken => {
                Write::create(target, &own_secret(&Token::new_own()?, namespace))?.or_exists()
            }
            Self::FillOwnToken => Write::apply(target, &own_secret(&Token::new_own()?, namespace))?,
            Self::CreateServing => Write::create(target, &certificate::make(namespace, now)?)?.or_exists(),
            Self::ReplaceServing { resource_version } => {
                Write::merge(target, resource_version, &certificate::make(namespace, now)?)?
            }
        };
        Ok(Some(write))
    }
}

fn stored(peer: &Identity, namespace: &str, proxy_url: Option<&str>, received: &Received) -> Secret {
    let obtained = &received.obtained;
    let kept = KeptIdentity {
        private_key: &obtained.private_key,
        csr: &obtained.csr,
        certificate: &obtained.certificate,
        api_server_url: &obtained.api_server_url,
        api_server_ca: obtained.api_server_ca.as_deref(),
        namespace: obtained.namespace.as_str(),
        proxy_url,
        expires: obtained.certified.not_after,
    };
    objects::identity_secret(peer, namespace, &kept)
}
