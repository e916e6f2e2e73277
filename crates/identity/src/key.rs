//! The key that proves a cluster's identity.

use std::fmt;

use aws_lc_rs::signature::{ED25519, Ed25519KeyPair, KeyPair, UnparsedPublicKey};
use sha2::{Digest, Sha256};
use zeroize::Zeroizing;

#[cfg(test)]
mod tests;

/// The type of PEM block that a private key is kept in, and a public one.
const PRIVATE_KEY: &str = "PRIVATE KEY";
const PUBLIC_KEY: &str = "PUBLIC KEY";

/// What precedes the 32 bytes of an Ed25519 key in its SPKI form (RFC 8410): the same for every key.
const SPKI_PREFIX: [u8; 12] = [0x30, 0x2a, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x03, 0x21, 0x00];

/// Bytes of an Ed25519 public key.
const KEY_LENGTH: usize = 32;

/// Why a key cannot be used. Says nothing about its content, as that may be half a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KeyError {
    /// It is no PEM block of the type that is expected.
    #[error("it is no PEM block of the type {expected}")]
    NotPem {
        /// The type.
        expected: &'static str,
    },
    /// It is something else than an Ed25519 key.
    #[error("it is no Ed25519 key")]
    NotEd25519,
    /// The operating system gave no randomness, or the library failed.
    #[error("no key can be made")]
    NotMade,
}

/// An Ed25519 key pair. It is wiped from memory when it is dropped, and never printed.
pub struct SigningKey(Ed25519KeyPair);

impl SigningKey {
    /// A new key.
    pub fn generate() -> Result<Self, KeyError> {
        Ed25519KeyPair::generate().map(Self).map_err(|_| KeyError::NotMade)
    }

    /// Reads a key from PKCS#8, with or without the public key in it, in a PEM block.
    pub fn from_pem(text: &[u8]) -> Result<Self, KeyError> {
        let block = block(text, PRIVATE_KEY)?;
        Ed25519KeyPair::from_pkcs8(&block).map(Self).map_err(|_| KeyError::NotEd25519)
    }

    /// PKCS#8 in a PEM block; in the first version of the format, as that is the one that every tool reads.
    pub fn to_pem(&self) -> Result<Zeroizing<String>, KeyError> {
        let document = self.0.to_pkcs8v1().map_err(|_| KeyError::NotMade)?;
        Ok(Zeroizing::new(encode(PRIVATE_KEY, document.as_ref())))
    }

    /// Signs a message.
    pub fn sign(&self, message: &[u8]) -> Vec<u8> {
        self.0.sign(message).as_ref().to_vec()
    }

    /// The public half.
    pub fn public_key(&self) -> PublicKey {
        let mut der = SPKI_PREFIX.to_vec();
        der.extend_from_slice(self.0.public_key().as_ref());
        PublicKey { der }
    }
}

impl fmt::Debug for SigningKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SigningKey")
            .field("fingerprint", &self.public_key().fingerprint())
            .finish_non_exhaustive()
    }
}

/// The key by which others recognise what a cluster signed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PublicKey {
    /// SPKI.
    der: Vec<u8>,
}

impl PublicKey {
    /// Reads a key from SPKI in a PEM block.
    pub fn from_pem(text: &[u8]) -> Result<Self, KeyError> {
        Self::from_der(&block(text, PUBLIC_KEY)?)
    }

    /// Reads a key from SPKI.
    pub fn from_der(der: &[u8]) -> Result<Self, KeyError> {
        let der = der.to_vec();
        let ed25519 = der.len() == SPKI_PREFIX.len() + KEY_LENGTH && der.starts_with(&SPKI_PREFIX);
        if ed25519 { Ok(Self { der }) } else { Err(KeyError::NotEd25519) }
    }

    /// The key with these 32 bytes.
    pub fn from_bytes(raw: &[u8; KEY_LENGTH]) -> Self {
        Self { der: [SPKI_PREFIX.as_slice(), raw].concat() }
    }

    /// The 32 bytes of the key.
    pub fn to_bytes(&self) -> [u8; KEY_LENGTH] {
        let mut raw = [0; KEY_LENGTH];
        // The form is checked where a key is read; what is shorter cannot be here.
        for (byte, of_key) in raw.iter_mut().zip(self.der.iter().skip(SPKI_PREFIX.len())) {
            *byte = *of_key;
        }
        raw
    }

    /// SPKI in a PEM block.
    pub fn to_pem(&self) -> String {
        encode(PUBLIC_KEY, &self.der)
    }

    /// The SHA-256 of the SPKI form, in hex.
    pub fn fingerprint(&self) -> String {
        hex_of_sha256(&self.der)
    }

    /// Whether `signature` is this key's under `message`.
    pub fn verify(&self, message: &[u8], signature: &[u8]) -> bool {
        let raw = self.der.get(SPKI_PREFIX.len()..).unwrap_or_default();
        UnparsedPublicKey::new(&ED25519, raw).verify(message, signature).is_ok()
    }
}

pub(crate) fn hex_of_sha256(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

fn block(text: &[u8], expected: &'static str) -> Result<Zeroizing<Vec<u8>>, KeyError> {
    let block = pem::parse(text).map_err(|_| KeyError::NotPem { expected })?;
    if block.tag() != expected {
        return Err(KeyError::NotPem { expected });
    }
    Ok(Zeroizing::new(block.into_contents()))
}

fn encode(tag: &str, der: &[u8]) -> String {
    let config = pem::EncodeConfig::new().set_line_ending(pem::LineEnding::LF);
    pem::encode_config(&pem::Pem::new(tag, der), config)
}
