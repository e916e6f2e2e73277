//! What a peer gave us to reach its cluster: hostile until parsed.

use std::fmt;

use http::Uri;
use k8s_openapi::ByteString;
use kube::config::{AuthInfo, Config, Kubeconfig};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

/// How to reach a cluster and who to be there. TLS is always verified.
#[derive(Clone, PartialEq, Eq)]
pub struct Credentials {
    server: Uri,
    tls_server_name: Option<String>,
    namespace: Option<String>,
    /// DER certificates of the CAs to trust; none means the machine's own roots.
    roots: Vec<Vec<u8>>,
    identity: Identity,
}

#[derive(Clone, PartialEq, Eq)]
enum Identity {
    Certificate { certificate: Vec<u8>, key: Vec<u8> },
    Token(String),
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Keys and tokens must not reach a log by way of a debug print.
        f.debug_struct("Credentials").field("server", &self.server).finish_non_exhaustive()
    }
}

impl Credentials {
    /// A client certificate. All three are PEM.
    pub fn certificate(url: &str, ca: &[u8], certificate: &[u8], key: &[u8]) -> Result<Self, String> {
        check_identity(certificate, key)?;
        Ok(Self {
            server: https(url)?,
            tls_server_name: None,
            namespace: None,
            roots: roots(ca)?,
            identity: Identity::Certificate { certificate: certificate.to_vec(), key: key.to_vec() },
        })
    }

    /// A bearer token. The CA is PEM.
    pub fn token(url: &str, ca: &[u8], token: &str) -> Result<Self, String> {
        Ok(Self {
            server: https(url)?,
            tls_server_name: None,
            namespace: None,
            roots: roots(ca)?,
            identity: Identity::Token(token.to_owned()),
        })
    }

    /// A kubeconfig; its current context is used.
    ///
    /// It may come from a peer, so it must carry everything in itself: paths, commands to run, proxies,
    /// impersonation and unverified TLS are refused.
    pub fn kubeconfig(yaml: &[u8]) -> Result<Self, String> {
        let text =
            std::str::from_utf8(yaml).map_err(|error| format!("the kubeconfig is no text: {error}"))?;
        let file = Kubeconfig::from_yaml(text)
            .map_err(|error| format!("the kubeconfig is no kubeconfig: {error}"))?;
        let context_name = file.current_context.as_deref().ok_or("the kubeconfig has no current-context")?;
        let context = file
            .contexts
            .iter()
            .find(|context| context.name == context_name)
            .and_then(|context| context.context.as_ref())
            .ok_or_else(|| format!("the kubeconfig has no context {context_name:?}"))?;
        let cluster = file
            .clusters
            .iter()
            .find(|cluster| cluster.name == context.cluster)
            .and_then(|cluster| cluster.cluster.as_ref())
            .ok_or_else(|| format!("the kubeconfig has no cluster {:?}", context.cluster))?;
        let user_name = context.user.as_deref().unwrap_or_default();
        let user = file
            .auth_infos
            .iter()
            .find(|user| user.name == user_name)
            .and_then(|user| user.auth_info.as_ref())
            .ok_or_else(|| format!("the kubeconfig has no user {user_name:?}"))?;
        refuse_what_reaches_out(cluster, user)?;
        let server = https(cluster.server.as_deref().unwrap_or_default())?;
        let roots = match &cluster.certificate_authority_data {
            Some(data) => roots(&base64(data, "certificate-authority-data")?)?,
            None => Vec::new(),
        };
        Ok(Self {
            server,
            tls_server_name: cluster.tls_server_name.clone(),
            namespace: context.namespace.clone(),
            roots,
            identity: identity(user)?,
        })
    }

    /// The API server's address.
    pub fn server(&self) -> &Uri {
        &self.server
    }

    pub(super) fn config(&self) -> Result<Config, String> {
        let mut config = Config::new(self.server.clone());
        config.tls_server_name.clone_from(&self.tls_server_name);
        if let Some(namespace) = &self.namespace {
            config.default_namespace.clone_from(namespace);
        }
        config.root_cert = (!self.roots.is_empty()).then(|| self.roots.clone());
        config.auth_info = match &self.identity {
            Identity::Token(token) => AuthInfo { token: Some(token.clone().into()), ..AuthInfo::default() },
            Identity::Certificate { certificate, key } => AuthInfo {
                client_certificate_data: Some(to_base64(certificate)?),
                client_key_data: Some(to_base64(key)?.into()),
                ..AuthInfo::default()
            },
        };
        Ok(config)
    }
}

