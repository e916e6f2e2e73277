//! How a caller proves that it has the cluster's key.
//!
//! It signs with Ed25519: the text `liqo.io/authentication-proof/v1`, a zero byte, the ID of the cluster that is called, a
//! zero byte, its own ID, a zero byte, and the SHA-256 of the signing request as it is sent (PEM, before base64). IDs have
//! no zero bytes, so no two requests give the same message; with the called cluster in it, nobody who is called can use
//! it elsewhere; with the signing request in it, whoever repeats it gets a certificate for a key that is not theirs.

use liqo_identity::Identity;
use liqo_identity::key::PublicKey;
use sha2::{Digest, Sha256};

use crate::wire::{Proof, ProofOf};

#[cfg(test)]
mod tests;

/// What makes these messages differ from everything else that a cluster signs.
const DOMAIN: &[u8] = b"liqo.io/authentication-proof/v1";

fn message(of: &ProofOf<'_>) -> Vec<u8> {
    let parts = [DOMAIN, of.called.as_str().as_bytes(), of.caller.as_str().as_bytes()];
    let mut message = parts.join(&0);
    message.push(0);
    message.extend_from_slice(&Sha256::digest(of.csr));
    message
}

/// Signs.
pub(crate) fn prove(identity: &Identity, of: &ProofOf<'_>) -> Vec<u8> {
    identity.sign(&message(of))
}

/// Whether the signature is that of the key that is shown.
pub(crate) fn holds(proof: &Proof, of: &ProofOf<'_>) -> bool {
    proof.key.verify(&message(of), &proof.signature)
}

/// Whether it is `known`'s.
pub(crate) fn holds_for(proof: Option<&Proof>, known: &PublicKey, of: &ProofOf<'_>) -> bool {
    proof.is_some_and(|proof| proof.key == *known && holds(proof, of))
}
