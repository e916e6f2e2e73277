use rcgen::{CertificateParams, KeyPair};

use super::*;

fn pems() -> (String, String) {
    let key = KeyPair::generate().unwrap();
    let certificate = CertificateParams::new(vec!["cluster".into()]).unwrap().self_signed(&key).unwrap();
    (certificate.pem(), key.serialize_pem())
}

fn credentials(url: &str) -> Credentials {
    let (certificate, key) = pems();
    Credentials::certificate(url, certificate.as_bytes(), certificate.as_bytes(), key.as_bytes()).unwrap()
}

fn kubeconfig(cluster: &str, user: &str) -> String {
    format!(
        "apiVersion: v1\nkind: Config\ncurrent-context: c\n\
         contexts: [{{name: c, context: {{cluster: c, user: u, namespace: tenant}}}}]\n\
         clusters: [{{name: c, cluster: {{server: 'https://10.0.0.1:6443', {cluster}}}}}]\n\
         users: [{{name: u, user: {{{user}}}}}]\n"
    )
}

#[tokio::test]
async fn a_cluster_keeps_its_client_until_the_credentials_change_and_its_token_until_it_is_removed() {
    let clusters = Clusters::new(ClientConfig::default());
    let first = credentials("https://10.0.0.1:6443");
    let (cluster, change) = clusters.set("a", first.clone()).unwrap();
    assert_eq!(change, Change::Added);
    assert_eq!(clusters.set("a", first).unwrap().1, Change::Unchanged);
    assert_eq!(clusters.set("a", credentials("https://10.0.0.2:6443")).unwrap().1, Change::Replaced);
    assert!(!cluster.removed().is_cancelled());
    assert_eq!(clusters.ids(), ["a"]);
    assert!(clusters.remove("a"));
    assert!(cluster.removed().is_cancelled());
    assert!(!clusters.remove("a") && clusters.get("a").is_none());
}

#[test]
fn a_kubeconfig_that_carries_everything_in_itself_is_accepted() {
    let (ca, _) = pems();
    let encoded = serde_json::to_value(k8s_openapi::ByteString(ca.into_bytes())).unwrap();
    let text = kubeconfig(&format!("certificate-authority-data: {encoded}"), "token: secret-token");
    let credentials = Credentials::kubeconfig(text.as_bytes()).unwrap();
    assert_eq!(credentials.server().host(), Some("10.0.0.1"));
    let config = credentials.config().unwrap();
    assert_eq!(config.default_namespace, "tenant");
    assert!(!config.accept_invalid_certs);
    assert!(!format!("{credentials:?}").contains("secret-token"));
}

#[test]
fn a_kubeconfig_that_reaches_out_or_skips_verification_is_refused_with_the_reason() {
    let cases = [
        ("insecure-skip-tls-verify: true", "token: t", "insecure-skip-tls-verify"),
        ("certificate-authority: /etc/passwd", "token: t", "certificate-authority"),
        ("proxy-url: 'http://evil'", "token: t", "proxy-url"),
        ("", "exec: {apiVersion: client.authentication.k8s.io/v1, command: sh}", "exec"),
        ("", "tokenFile: /etc/shadow", "tokenFile"),
        ("", "client-certificate: /a, client-key: /b", "client-certificate"),
        ("", "token: t, as: root", "impersonation"),
        ("", "", "neither a token"),
        ("certificate-authority-data: '%%%'", "token: t", "base64"),
        ("certificate-authority-data: aGVsbG8=", "token: t", "no certificate"),
    ];
    for (cluster, user, word) in cases {
        let error = Credentials::kubeconfig(kubeconfig(cluster, user).as_bytes()).unwrap_err();
        assert!(error.contains(word), "{cluster} {user}: {error}");
    }
    assert!(Credentials::kubeconfig(b"not: [yaml").unwrap_err().contains("kubeconfig"));
    let (certificate, key) = pems();
    let plain =
        Credentials::certificate("http://a", certificate.as_bytes(), certificate.as_bytes(), key.as_bytes());
    assert!(plain.unwrap_err().contains("https://"));
}

#[test]
fn unverified_tls_is_refused_even_when_the_configuration_asks_for_it() {
    let mut config = kube::Config::new("https://10.0.0.1".parse().unwrap());
    config.accept_invalid_certs = true;
    let Err(error) = client(&config, &ClientConfig::default()) else { panic!("a client was made") };
    assert!(error.to_string().contains("unverified TLS"), "{error}");
}

/// A server that begins an answer to whoever asks, and never ends it.
async fn endless() -> (std::net::SocketAddr, tokio::task::JoinSet<()>) {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let mut serving = tokio::task::JoinSet::new();
    serving.spawn(async move {
        let mut open = Vec::new();
        while let Ok((mut stream, _)) = listener.accept().await {
            // The question is short, and comes in one piece.
            let _ = stream.read(&mut [0; 4096]).await.unwrap();
            let head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
            stream.write_all(head).await.unwrap();
            open.push(stream);
        }
    });
    (address, serving)
}

#[tokio::test]
async fn a_watch_too_many_is_refused_and_one_that_ended_makes_room() {
    let (address, _serving) = endless().await;
    let config = kube::Config::new(format!("http://{address}").parse().unwrap());
    let client = client(&config, &ClientConfig { max_watches: 65, ..ClientConfig::default() }).unwrap();
    let watch = || {
        let request =
            http::Request::get("/api/v1/pods?watch=true").body(kube::client::Body::empty()).unwrap();
        client.send(request)
    };
    let mut open = Vec::new();
    for _ in 0..65 {
        open.push(watch().await.unwrap());
    }
    let refused = watch().await.map(drop).unwrap_err();
    let mut text = refused.to_string();
    let mut cause = std::error::Error::source(&refused);
    while let Some(error) = cause {
        text.push_str(&error.to_string());
        cause = error.source();
    }
    assert!(text.contains("65 watches on this cluster are open"), "{text}");
    open.pop();
    watch().await.unwrap();
}