fn refuse_what_reaches_out(cluster: &kube::config::Cluster, user: &AuthInfo) -> Result<(), String> {
    let refused = [
        (cluster.insecure_skip_tls_verify == Some(true), "insecure-skip-tls-verify"),
        (cluster.certificate_authority.is_some(), "certificate-authority (a path)"),
        (cluster.proxy_url.is_some(), "proxy-url"),
        (user.client_certificate.is_some(), "client-certificate (a path)"),
        (user.client_key.is_some(), "client-key (a path)"),
        (user.token_file.is_some(), "tokenFile"),
        (user.exec.is_some(), "exec"),
        (user.auth_provider.is_some(), "auth-provider"),
        (user.username.is_some() || user.password.is_some(), "username and password"),
        (
            user.impersonate.is_some()
                || user.impersonate_uid.is_some()
                || user.impersonate_groups.is_some()
                || user.impersonate_user_extra.is_some(),
            "impersonation",
        ),
    ];
    match refused.iter().find(|(present, _)| *present) {
        Some((_, what)) => Err(format!(
            "the kubeconfig uses {what}, which is not accepted here; \
             embed certificate-authority-data and either client-certificate-data with client-key-data or a token"
        )),
        None => Ok(()),
    }
}

fn identity(user: &AuthInfo) -> Result<Identity, String> {
    // Secrets are only readable through serde here; the value is dropped at once.
    let secret = |field: &str| -> Result<Option<String>, String> {
        let value = serde_json::to_value(user).map_err(|error| error.to_string())?;
        Ok(value.get(field).and_then(serde_json::Value::as_str).map(str::to_owned))
    };
    if let Some(token) = secret("token")? {
        return Ok(Identity::Token(token));
    }
    let certificate = user.client_certificate_data.as_deref();
    let key = secret("client-key-data")?;
    match (certificate, key) {
        (Some(certificate), Some(key)) => {
            let certificate = base64(certificate, "client-certificate-data")?;
            let key = base64(&key, "client-key-data")?;
            check_identity(&certificate, &key)?;
            Ok(Identity::Certificate { certificate, key })
        }
        _ => {
            Err("the kubeconfig's user has neither a token nor client-certificate-data with client-key-data"
                .into())
        }
    }
}

fn https(url: &str) -> Result<Uri, String> {
    let uri: Uri = url.parse().map_err(|error| format!("{url:?} is no URL: {error}"))?;
    if uri.scheme_str() != Some("https") || uri.host().is_none() {
        return Err(format!("the server must be an https:// URL, not {url:?}"));
    }
    Ok(uri)
}

fn roots(pem: &[u8]) -> Result<Vec<Vec<u8>>, String> {
    let roots: Vec<_> = CertificateDer::pem_slice_iter(pem)
        .map(|certificate| certificate.map(|der| der.to_vec()))
        .collect::<Result<_, _>>()
        .map_err(|error| format!("the CA is not PEM: {error}"))?;
    if roots.is_empty() {
        return Err("the CA contains no certificate".into());
    }
    Ok(roots)
}

fn check_identity(certificate: &[u8], key: &[u8]) -> Result<(), String> {
    if CertificateDer::pem_slice_iter(certificate).filter_map(Result::ok).next().is_none() {
        return Err("the client certificate contains no PEM certificate".into());
    }
    PrivateKeyDer::from_pem_slice(key).map_err(|error| format!("the client key is no PEM key: {error}"))?;
    Ok(())
}

/// Base64 by way of the Kubernetes byte string, which is encoded the same way.
fn base64(text: &str, field: &str) -> Result<Vec<u8>, String> {
    serde_json::from_value::<ByteString>(serde_json::Value::String(text.to_owned()))
        .map(|bytes| bytes.0)
        .map_err(|error| format!("{field} is not base64: {error}"))
}

fn to_base64(bytes: &[u8]) -> Result<String, String> {
    match serde_json::to_value(ByteString(bytes.to_vec())) {
        Ok(serde_json::Value::String(text)) => Ok(text),
        Ok(_) => Err("base64 encoding gave no text".into()),
        Err(error) => Err(error.to_string()),
    }
}
