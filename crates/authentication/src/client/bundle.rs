//! Authorities that vouch for one peer.

use rustls::RootCertStore;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;

#[cfg(test)]
mod tests;

/// Authorities that vouch for the authentication service of one peer, and for nobody else's. There is at least one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CaBundle(Vec<CertificateDer<'static>>);

/// Why a text holds no authorities.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidBundle {
    /// Nothing in it is marked as a certificate.
    #[error("there is no certificate in it; expected PEM, with -----BEGIN CERTIFICATE----- before each")]
    Empty,
    /// A mark is missing, or what is between two marks is no base64.
    #[error("it is no PEM: {0}")]
    NoPem(String),
    /// What is between the marks is no certificate.
    #[error("certificate {number} of it cannot be used: {reason}")]
    Unusable {
        /// Which one, beginning with 1.
        number: usize,
        /// What is wrong with it.
        reason: String,
    },
}

impl CaBundle {
    /// Reads certificates in PEM. Whatever else is in the text, such as comments or keys, is left out.
    pub fn parse(pem: &[u8]) -> Result<Self, InvalidBundle> {
        let found: Vec<_> = CertificateDer::pem_slice_iter(pem)
            .collect::<Result<_, _>>()
            .map_err(|error| InvalidBundle::NoPem(error.to_string()))?;
        if found.is_empty() {
            return Err(InvalidBundle::Empty);
        }
        let bundle = Self(found);
        bundle.roots().map(|_| bundle)
    }

    /// The certificates, and nothing else.
    pub fn to_pem(&self) -> String {
        let certificates: Vec<_> =
            self.0.iter().map(|der| pem::Pem::new("CERTIFICATE", der.to_vec())).collect();
        let unix = pem::EncodeConfig::new().set_line_ending(pem::LineEnding::LF);
        pem::encode_many_config(&certificates, unix)
    }

    pub(super) fn roots(&self) -> Result<RootCertStore, InvalidBundle> {
        let mut roots = RootCertStore::empty();
        for (index, authority) in self.0.iter().enumerate() {
            let unusable = |error: rustls::Error| InvalidBundle::Unusable {
                number: index + 1,
                reason: error.to_string(),
            };
            roots.add(authority.clone()).map_err(unusable)?;
        }
        Ok(roots)
    }
}
