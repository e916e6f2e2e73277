//! What is still missing until a caller can be given its certificate. Pure: one step at a time, from what is there.

use std::time::Duration;

use liqo_api::names::ClusterId;

use super::judge::{Grant, Reason, Refusal, check_key};
use crate::index::{KnownKey, PeerBinding, PeerRole, Signing, Tenant};
use crate::tokens::{AdmittedBy, Record};

#[cfg(test)]
mod tests;

/// The shortest time that the protocol can tell; what goes away takes some seconds, and nobody knows how many.
const A_MOMENT: Duration = Duration::from_secs(1);

/// What is there for one caller.
#[derive(Clone, Debug, Default)]
pub(crate) struct Facts {
    /// The token it came with, if that is a peer token.
    pub(crate) token: Option<Record>,
    pub(crate) tenant: Option<Tenant>,
    pub(crate) cluster: Option<Known>,
    pub(crate) role: Option<PeerRole>,
    pub(crate) binding: Option<PeerBinding>,
    /// The uid of the note that it was put out.
    pub(crate) denied: Option<String>,
    pub(crate) signing: Option<Signing>,
    /// The digest of what its last certificate was asked for with.
    pub(crate) issued: Option<String>,
    /// Whether its certificate was put on record in this call.
    pub(crate) kept: bool,
    /// Whether its ID is known to be nobody's user name.
    pub(crate) user_checked: bool,
}

/// The ForeignCluster of a caller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Known {
    pub(crate) name: String,
    pub(crate) uid: String,
    pub(crate) deleting: bool,
}

/// The next thing to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// Look whether somebody gave rights to a user of that name.
    CheckUser,
    /// Make the token the caller's.
    UseToken {
        resource_version: String,
    },
    CreateTenant,
    /// Note the caller's key and by what it came in.
    MarkTenant {
        resource_version: String,
    },
    CreateCluster,
    CreateRole,
    FixRole,
    CreateBinding,
    /// It gives its role to somebody else, or another role, which cannot be changed.
    DeleteBinding {
        uid: String,
    },
    /// A new token lifts an old denial.
    DeleteDenied {
        uid: String,
    },
    CreateSigning,
    Approve,
    AwaitCertificate,
    KeepCertificate(Vec<u8>),
    /// Nothing is missing; PEM.
    Done(Vec<u8>),
}

impl Next {
    /// A word for logs and tests.
    pub(crate) const fn word(&self) -> &'static str {
        match self {
            Self::CheckUser => "check user",
            Self::UseToken { .. } => "use token",
            Self::CreateTenant => "create tenant",
            Self::MarkTenant { .. } => "mark tenant",
            Self::CreateCluster => "create cluster",
            Self::CreateRole => "create role",
            Self::FixRole => "fix role",
            Self::CreateBinding => "create binding",
            Self::DeleteBinding { .. } => "delete binding",
            Self::DeleteDenied { .. } => "lift denial",
            Self::CreateSigning => "create signing request",
            Self::Approve => "approve",
            Self::AwaitCertificate => "await certificate",
            Self::KeepCertificate(_) => "keep certificate",
            Self::Done(_) => "done",
        }
    }
}

/// The first thing that is missing, or why there is no point in going on.
pub(crate) fn next(facts: &Facts, grant: &Grant) -> Result<Next, Refusal> {
    if !facts.kept && facts.issued.as_deref() == Some(grant.csr.digest.as_str()) {
        return Err(Refusal::new(Reason::Replayed, "a certificate already exists for this CSR"));
    }
    // Before anything exists, as a user's rights are not a peer's.
    let admitted = facts.tenant.as_ref().is_some_and(|tenant| tenant.admitted_by.is_some());
    if !admitted && !facts.user_checked {
        return Ok(Next::CheckUser);
    }
    if let Some(step) = token(facts, grant)? {
        return Ok(step);
    }
    if let Some(step) = tenant(facts.tenant.as_ref(), grant)? {
        return Ok(step);
    }
    match &facts.cluster {
        None => return Ok(Next::CreateCluster),
        Some(known) if known.deleting => return Err(going_away()),
        Some(_) => {}
    }
    match &facts.role {
        None => return Ok(Next::CreateRole),
        Some(role) if !role.right => return Ok(Next::FixRole),
        Some(_) => {}
    }
    match &facts.binding {
        None => return Ok(Next::CreateBinding),
        Some(binding) if !(binding.right_role && binding.right_peer) => {
            return Ok(Next::DeleteBinding { uid: binding.uid.clone() });
        }
        Some(_) => {}
    }
    if let (Some(uid), AdmittedBy::Token(_)) = (&facts.denied, &grant.by) {
        return Ok(Next::DeleteDenied { uid: uid.clone() });
    }
    signing(facts)
}

fn token(facts: &Facts, grant: &Grant) -> Result<Option<Next>, Refusal> {
    let AdmittedBy::Token(_) = &grant.by else { return Ok(None) };
    if grant.known {
        return Ok(None);
    }
    let usable = |record: &&Record| record.revoked.is_none() && record.is_for(&grant.peer.id);
    let record = facts.token.as_ref().filter(usable).ok_or_else(|| {
        // Somebody else was quicker, or it was revoked meanwhile.
        Refusal::new(Reason::Unauthorized, "the token is missing, wrong, expired or revoked")
    })?;
    Ok(record.used_by.is_none().then(|| Next::UseToken { resource_version: record.resource_version.clone() }))
}

fn tenant(tenant: Option<&Tenant>, grant: &Grant) -> Result<Option<Next>, Refusal> {
    let Some(tenant) = tenant else { return Ok(Some(Next::CreateTenant)) };
    if tenant.peer != grant.peer.id {
        return Err(namespace_taken(&tenant.name, &grant.peer.id));
    }
    if tenant.deleting {
        return Err(going_away());
    }
    check_key(&tenant.key, grant.key.as_ref(), &grant.peer.id)?;
    let new_key = tenant.key == KnownKey::None && grant.key.is_some();
    let marked = !new_key && !tenant.put_out && tenant.admitted_by.as_ref() == Some(&grant.by);
    Ok((!marked).then(|| Next::MarkTenant { resource_version: tenant.resource_version.clone() }))
}

fn signing(facts: &Facts) -> Result<Next, Refusal> {
    let Some(signing) = &facts.signing else { return Ok(Next::CreateSigning) };
    if let Some(failure) = &signing.failed {
        return Err(Refusal::new(
            Reason::Failed,
            format!("this cluster's signer gave no certificate ({failure})"),
        ));
    }
    if !signing.approved {
        return Ok(Next::Approve);
    }
    Ok(match &signing.certificate {
        None => Next::AwaitCertificate,
        Some(certificate) if !facts.kept => Next::KeepCertificate(certificate.clone()),
        Some(certificate) => Next::Done(certificate.clone()),
    })
}

pub(crate) fn namespace_taken(namespace: &str, caller: &ClusterId) -> Refusal {
    let text = format!(
        "the namespace {namespace} here belongs to another cluster, so {caller} cannot have it; another cluster name \
         helps"
    );
    Refusal::new(Reason::NamespaceTaken, text)
}

pub(crate) fn going_away() -> Refusal {
    let text = "an earlier peering with this cluster is just being removed; try again in a moment";
    Refusal::new(Reason::GoingAway, text).retry_after(A_MOMENT)
}
