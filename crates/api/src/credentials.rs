//! Where the credentials of a peering are kept: names of Secrets and their keys, as Liqo has them.

use crate::names::{ClusterId, Identity};

/// Secret with the cluster's own token, which `liqoctl generate-add-command` prints, in Liqo's namespace.
pub const OWN_TOKEN_SECRET: &str = "auth-token";

/// Key of [`OWN_TOKEN_SECRET`], and of the Secrets that [`remote_token_secret`] names.
pub const TOKEN_KEY: &str = "token";

/// Secret with the certificate that the authentication service shows, and its key, in Liqo's namespace. Of the type
/// `kubernetes.io/tls`.
pub const SERVING_CERTIFICATE_SECRET: &str = "liqo-auth-tls";

/// Secret with the certificate that a peer got from us, in its tenant namespace.
pub const REMOTE_CERTIFICATE_SECRET: &str = "liqo-remote-certificate";

/// Service of the authentication service, in Liqo's namespace.
pub const AUTH_SERVICE: &str = "liqo-auth";

/// The Secret with the token that a peer gave us, in Liqo's namespace: labelled with
/// [`CLUSTER_ID`](crate::labels::CLUSTER_ID) and [`AUTH_TOKEN`](crate::labels::AUTH_TOKEN).
pub fn remote_token_secret(peer: &ClusterId) -> String {
    format!("remote-token-{peer}")
}

/// The Secret with our identity at a peer, in its local tenant namespace: labelled with
/// [`CLUSTER_ID`](crate::labels::CLUSTER_ID) and [`LOCAL_IDENTITY`](crate::labels::LOCAL_IDENTITY), annotated with
/// [`CERTIFICATE_EXPIRES`](crate::annotations::CERTIFICATE_EXPIRES). There is one per peer; a new certificate replaces the
/// content.
pub fn identity_secret(peer: &Identity) -> String {
    format!("liqo-identity-{}", peer.unique_name())
}

/// Keys of the Secret that [`identity_secret`] names.
pub mod identity {
    /// The private key of the certificate: PKCS#8 as PEM.
    pub const PRIVATE_KEY: &str = "private-key";
    /// What the certificate was asked for with, as PEM.
    pub const CSR: &str = "csr";
    /// The certificate, as PEM.
    pub const CERTIFICATE: &str = "certificate";
    /// The https URL of the peer's API server.
    pub const API_SERVER_URL: &str = "apiServerUrl";
    /// The authority that vouches for the peer's API server, as PEM; not there if the public ones do.
    pub const API_SERVER_CA: &str = "apiServerCa";
    /// Our tenant namespace at the peer.
    pub const NAMESPACE: &str = "namespace";
    /// The proxy through which the peer's API server is reached, if there is one.
    pub const PROXY_URL: &str = "proxyURL";
}

#[cfg(test)]
mod tests;
