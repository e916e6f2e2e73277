//! Whether a caller gets what it asks for. Pure: what is known, what is asked, and the time.

use std::time::Duration;

use jiff::Timestamp;
use liqo_api::names::{ClusterId, Identity};
use liqo_identity::key::PublicKey;

use crate::csr::{self, Csr, CsrError};
use crate::index::{Index, KnownKey, Standing};
use crate::proof::{holds, holds_for};
use crate::tokens::AdmittedBy;
use crate::wire::{ProofOf, Request};

#[cfg(test)]
mod tests;

/// What a caller is given.
#[derive(Clone, Debug)]
pub(crate) struct Grant {
    pub(crate) peer: Identity,
    pub(crate) by: AdmittedBy,
    /// The key that the peer proved to have.
    pub(crate) key: Option<PublicKey>,
    pub(crate) csr: Csr,
    /// Whether it needed no token, because it is known by its key.
    pub(crate) known: bool,
}

/// Why a caller gets nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Reason {
    /// The body or the signing request cannot be read.
    Malformed,
    /// No token, a wrong one, an expired, revoked or another peer's one. Callers are not told which.
    Unauthorized,
    /// It was put out.
    PutOut,
    /// The signing request asks for something else than it may.
    SigningRequest,
    /// The signature is not the key's.
    WrongProof,
    /// It says it is a cluster that is known with another key.
    ClaimedTwice,
    /// It says it is us.
    OwnIdentity,
    /// Its ID is the name of a user of this cluster.
    UserName,
    /// Its namespace would be that of another cluster.
    NamespaceTaken,
    /// A certificate was given for this signing request already.
    Replayed,
    /// Something here is going away and must be gone first.
    GoingAway,
    /// Too many failed attempts.
    TooMany,
    /// It did not work; whoever asks again may have more luck.
    Failed,
}

impl Reason {
    pub(crate) const ALL: [Self; 13] = [
        Self::Malformed,
        Self::Unauthorized,
        Self::PutOut,
        Self::SigningRequest,
        Self::WrongProof,
        Self::ClaimedTwice,
        Self::OwnIdentity,
        Self::UserName,
        Self::NamespaceTaken,
        Self::Replayed,
        Self::GoingAway,
        Self::TooMany,
        Self::Failed,
    ];

    /// The word in metrics and logs.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Malformed => "malformed",
            Self::Unauthorized => "unauthorized",
            Self::PutOut => "put_out",
            Self::SigningRequest => "signing_request",
            Self::WrongProof => "wrong_proof",
            Self::ClaimedTwice => "claimed_twice",
            Self::OwnIdentity => "own_identity",
            Self::UserName => "user_name",
            Self::NamespaceTaken => "namespace_taken",
            Self::Replayed => "replayed",
            Self::GoingAway => "going_away",
            Self::TooMany => "too_many",
            Self::Failed => "failed",
        }
    }

    /// The status of the answer; Liqo's, where Liqo has one.
    pub(crate) const fn status(self) -> u16 {
        match self {
            Self::Malformed => 400,
            Self::Unauthorized => 401,
            Self::PutOut
            | Self::SigningRequest
            | Self::WrongProof
            | Self::ClaimedTwice
            | Self::OwnIdentity
            | Self::UserName
            | Self::NamespaceTaken
            | Self::Replayed => 403,
            Self::TooMany => 429,
            Self::Failed => 500,
            Self::GoingAway => 503,
        }
    }

    /// Whether it is the caller's fault, so that it must not be repeated without end.
    pub(crate) const fn counts_as_failure(self) -> bool {
        !matches!(self, Self::GoingAway | Self::Failed | Self::TooMany)
    }
}

/// A refusal, in words for the caller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Refusal {
    pub(crate) reason: Reason,
    pub(crate) text: String,
    /// When it makes sense to ask again, if that is known.
    pub(crate) retry_after: Option<Duration>,
}

impl Refusal {
    pub(crate) fn new(reason: Reason, text: impl Into<String>) -> Self {
        Self { reason, text: text.into(), retry_after: None }
    }

    pub(crate) fn retry_after(self, wait: Duration) -> Self {
        Self { retry_after: Some(wait), ..self }
    }
}

impl From<CsrError> for Refusal {
    fn from(error: CsrError) -> Self {
        let reason = match error {
            CsrError::Malformed(_) => Reason::Malformed,
            CsrError::Refused(_) => Reason::SigningRequest,
        };
        Self::new(reason, error.to_string())
    }
}

