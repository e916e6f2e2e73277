//! The certificate that the doors show, signed as those of kubelets are. Its key never leaves the process.

use std::net::IpAddr;
use std::time::Duration;

use k8s_openapi::ByteString;
use k8s_openapi::api::certificates::v1::CertificateSigningRequest;
use kube::api::{Patch, PatchParams, PostParams};
use kube::{Api, ResourceExt};
use liqo_kit::serve::Certificates;
use rcgen::{CertificateParams, DistinguishedName, DnType, KeyPair, SanType};
use serde_json::json;
use tokio::time::Instant;
use x509_parser::pem::Pem;

use crate::metrics::VirtualNodeMetrics;

/// Who signs what kubelets serve.
pub(crate) const SIGNER: &str = "kubernetes.io/kubelet-serving";
/// Who this certificate is for: the signer asks for this group and this beginning of the name.
const GROUP: &str = "system:nodes";
const USER: &str = "system:node:";
/// How long it should last; each start of the process gets its own.
const LIFETIME: Duration = Duration::from_secs(30 * 24 * 3600);
/// How long the signer may take.
const SIGNED_WITHIN: Duration = Duration::from_secs(20);
/// How often it is looked whether it has signed.
const LOOK: Duration = Duration::from_millis(250);
/// How long one request may take.
const TIMEOUT: Duration = Duration::from_secs(10);
/// How soon it is tried again when nobody signed.
const AGAIN: Duration = Duration::from_secs(60);

/// Has certificates signed.
pub(super) struct Signing {
    pub(super) client: kube::Client,
    pub(super) pod: String,
    pub(super) address: IpAddr,
    pub(super) metrics: VirtualNodeMetrics,
}

/// What is shown, and when to get another.
pub(super) struct Shown {
    pub(super) shown: Certificates,
    renew_in: Duration,
}

struct Issued {
    chain: Vec<u8>,
    key: String,
    renew_in: Duration,
}

impl Signing {
    /// The first certificate: a signed one, or one of our own for as long as nobody signs. Many API servers do not look,
    /// and those that do are no worse off than without.
    pub(super) async fn first(&self) -> Shown {
        loop {
            let issued = match self.sign().await {
                Ok(issued) => Ok(issued),
                Err(error) => {
                    tracing::warn!(
                        error,
                        "no certificate for the doors of virtual nodes was signed; one of our own is shown, and signing is tried again"
                    );
                    self.own()
                }
            };
            let shown = issued.and_then(|issued| {
                let shown = Certificates::from_pem(&issued.chain, issued.key.as_bytes());
                Ok(Shown { shown: shown.map_err(|error| error.to_string())?, renew_in: issued.renew_in })
            });
            match shown {
                Ok(shown) => return shown,
                Err(error) => tracing::error!(error, "no certificate can be made"),
            }
            tokio::time::sleep(AGAIN).await;
        }
    }

    /// Gets another before it is too late, for ever.
    pub(super) async fn renew(&self, shown: Shown) {
        let mut wait = shown.renew_in;
        loop {
            tokio::time::sleep(wait).await;
            let renewed = self.sign().await.and_then(|issued| {
                let replaced = shown.shown.replace(&issued.chain, issued.key.as_bytes());
                replaced.map_err(|error| error.to_string()).map(|()| issued.renew_in)
            });
            wait = renewed.unwrap_or_else(|error| {
                tracing::warn!(error, "the certificate of the doors of virtual nodes is not renewed yet");
                AGAIN
            });
        }
    }

    fn parameters(&self) -> CertificateParams {
        let mut name = DistinguishedName::new();
        name.push(DnType::OrganizationName, GROUP);
        name.push(DnType::CommonName, format!("{USER}{}", self.pod));
        let mut parameters = CertificateParams::default();
        parameters.distinguished_name = name;
        parameters.subject_alt_names = vec![SanType::IpAddress(self.address)];
        parameters
    }

    fn own(&self) -> Result<Issued, String> {
        let key = KeyPair::generate().map_err(|error| error.to_string())?;
        let certificate = self.parameters().self_signed(&key).map_err(|error| error.to_string())?;
        Ok(Issued { chain: certificate.pem().into_bytes(), key: key.serialize_pem(), renew_in: AGAIN })
    }

    async fn sign(&self) -> Result<Issued, String> {
        let key = KeyPair::generate().map_err(|error| error.to_string())?;
        let request = self.parameters().serialize_request(&key).and_then(|request| request.pem());
        let request = self.ask(request.map_err(|error| error.to_string())?).await?;
        let chain = self.signed(&request).await?;
        let ends = not_after(&chain)?;
        self.metrics.certificate.set(ends);
        // When a third of its time is left.
        let left = u64::try_from(ends - jiff::Timestamp::now().as_second()).unwrap_or(0);
        let renew_in = Duration::from_secs(left / 3 * 2).max(AGAIN);
        tracing::info!(request, "the certificate of the doors of virtual nodes was signed");
        Ok(Issued { chain, key: key.serialize_pem(), renew_in })
    }

    /// Asks, and says yes to it: nobody else knows that this pod stands for nodes.
    async fn ask(&self, request: String) -> Result<String, String> {
        let requests = self.requests();
        let request = json!({
            "metadata": { "generateName": "liqo-kubelet-serving-" },
            "spec": {
                "request": ByteString(request.into_bytes()),
                "signerName": SIGNER,
                "usages": ["digital signature", "key encipherment", "server auth"],
                "expirationSeconds": LIFETIME.as_secs(),
            },
        });
        let request = serde_json::from_value(request).map_err(|error| error.to_string())?;
        let name = within(requests.create(&PostParams::default(), &request)).await?.name_any();
        let approval = json!({ "status": { "conditions": [{
            "type": "Approved",
            "status": "True",
            "reason": "LiqoVirtualNodes",
            "message": format!("{} answers for the virtual nodes at {}", self.pod, self.address),
            "lastUpdateTime": jiff::Timestamp::now(),
        }] } });
        within(requests.patch_approval(&name, &PatchParams::default(), &Patch::Merge(approval))).await?;
        Ok(name)
    }

    async fn signed(&self, name: &str) -> Result<Vec<u8>, String> {
        let deadline = Instant::now() + SIGNED_WITHIN;
        loop {
            let status = within(self.requests().get(name)).await?.status.unwrap_or_default();
            if let Some(certificate) = status.certificate {
                return Ok(certificate.0);
            }
            let bad = status.conditions.unwrap_or_default().into_iter().find(|it| it.type_ != "Approved");
            if let Some(bad) = bad {
                return Err(format!("{name}: {} {}", bad.type_, bad.message.unwrap_or_default()));
            }
            if Instant::now() >= deadline {
                return Err(format!("{SIGNER} did not sign {name} within {} s", SIGNED_WITHIN.as_secs()));
            }
            tokio::time::sleep(LOOK).await;
        }
    }

    fn requests(&self) -> Api<CertificateSigningRequest> {
        Api::all(self.client.clone())
    }
}

async fn within<T>(request: impl Future<Output = Result<T, kube::Error>>) -> Result<T, String> {
    let answer = tokio::time::timeout(TIMEOUT, request).await;
    answer.map_err(|_| "the API server does not answer".to_owned())?.map_err(|error| error.to_string())
}

/// When a certificate ends, in Unix seconds.
fn not_after(chain: &[u8]) -> Result<i64, String> {
    let (pem, _) = Pem::read(std::io::Cursor::new(chain)).map_err(|error| error.to_string())?;
    let certificate = pem.parse_x509().map_err(|error| error.to_string())?;
    Ok(certificate.validity().not_after.timestamp())
}
