//! An authority of one's own, such as a company has, and what it signs.

#![allow(dead_code, reason = "each test uses a part of it")]

use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer,
    KeyPair, KeyUsagePurpose, PKCS_ECDSA_P256_SHA256,
};

/// An authority.
pub(crate) struct Authority {
    /// Its certificate.
    pub(crate) pem: String,
    /// Those that a server shows below its own: everything between its own and the root.
    below: String,
    issuer: Issuer<'static, KeyPair>,
}

/// The certificate of a server, as a Secret has it.
pub(crate) struct Leaf {
    /// It and those of authorities that are not known everywhere.
    pub(crate) chain: String,
    pub(crate) key: String,
}

fn named(name: &str, hosts: &[&str]) -> CertificateParams {
    let hosts: Vec<_> = hosts.iter().map(|host| (*host).to_owned()).collect();
    let mut params = CertificateParams::new(hosts).unwrap();
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, name);
    params
}

fn authority(name: &str) -> (CertificateParams, KeyPair) {
    let mut params = named(name, &[]);
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    (params, KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256).unwrap())
}

impl Authority {
    /// A root.
    pub(crate) fn new(name: &str) -> Self {
        let (params, key) = authority(name);
        let pem = params.self_signed(&key).unwrap().pem();
        Self { pem, below: String::new(), issuer: Issuer::new(params, key) }
    }

    /// One that this one vouches for, and that does the daily work.
    pub(crate) fn deputy(&self, name: &str) -> Self {
        let (params, key) = authority(name);
        let pem = params.signed_by(&key, &self.issuer).unwrap().pem();
        Self { below: format!("{pem}{}", self.below), pem, issuer: Issuer::new(params, key) }
    }

    /// A new certificate for a server at this host, with a new key; for as long as cert-manager's.
    pub(crate) fn leaf(&self, host: &str) -> Leaf {
        let mut params = named("liqo-auth", &[host]);
        let end = jiff::Zoned::now().date() + jiff::Span::new().days(90);
        let (month, day) = (end.month().unsigned_abs(), end.day().unsigned_abs());
        params.not_after = rcgen::date_time_ymd(end.year().into(), month, day);
        self.sign(params)
    }

    /// The same, but it ended in 1999.
    pub(crate) fn former_leaf(&self, host: &str) -> Leaf {
        let mut params = named("liqo-auth", &[host]);
        params.not_after = rcgen::date_time_ymd(1999, 12, 31);
        self.sign(params)
    }

    fn sign(&self, mut params: CertificateParams) -> Leaf {
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        let key = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256).unwrap();
        let own = params.signed_by(&key, &self.issuer).unwrap().pem();
        Leaf { chain: format!("{own}{}", self.below), key: key.serialize_pem() }
    }
}
