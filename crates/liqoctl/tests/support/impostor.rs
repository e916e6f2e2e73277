//! An authentication service of another cluster that claims to be one that is known.
#![allow(clippy::unwrap_used, reason = "a test can do nothing else about it")]

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;

use liqo_api::Fingerprint;
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};

/// Longest request that is read.
const REQUEST: usize = 16 << 10;

/// One that answers until the test ends.
pub(crate) struct Impostor {
    address: SocketAddr,
    pub(crate) certificate: Fingerprint,
    /// The fingerprint of the key that it shows.
    pub(crate) key: String,
}

impl Impostor {
    /// Claims this ID and name, with a key of its own.
    pub(crate) fn start(id: &str, name: &str) -> Self {
        let wanted = liqo_identity::Wanted { id: None, name: None };
        let key = liqo_identity::Identity::generate(&wanted).unwrap().public_key();
        let spki: String = key.to_pem().lines().filter(|line| !line.starts_with('-')).collect();
        let ids = serde_json::json!({ "clusterId": id, "clusterName": name, "publicKey": spki }).to_string();
        let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        let certificate = Fingerprint::of_certificate(made.cert.der());
        let private = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(made.signing_key.serialize_der()));
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let config = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
        let config = config.unwrap().with_no_client_auth();
        let config = Arc::new(config.with_single_cert(vec![made.cert.der().clone()], private).unwrap());
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                answer(&config, stream, &ids);
            }
        });
        Self { address, certificate, key: key.fingerprint() }
    }

    pub(crate) fn url(&self) -> String {
        format!("https://{}", self.address)
    }
}

/// Answers one request; who goes away in between gets no answer.
fn answer(config: &Arc<ServerConfig>, stream: TcpStream, ids: &str) {
    let mut stream = StreamOwned::new(ServerConnection::new(Arc::clone(config)).unwrap(), stream);
    let mut request = Vec::new();
    let mut chunk = [0; 1024];
    while !request.ends_with(b"\r\n\r\n") && request.len() < REQUEST {
        match stream.read(&mut chunk) {
            Ok(read) if read > 0 => request.extend_from_slice(&chunk[..read]),
            _ => return,
        }
    }
    let head = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\n";
    let _ = write!(stream, "{head}Content-Length: {}\r\n\r\n{ids}", ids.len());
    stream.conn.send_close_notify();
    let _ = stream.flush();
}