/// What the one that is called is, and how it wants callers to come.
#[derive(Clone, Copy, Debug)]
pub(crate) struct House<'a> {
    pub(crate) me: &'a ClusterId,
    /// Whether who is not known yet needs a token.
    pub(crate) tokens_required: bool,
}

/// Judges a request. Who has no right to be here learns nothing but that.
pub(crate) fn judge(
    index: &Index,
    house: &House<'_>,
    request: &Request,
    now: Timestamp,
) -> Result<Grant, Refusal> {
    let me = house.me;
    let of = ProofOf { called: me, caller: &request.caller.id, csr: &request.csr };
    let (by, known) = match admission(index, request, &of, now) {
        Err(refusal) if !house.tokens_required => (without_token(index, request, &of).ok_or(refusal)?, false),
        admitted => admitted?,
    };
    if request.proof.as_ref().is_some_and(|proof| !holds(proof, &of)) {
        return Err(Refusal::new(Reason::WrongProof, "the proof is not a signature of publicKey"));
    }
    let csr = csr::check(&request.csr, &request.caller.id)?;
    if request.caller.id == *me {
        return Err(Refusal::new(Reason::OwnIdentity, "this is the ID of the cluster that you call"));
    }
    let key = request.proof.as_ref().map(|proof| proof.key.clone());
    if let Some(tenant) = index.tenant_of(&request.caller.id) {
        check_key(&tenant.key, key.as_ref(), &request.caller.id)?;
    }
    going_away(index, &request.caller.id)?;
    Ok(Grant { peer: request.caller.clone(), by, key, csr, known })
}

/// By what the caller comes in, and whether it is in already.
fn admission(
    index: &Index,
    request: &Request,
    of: &ProofOf<'_>,
    now: Timestamp,
) -> Result<(AdmittedBy, bool), Refusal> {
    let caller = &request.caller.id;
    if let Some(by) = index.book.admits(&request.token, caller, now) {
        if by == AdmittedBy::Own && index.is_denied(caller) {
            return Err(Refusal::new(
                Reason::PutOut,
                "this cluster was removed here and cannot come back with the same token; ask for a new one \
                 (liqoctl token create)",
            ));
        }
        return Ok((by, false));
    }
    // Whoever is in proves it by its key: tokens expire, and must not be needed for ever. Who has no ForeignCluster any more
    // was removed, in whatever way.
    let tenant = index.tenant_of(caller).filter(|_| index.cluster_of(caller).is_some());
    let known = tenant.filter(|tenant| match &tenant.key {
        KnownKey::Key(key) => holds_for(request.proof.as_ref(), key, of),
        _ => false,
    });
    match known.and_then(|tenant| Some((tenant, tenant.admitted_by.clone()?))) {
        Some((tenant, by)) if index.standing(tenant) == Standing::Admitted => Ok((by, true)),
        _ => Err(Refusal::new(
            Reason::Unauthorized,
            "the token is missing, wrong, expired or revoked; ask for a new one (liqoctl token create)",
        )),
    }
}

/// Where no token is asked for, who proves that it has a key comes in, unless it was put out: it would come back by itself. One
/// that shows a token after all means that one.
fn without_token(index: &Index, request: &Request, of: &ProofOf<'_>) -> Option<AdmittedBy> {
    let proven = request.proof.as_ref().is_some_and(|proof| holds(proof, of));
    let may = request.token.is_empty() && proven && !index.was_put_out(&request.caller.id);
    may.then_some(AdmittedBy::Open)
}

/// An ID belongs to one key.
pub(crate) fn check_key(
    known: &KnownKey,
    shown: Option<&PublicKey>,
    caller: &ClusterId,
) -> Result<(), Refusal> {
    if known.allows(shown) {
        return Ok(());
    }
    let text = format!(
        "the cluster {caller} is known here with another key; if it was installed anew, its ForeignCluster must be \
         removed here first"
    );
    Err(Refusal::new(Reason::ClaimedTwice, text))
}

fn going_away(index: &Index, caller: &ClusterId) -> Result<(), Refusal> {
    let cluster = index.cluster_of(caller);
    let going = cluster.is_some_and(|cluster| cluster.metadata.deletion_timestamp.is_some())
        || index.tenant_of(caller).is_some_and(|tenant| tenant.deleting);
    if going { Err(super::plan::going_away()) } else { Ok(()) }
}
