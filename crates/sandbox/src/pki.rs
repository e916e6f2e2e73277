//! Keys, certificates and kubeconfigs of one cluster: a CA for Kubernetes, one for etcd, one for aggregated
//! APIs, and a certificate of its own for every component, with no more rights than its role has.

use std::fs;
use std::net::IpAddr;
use std::path::Path;

use k8s_openapi::ByteString;
use kube::config::Kubeconfig;
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose, SanType,
};
use time::{Duration, OffsetDateTime};

use crate::error::{FileContext, Result, SandboxError};
use crate::plan::{ClusterPlan, Place, Plan};

/// Longer than any sandbox lives, so that no test depends on a renewal nobody asked for.
const VALIDITY: Duration = Duration::days(3650);
/// Clocks of machines that share a state directory may differ a little.
const CLOCK_SKEW: Duration = Duration::hours(1);

struct Authority {
    pem: String,
    key_pem: String,
    issuer: Issuer<'static, KeyPair>,
}

/// A certificate with its key, as PEM.
struct Issued {
    certificate: String,
    key: String,
}

/// Whom a certificate names and what it is good for.
struct Subject<'a> {
    name: &'a str,
    group: Option<&'a str>,
    names: Vec<String>,
    addresses: Vec<IpAddr>,
    usages: Vec<ExtendedKeyUsagePurpose>,
}

impl<'a> Subject<'a> {
    fn client(name: &'a str, group: Option<&'a str>) -> Self {
        Self {
            name,
            group,
            names: vec![],
            addresses: vec![],
            usages: vec![ExtendedKeyUsagePurpose::ClientAuth],
        }
    }

    fn server(name: &'a str, names: &[&str], addresses: Vec<IpAddr>) -> Self {
        let names = names.iter().map(ToString::to_string).collect();
        Self { name, group: None, names, addresses, usages: vec![ExtendedKeyUsagePurpose::ServerAuth] }
    }

    fn also_client(mut self) -> Self {
        self.usages.push(ExtendedKeyUsagePurpose::ClientAuth);
        self
    }
}

fn dated() -> CertificateParams {
    let mut params = CertificateParams::default();
    params.not_before = OffsetDateTime::now_utc() - CLOCK_SKEW;
    params.not_after = OffsetDateTime::now_utc() + VALIDITY;
    params
}

impl Authority {
    fn new(name: &str) -> Result<Self, rcgen::Error> {
        let mut params = dated();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages =
            vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign, KeyUsagePurpose::DigitalSignature];
        params.distinguished_name.push(DnType::CommonName, name);
        let key = KeyPair::generate()?;
        let pem = params.self_signed(&key)?.pem();
        Ok(Self { pem, key_pem: key.serialize_pem(), issuer: Issuer::new(params, key) })
    }

    fn issue(&self, subject: &Subject<'_>) -> Result<Issued, rcgen::Error> {
        let mut params = dated();
        params.distinguished_name.push(DnType::CommonName, subject.name);
        if let Some(group) = subject.group {
            params.distinguished_name.push(DnType::OrganizationName, group);
        }
        for name in &subject.names {
            params.subject_alt_names.push(SanType::DnsName(name.as_str().try_into()?));
        }
        params.subject_alt_names.extend(subject.addresses.iter().map(|address| SanType::IpAddress(*address)));
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature, KeyUsagePurpose::KeyEncipherment];
        params.extended_key_usages.clone_from(&subject.usages);
        params.use_authority_key_identifier_extension = true;
        let key = KeyPair::generate()?;
        let certificate = params.signed_by(&key, &self.issuer)?.pem();
        Ok(Issued { certificate, key: key.serialize_pem() })
    }
}

/// Writes everything that the cluster's components and its users need to know each other.
pub(crate) fn write(cluster: &ClusterPlan) -> Result<()> {
    let pki = cluster.pki();
    fs::create_dir_all(&pki).at("create", &pki)?;
    let failed =
        |error: rcgen::Error| SandboxError::Pki { cluster: cluster.name().into(), reason: error.to_string() };
    let authority = Authority::new("kubernetes").map_err(failed)?;
    write_authority(&pki, "ca", &authority)?;
    write_etcd(cluster, &pki).map_err(failed)??;
    write_front_proxy(&pki).map_err(failed)??;
    write_service_account_key(&pki).map_err(failed)??;
    for (file, subject) in serving(cluster) {
        write_issued(&pki, file, &authority.issue(&subject).map_err(failed)?)?;
    }
    for (file, user, group) in USERS {
        let issued = authority.issue(&Subject::client(user, *group)).map_err(failed)?;
        write_secret(&cluster.dir.join(file), &kubeconfig(cluster, &authority.pem, &issued))?;
    }
    for node in cluster.nodes() {
        fs::create_dir_all(&node.dir).at("create", &node.dir)?;
        let user = format!("system:node:{}", node.node_name);
        let subject = Subject {
            group: Some("system:nodes"),
            ..Subject::server(&user, &[&node.node_name], vec![node.address.into()]).also_client()
        };
        let issued = authority.issue(&subject).map_err(failed)?;
        write_issued(&node.dir, "kubelet", &issued)?;
        write_secret(&node.dir.join("kubelet.kubeconfig"), &kubeconfig(cluster, &authority.pem, &issued))?;
    }
    Ok(())
}

