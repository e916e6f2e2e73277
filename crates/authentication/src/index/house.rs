//! What Liqo's own namespace holds: tokens, certificate, settings, and who was put out.

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::ResourceExt;
use liqo_api::credentials::{OWN_TOKEN_SECRET, SERVING_CERTIFICATE_SECRET, TOKEN_KEY};
use liqo_api::labels;
use liqo_api::names::ClusterId;
use liqo_kit::{Index as Indexed, Key};

use super::Index;
use crate::certificate::Serving;
use crate::tokens::{DENIED_TOKEN_KEY, Record, Token, text_of};

/// ConfigMap with the network's settings, made by the chart; and the key that says what peers are told.
const NETWORK_CONFIG_MAP: &str = "liqo-network";
const API_SERVER_KEY: &str = "apiServerAddress";

/// ConfigMap with the authority of the API server, which Kubernetes puts into every namespace; and its key.
const ROOT_CA_CONFIG_MAP: &str = "kube-root-ca.crt";
const ROOT_CA_KEY: &str = "ca.crt";

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
