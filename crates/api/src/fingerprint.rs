//! The fingerprint by which a certificate is recognised where no authority vouches for it.

use std::{fmt, str::FromStr};

use sha2::{Digest, Sha256};

/// The name of the hash, before the digits.
const PREFIX: &str = "sha256:";

/// Bytes of a SHA-256.
const LENGTH: usize = 32;

/// The SHA-256 of a certificate's DER form; as text `sha256:` and 64 lower-case hex digits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Fingerprint([u8; LENGTH]);

/// Why a text is no fingerprint.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("not the fingerprint of a certificate: expected sha256: and 64 lower-case hex digits")]
pub struct InvalidFingerprint;

impl Fingerprint {
    /// The fingerprint of a certificate in DER form.
    pub fn of_certificate(der: &[u8]) -> Self {
        Self(Sha256::digest(der).into())
    }
}

impl FromStr for Fingerprint {
    type Err = InvalidFingerprint;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let digits = text.strip_prefix(PREFIX).ok_or(InvalidFingerprint)?.as_bytes();
        let value = |digit: u8| match digit {
            b'0'..=b'9' => Ok(digit - b'0'),
            b'a'..=b'f' => Ok(digit - b'a' + 10),
            _ => Err(InvalidFingerprint),
        };
        let (pairs, rest) = digits.as_chunks::<2>();
        if pairs.len() != LENGTH || !rest.is_empty() {
            return Err(InvalidFingerprint);
        }
        let mut bytes = [0; LENGTH];
        for (byte, [high, low]) in bytes.iter_mut().zip(pairs) {
            *byte = value(*high)? << 4 | value(*low)?;
        }
        Ok(Self(bytes))
    }
}

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(PREFIX)?;
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests;
