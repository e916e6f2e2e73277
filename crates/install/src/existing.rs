//! What is in the cluster already: an installation of ours, somebody else's, or remains of either.

mod read;

use crate::facts::Unread;
use crate::notes::Notes;
use crate::objects::Owner;

pub(crate) use read::read;

/// What was found.
#[derive(Debug, Clone, Default)]
pub(crate) struct Existing {
    /// The namespace, if it is there.
    pub(crate) namespace: Option<Namespace>,
    /// liqoctl's notes of the last installation.
    pub(crate) notes: Option<Notes>,
    /// Who the cluster is.
    pub(crate) identity: Option<Identity>,
    /// Definitions of kinds in `*.liqo.io`.
    pub(crate) definitions: Vec<Definition>,
    /// Deployments by the name of ours, in any namespace.
    pub(crate) managers: Vec<Manager>,
    /// Helm releases that may be Liqo.
    pub(crate) releases: Vec<Release>,
    /// Webhooks that may be Liqo's.
    pub(crate) webhooks: Vec<Webhook>,
    /// Ports of nodes that something of others uses.
    pub(crate) ports: Vec<Port>,
    /// What could not be read.
    pub(crate) unread: Vec<Unread>,
}

/// The namespace that liqo belongs to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Namespace {
    pub(crate) owner: Owner,
    pub(crate) terminating: bool,
}

/// Who a cluster is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Identity {
    pub(crate) id: Option<String>,
    pub(crate) name: Option<String>,
    /// The object that says so.
    pub(crate) source: String,
}

/// A definition of a kind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Definition {
    pub(crate) name: String,
    pub(crate) owner: Owner,
    pub(crate) terminating: bool,
}

/// A Deployment with the manager's name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Manager {
    pub(crate) namespace: String,
    pub(crate) owner: Owner,
}

/// A release of Helm.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Release {
    pub(crate) namespace: String,
    pub(crate) name: String,
}

/// A webhook configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Webhook {
    /// `MutatingWebhookConfiguration` or `ValidatingWebhookConfiguration`.
    pub(crate) kind: &'static str,
    pub(crate) name: String,
    pub(crate) owner: Owner,
    /// The Services behind it that do not answer, as `namespace/name`.
    pub(crate) dead: Vec<String>,
    /// Whether requests fail when it does not answer.
    pub(crate) closed: bool,
}

impl Webhook {
    /// Nobody is behind it any more.
    pub(crate) fn is_dead(&self) -> bool {
        !self.dead.is_empty()
    }
}

/// A port of the nodes that something uses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Port {
    pub(crate) number: u16,
    pub(crate) protocol: String,
    /// The object that has it.
    pub(crate) by: String,
}

impl Port {
    /// As Kubernetes writes it; without a word about the protocol it is TCP.
    pub(crate) fn of(number: i32, protocol: Option<&str>, by: &str) -> Option<Self> {
        let number = u16::try_from(number).ok()?;
        Some(Self { number, protocol: protocol.unwrap_or("TCP").to_owned(), by: by.to_owned() })
    }
}