/// File, user and group of those who talk to the API server. The built-in roles bind to these names.
const USERS: &[(&str, &str, Option<&str>)] = &[
    ("admin.kubeconfig", "kubernetes-admin", Some("system:masters")),
    ("controller-manager.kubeconfig", "system:kube-controller-manager", None),
    ("scheduler.kubeconfig", "system:kube-scheduler", None),
    ("kube-proxy.kubeconfig", "system:kube-proxy", None),
    ("kwok.kubeconfig", "liqo-sandbox:kwok", None),
];

fn serving(cluster: &ClusterPlan) -> Vec<(&'static str, Subject<'static>)> {
    let address = IpAddr::from(cluster.first_machine().address);
    let localhost = IpAddr::from([127, 0, 0, 1]);
    let names = [
        "kubernetes",
        "kubernetes.default",
        "kubernetes.default.svc",
        "kubernetes.default.svc.cluster.local",
        "localhost",
    ];
    vec![
        (
            "apiserver",
            Subject::server(
                "kube-apiserver",
                &names,
                vec![address, localhost, cluster.kubernetes_service().into()],
            ),
        ),
        (
            "apiserver-kubelet-client",
            Subject::client("kube-apiserver-kubelet-client", Some("system:masters")),
        ),
        (
            "controller-manager",
            Subject::server("kube-controller-manager", &["localhost"], vec![address, localhost]),
        ),
        ("scheduler", Subject::server("kube-scheduler", &["localhost"], vec![address, localhost])),
    ]
}

type Nested = Result<Result<()>, rcgen::Error>;

fn write_etcd(cluster: &ClusterPlan, pki: &Path) -> Nested {
    let authority = Authority::new("etcd")?;
    let addresses = vec![IpAddr::from(cluster.first_machine().address), IpAddr::from([127, 0, 0, 1])];
    let server = authority.issue(&Subject::server("etcd", &["localhost"], addresses).also_client())?;
    let client = authority.issue(&Subject::client("kube-apiserver", None))?;
    Ok(write_authority(pki, "etcd-ca", &authority)
        .and_then(|()| write_issued(pki, "etcd", &server))
        .and_then(|()| write_issued(pki, "etcd-client", &client)))
}

fn write_front_proxy(pki: &Path) -> Nested {
    let authority = Authority::new("front-proxy")?;
    let client = authority.issue(&Subject::client("front-proxy-client", None))?;
    Ok(write_authority(pki, "front-proxy-ca", &authority)
        .and_then(|()| write_issued(pki, "front-proxy-client", &client)))
}

fn write_service_account_key(pki: &Path) -> Nested {
    let key = KeyPair::generate()?;
    Ok(write_secret(&pki.join("service-accounts.key"), &key.serialize_pem())
        .and_then(|()| write_secret(&pki.join("service-accounts.pub"), &key.public_key_pem())))
}

fn write_authority(dir: &Path, name: &str, authority: &Authority) -> Result<()> {
    write_secret(&dir.join(format!("{name}.crt")), &authority.pem)?;
    write_secret(&dir.join(format!("{name}.key")), &authority.key_pem)
}

fn write_issued(dir: &Path, name: &str, issued: &Issued) -> Result<()> {
    write_secret(&dir.join(format!("{name}.crt")), &issued.certificate)?;
    write_secret(&dir.join(format!("{name}.key")), &issued.key)
}

/// Writes a file that only root may read.
pub(crate) fn write_secret(path: &Path, text: &str) -> Result<()> {
    use std::io::Write;
    use std::os::unix::fs::OpenOptionsExt;
    let mut file = fs::OpenOptions::new()
        .create(true)
        .truncate(true)
        .write(true)
        .mode(0o600)
        .open(path)
        .at("create", path)?;
    file.write_all(text.as_bytes()).at("write", path)
}

fn base64(text: &str) -> String {
    let encoded = serde_json::to_value(ByteString(text.as_bytes().to_vec()));
    encoded.ok().and_then(|value| value.as_str().map(str::to_owned)).unwrap_or_default()
}

fn kubeconfig(cluster: &ClusterPlan, ca: &str, issued: &Issued) -> String {
    let (name, server) = (cluster.name(), cluster.api_url());
    let (ca, certificate, key) = (base64(ca), base64(&issued.certificate), base64(&issued.key));
    format!(
        "apiVersion: v1
kind: Config
current-context: {name}
clusters:
- name: {name}
  cluster:
    server: {server}
    certificate-authority-data: {ca}
contexts:
- name: {name}
  context:
    cluster: {name}
    user: {name}
users:
- name: {name}
  user:
    client-certificate-data: {certificate}
    client-key-data: {key}
"
    )
}

/// One kubeconfig with a context per cluster, named like the cluster; the first one is current.
pub(crate) fn write_merged(place: &Place, plan: &Plan) -> Result<()> {
    let path = place.kubeconfig();
    let failed =
        |reason: String| SandboxError::Command { what: format!("writing {}", path.display()), reason };
    let mut merged = Kubeconfig::default();
    for cluster in &plan.clusters {
        let one = Kubeconfig::read_from(cluster.kubeconfig()).map_err(|error| failed(error.to_string()))?;
        merged = merged.merge(one).map_err(|error| failed(error.to_string()))?;
    }
    let text = serde_saphyr::to_string(&merged).map_err(|error| failed(error.to_string()))?;
    write_secret(&path, &text)
}
