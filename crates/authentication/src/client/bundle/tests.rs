use std::sync::Arc;

use liqo_kit::serve::{Certificates, ClientAuth, tls_config};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

use super::*;
use crate::client::{Authorities, CallError, Trust, identify};
use crate::wire::PeerIdentity;

#[path = "../../../tests/support/authority.rs"]
mod authority;

use authority::{Authority, Leaf};

fn bundle(authorities: &[&Authority]) -> Trust {
    let text: String = authorities.iter().map(|authority| authority.pem.as_str()).collect();
    Trust::Bundle(CaBundle::parse(text.as_bytes()).unwrap())
}

/// Asks a service that shows this certificate who it is; returns what it heard, too.
async fn ask(leaf: &Leaf, trust: &Trust) -> (Result<PeerIdentity, CallError>, Vec<u8>) {
    let certificates = Certificates::from_pem(leaf.chain.as_bytes(), leaf.key.as_bytes()).unwrap();
    let mut tls = rustls::ServerConfig::clone(&tls_config(certificates, &ClientAuth::None).unwrap());
    tls.alpn_protocols.clear();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("https://{}", listener.local_addr().unwrap());
    let serving = async {
        let (stream, _) = listener.accept().await.unwrap();
        let Ok(mut stream) = TlsAcceptor::from(Arc::new(tls)).accept(stream).await else { return vec![] };
        let mut heard = vec![0; 4096];
        let length = stream.read(&mut heard).await.unwrap();
        let body = r#"{"clusterId":"milan-id","clusterName":"milan"}"#;
        let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", body.len());
        stream.write_all(format!("{head}{body}").as_bytes()).await.unwrap();
        stream.flush().await.unwrap();
        heard.truncate(length);
        heard
    };
    tokio::join!(identify(&url, trust), serving)
}

#[tokio::test]
async fn whoever_has_a_certificate_of_the_authority_for_the_host_is_trusted() {
    let (ours, other) = (Authority::new("ours"), Authority::new("other"));
    let deputy = ours.deputy("deputy");
    for (why, leaf, trust) in [
        ("its own", ours.leaf("127.0.0.1"), bundle(&[&ours])),
        ("another of it", ours.leaf("127.0.0.1"), bundle(&[&ours])),
        ("one of its deputy", deputy.leaf("127.0.0.1"), bundle(&[&ours])),
        ("while authorities change", ours.leaf("127.0.0.1"), bundle(&[&other, &ours])),
    ] {
        let (answer, heard) = ask(&leaf, &trust).await;
        assert_eq!(answer.unwrap_or_else(|error| panic!("{why}: {error}")).identity.id.as_str(), "milan-id");
        assert!(heard.starts_with(b"GET /ids"), "{why}");
    }
}

#[tokio::test]
async fn nobody_else_is_and_nobody_else_hears_a_byte() {
    let ours = Authority::new("ours");
    let deputy = ours.deputy("deputy");
    let whole = deputy.leaf("127.0.0.1");
    let own = whole.chain.split_inclusive("-----END CERTIFICATE-----\n").next().unwrap().to_owned();
    let alone = Leaf { chain: own, key: whole.key };
    let trust = bundle(&[&ours]);
    let public = Trust::Authorities(Authorities::default());
    for (why, leaf, trust, says) in [
        ("another authority", Authority::new("other").leaf("127.0.0.1"), &trust, "--ca-file"),
        ("an authority of the same name", Authority::new("ours").leaf("127.0.0.1"), &trust, "--ca-file"),
        ("another address", ours.leaf("127.0.0.2"), &trust, "is for another host"),
        ("another name", ours.leaf("auth.example.com"), &trust, "only valid for"),
        ("one that is over", ours.former_leaf("127.0.0.1"), &trust, "expired"),
        ("a deputy that nobody vouches for", alone, &trust, "--ca-file"),
        ("what its deputy did not sign", ours.leaf("127.0.0.1"), &bundle(&[&deputy]), "spec.authCaBundle"),
        ("nothing was said of its authority", ours.leaf("127.0.0.1"), &public, "spec.authCaBundle"),
    ] {
        let (answer, heard) = ask(&leaf, trust).await;
        let error = answer.expect_err(why);
        assert!(
            matches!(&error, CallError::Untrusted { reason, .. } if reason.contains(says)),
            "{why}: {error}"
        );
        assert_eq!(heard, b"", "{why}");
    }
}

#[test]
fn only_certificates_are_taken_from_a_file() {
    let (first, second) = (Authority::new("first"), Authority::new("second"));
    let key = second.leaf("b").key;
    let text = format!("# Subject: CN=first\r\n{}\n{key}\nSubject: second\n{}", first.pem, second.pem);
    let read = CaBundle::parse(text.as_bytes()).unwrap();
    let pem = read.to_pem();
    assert_eq!(pem.matches("-----BEGIN").count(), 2, "{pem}");
    assert!(!pem.contains("PRIVATE") && !pem.contains("Subject") && !pem.contains('\r'), "{pem}");
    assert_eq!(CaBundle::parse(pem.as_bytes()), Ok(read));
}

#[test]
fn what_holds_no_authority_is_none_and_says_why() {
    let fine = Authority::new("fine").pem;
    let with = |inner: &str| format!("-----BEGIN CERTIFICATE-----\n{inner}\n-----END CERTIFICATE-----\n");
    for (text, says) in [
        (String::new(), "no certificate in it"),
        ("hello".to_owned(), "no certificate in it"),
        (Authority::new("x").leaf("b").key, "no certificate in it"),
        (with("%%%"), "it is no PEM"),
        ("-----BEGIN CERTIFICATE-----\nAAAA".to_owned(), "it is no PEM"),
        (with("AAAA"), "certificate 1 of it"),
        (format!("{fine}{}", with("AAAA")), "certificate 2 of it"),
    ] {
        let error = CaBundle::parse(text.as_bytes()).unwrap_err().to_string();
        assert!(error.contains(says), "{text}: {error}");
    }
}
