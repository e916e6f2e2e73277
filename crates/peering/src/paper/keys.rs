//! Public keys, in the forms in which they are kept and passed on.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use liqo_core::contract::PublicKey;
use liqo_identity::key;

/// Longest text that is looked at: a PEM block has 113 characters, and somebody may keep a comment beside it.
const LONGEST: usize = 16 << 10;

/// A text that is no key.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "it is no Ed25519 public key: expected ed25519: and 64 small hex digits, or a PEM block of the type PUBLIC KEY"
)]
pub struct NoKey;

/// A key as a tenant namespace notes it: SPKI in base64.
pub fn key_from_spki(text: &str) -> Result<PublicKey, NoKey> {
    let der = STANDARD.decode(text.trim()).map_err(|_| NoKey)?;
    let key = key::PublicKey::from_der(&der).map_err(|_| NoKey)?;
    Ok(PublicKey::new(key.to_bytes()))
}

/// A key as people pass it on: `ed25519:` and hex digits, or PEM.
pub fn key_from_text(text: &str) -> Result<PublicKey, NoKey> {
    let text = text.trim();
    if text.len() > LONGEST {
        return Err(NoKey);
    }
    if let Ok(key) = text.parse() {
        return Ok(key);
    }
    let key = key::PublicKey::from_pem(text.as_bytes()).map_err(|_| NoKey)?;
    Ok(PublicKey::new(key.to_bytes()))
}
