//! Certificate signing requests: making ours, and judging those of others.

use liqo_api::names::ClusterId;
use rcgen::{CertificateParams, DistinguishedName, DnType, KeyPair, PKCS_ED25519};
use sha2::{Digest, Sha256};
use x509_parser::certification_request::X509CertificationRequest;
use x509_parser::oid_registry::{
    OID_EC_P256, OID_KEY_TYPE_EC_PUBLIC_KEY, OID_SIG_ED25519, OID_X509_COMMON_NAME,
    OID_X509_ORGANIZATION_NAME,
};
use x509_parser::prelude::FromDer;
use x509_parser::x509::{SubjectPublicKeyInfo, X509Name, X509Version};
use zeroize::Zeroizing;

#[cfg(test)]
mod tests;

/// The organisation in the subject of every peer's certificate; for Kubernetes, the group of the user.
pub(crate) const ORGANIZATION: &str = "liqo.io";

const PEM_TAG: &str = "CERTIFICATE REQUEST";

/// Why a signing request is not granted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum CsrError {
    /// It is none.
    #[error("the certificate signing request is not usable: {0}")]
    Malformed(&'static str),
    /// It asks for what the caller does not get.
    #[error("the certificate signing request is refused: {0}")]
    Refused(String),
}

/// A signing request that asks for nothing but the caller's own name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Csr {
    /// PEM, written anew from what was checked, so that nothing is handed on that was not looked at.
    pub(crate) pem: String,
    /// The SHA-256 of its DER form, in hex.
    pub(crate) digest: String,
}

/// Checks that `pem` is signed by its own key and asks for the caller's name and for nothing else.
pub(crate) fn check(pem: &[u8], caller: &ClusterId) -> Result<Csr, CsrError> {
    let block = pem::parse(pem).map_err(|_| CsrError::Malformed("it is no PEM"))?;
    if block.tag() != PEM_TAG {
        return Err(CsrError::Malformed("it is a PEM block of another type"));
    }
    let der = block.contents();
    let (rest, request) = X509CertificationRequest::from_der(der)
        .map_err(|_| CsrError::Malformed("it is no PKCS#10 request"))?;
    if !rest.is_empty() {
        return Err(CsrError::Malformed("something follows the request"));
    }
    let info = &request.certification_request_info;
    if info.version != X509Version::V1 {
        return Err(CsrError::Malformed("its version is unknown"));
    }
    let algorithm = check_key(&info.subject_pki)?;
    // The parser forgives what others may read in another way.
    if der != written(info.raw, algorithm, &request.signature_value.data) {
        return Err(CsrError::Malformed("it is not written as DER demands"));
    }
    request.verify_signature().map_err(|_| CsrError::Malformed("it is not signed by its own key"))?;
    check_subject(&info.subject, caller)?;
    // Other names, usages, a CA: all of them are asked for in attributes.
    if info.iter_attributes().next().is_some() {
        return Err(CsrError::Refused(
            "it asks for more than a subject; names, usages and other extensions are not granted".to_owned(),
        ));
    }
    Ok(Csr { pem: encode(der), digest: digest(der) })
}

/// The only way in which DER writes a request.
fn written(info: &[u8], algorithm: &[u8], signature: &[u8]) -> Vec<u8> {
    const SEQUENCE: u8 = 0x30;
    const BIT_STRING: u8 = 0x03;
    // The first byte says how many bits at the end are not used.
    let signature = element(BIT_STRING, &[&[0], signature].concat());
    element(SEQUENCE, &[info, algorithm, &signature].concat())
}

fn element(tag: u8, content: &[u8]) -> Vec<u8> {
    let length = content.len().to_be_bytes();
    let length = &length[length.iter().take_while(|byte| **byte == 0).count()..];
    let head = match content.len() {
        short @ 0..0x80 => vec![tag, short as u8],
        _ => [&[tag, 0x80 | length.len() as u8], length].concat(),
    };
    [head, content.to_vec()].concat()
}

/// How the signatures of Ed25519 keys are named, and those of P-256 keys with SHA-256.
const ED25519: &[u8] = &[0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70];
const ECDSA_SHA256: &[u8] = &[0x30, 0x0a, 0x06, 0x08, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04, 0x03, 0x02];

/// How a signature of this key is named.
fn check_key(key: &SubjectPublicKeyInfo<'_>) -> Result<&'static [u8], CsrError> {
    let algorithm = &key.algorithm;
    let curve = || algorithm.parameters.as_ref().and_then(|parameters| parameters.as_oid().ok());
    if algorithm.algorithm == OID_SIG_ED25519 {
        Ok(ED25519)
    } else if algorithm.algorithm == OID_KEY_TYPE_EC_PUBLIC_KEY && curve() == Some(OID_EC_P256) {
        Ok(ECDSA_SHA256)
    } else {
        Err(CsrError::Refused("its key is neither an Ed25519 nor a P-256 key".to_owned()))
    }
}

fn check_subject(subject: &X509Name<'_>, caller: &ClusterId) -> Result<(), CsrError> {
    let attributes: Vec<_> = subject.iter_attributes().collect();
    let value = |kind| {
        let mut found = attributes.iter().filter(|attribute| *attribute.attr_type() == kind);
        match (found.next(), found.next()) {
            (Some(attribute), None) => attribute.as_str().ok(),
            _ => None,
        }
    };
    if value(OID_X509_COMMON_NAME) != Some(caller.as_str()) {
        return Err(CsrError::Refused(format!("its common name must be the caller's cluster ID, {caller}")));
    }
    if value(OID_X509_ORGANIZATION_NAME) != Some(ORGANIZATION) || attributes.len() != 2 {
        return Err(CsrError::Refused(format!(
            "besides the common name, its subject must have the organisation {ORGANIZATION} and nothing else"
        )));
    }
    Ok(())
}

fn encode(der: &[u8]) -> String {
    let config = pem::EncodeConfig::new().set_line_ending(pem::LineEnding::LF);
    pem::encode_config(&pem::Pem::new(PEM_TAG, der), config)
}

fn digest(der: &[u8]) -> String {
    Sha256::digest(der).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A new key and the request for a certificate of it.
pub(crate) struct NewKey {
    /// PKCS#8 as PEM.
    pub(crate) private_key: Zeroizing<String>,
    /// The public half, as it stands in a certificate.
    pub(crate) public_key: Vec<u8>,
    /// PEM.
    pub(crate) csr: String,
}

/// Makes a key and asks for a certificate with our name.
pub(crate) fn new_key(name: &ClusterId) -> Result<NewKey, rcgen::Error> {
    let key = KeyPair::generate_for(&PKCS_ED25519)?;
    let mut subject = DistinguishedName::new();
    subject.push(DnType::OrganizationName, ORGANIZATION);
    subject.push(DnType::CommonName, name.as_str());
    let mut params = CertificateParams::default();
    params.distinguished_name = subject;
    let csr = params.serialize_request(&key)?;
    Ok(NewKey {
        private_key: Zeroizing::new(key.serialize_pem()),
        public_key: key.public_key_raw().to_vec(),
        csr: encode(csr.der()),
    })
}
