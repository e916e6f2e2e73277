//! Which cluster is meant, and what is said when it cannot be used: one sentence, in time, with what to check.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test can do nothing else about it")]

#[path = "support/installed.rs"]
mod support;

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use nix::sys::signal::Signal;
use nix::unistd::Pid;
use rcgen::{CertificateParams, DnType, ExtendedKeyUsagePurpose, Issuer, KeyPair};
use serde_json::{Value, json};
use support::{Installed, Said, liqoctl};
use tokio::time::Instant;

/// What cannot be reached is told within this time.
const PATIENCE: Duration = Duration::from_secs(10);

/// A directory with kubeconfigs, gone with the value.
struct Files(PathBuf);

impl Files {
    fn new(test: &str) -> Self {
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{test}-{}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn kubeconfig(&self, name: &str, server: &str, user: &Value) -> String {
        self.write(name, &json!({"server": server, "insecure-skip-tls-verify": true}), user)
    }

    fn write(&self, name: &str, cluster: &Value, user: &Value) -> String {
        let config = json!({
            "apiVersion": "v1", "kind": "Config", "current-context": name,
            "clusters": [{"name": name, "cluster": cluster}],
            "users": [{"name": name, "user": user}],
            "contexts": [{"name": name, "context": {"cluster": name, "user": name}}],
        });
        let path = self.0.join(name);
        std::fs::write(&path, config.to_string()).unwrap();
        path.to_str().unwrap().to_owned()
    }
}

impl Drop for Files {
    fn drop(&mut self) {
        std::fs::remove_dir_all(&self.0).unwrap();
    }
}

fn run(command: &mut Command) -> Said {
    command.output().unwrap().into()
}

/// The one line that a failing command says, and how long it took.
fn refused(kubeconfig: &str) -> String {
    let begin = Instant::now();
    let said = run(&mut liqoctl(&["status", "--kubeconfig", kubeconfig]));
    assert!(begin.elapsed() < PATIENCE, "{:?}: {said:#?}", begin.elapsed());
    assert_eq!((said.code, said.stdout.as_str()), (1, ""), "{said:#?}");
    assert_eq!(said.stderr.lines().count(), 1, "one line: {said:#?}");
    assert!(said.stderr.starts_with("error: "), "{said:#?}");
    said.stderr
}

fn assert_words(text: &str, words: &[&str]) {
    for expected in words {
        assert!(text.contains(expected), "{expected:?} is not in {text}");
    }
}

/// An address that nobody answers at, and that nobody else gets as long as this is kept: one end of a connection has it.
struct Closed {
    address: SocketAddr,
    _ends: (TcpListener, TcpStream),
}

fn closed() -> Closed {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let stream = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    Closed { address: stream.local_addr().unwrap(), _ends: (listener, stream) }
}

#[test]
fn an_api_server_that_is_not_there_is_told_in_one_sentence_and_in_time() {
    let files = Files::new("unreachable");
    let nobody = closed();
    let closed = nobody.address;
    let file = files.kubeconfig("closed", &format!("https://{closed}"), &json!({"token": "t"}));
    let said = refused(&file);
    assert_words(
        &said,
        &[
            &format!("https://{closed} (context closed of {file})"),
            "connection refused",
            "is the cluster running",
        ],
    );

    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = silent.local_addr().unwrap();
    let file = files.kubeconfig("silent", &format!("https://{address}"), &json!({"token": "t"}));
    assert_words(&refused(&file), &["cannot reach", "no answer", "firewall"]);

    let file = files.kubeconfig("name", "https://no-such-host.invalid:6443", &json!({"token": "t"}));
    assert_words(&refused(&file), &["no-such-host.invalid", "cannot be resolved", "DNS"]);
}

/// Answers every connection with these bytes.
fn answering(answer: &'static [u8]) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let mut request = [0; 4096];
            let _ = stream.read(&mut request);
            let _ = stream.write_all(answer);
        }
    });
    address
}

#[test]
fn something_else_that_answers_is_not_taken_for_an_api_server() {
    let files = Files::new("other");
    let page = b"HTTP/1.1 200 OK\r\ncontent-type: text/html\r\ncontent-length: 13\r\nconnection: close\r\n\r\n<html></html>";
    let address = answering(page);
    let file = files.kubeconfig("web", &format!("http://{address}"), &json!({}));
    assert_words(&refused(&file), &["unusable answer", "address is that of a Kubernetes API server"]);
    let file = files.kubeconfig("plain", &format!("https://{address}"), &json!({}));
    assert_words(&refused(&file), &["does not speak TLS"]);
}

#[test]
fn version_and_check_tell_an_unreachable_cluster_each_in_their_way() {
    let files = Files::new("told");
    let nobody = closed();
    let closed = nobody.address;
    let file = files.kubeconfig("closed", &format!("https://{closed}"), &json!({"token": "t"}));
    let version = run(&mut liqoctl(&["version", "--kubeconfig", &file]));
    assert_eq!(version.code, 1);
    assert!(version.stdout.starts_with("Client:     0."), "{version:#?}");
    assert_words(&version.stderr, &["note: the cluster's versions are not known", "connection refused"]);
    let client = run(&mut liqoctl(&["version", "--client", "--kubeconfig", &file]));
    assert_eq!((client.code, client.stderr.as_str()), (0, ""));
    let check = run(&mut liqoctl(&["check", "--kubeconfig", &file]));
    assert_eq!((check.code, check.stderr.as_str()), (1, ""), "{check:#?}");
    assert_words(
        &check.stdout,
        &[
            "✗ the API server answers: cannot reach",
            "connection refused",
            "#the-api-server-cannot-be-reached",
        ],
    );
    let json = run(&mut liqoctl(&["check", "-o", "json", "--kubeconfig", &file]));
    let report: Value = serde_json::from_str(&json.stdout).unwrap();
    assert_eq!(report["healthy"], false);
}

#[tokio::test]
async fn credentials_contexts_and_sandboxes() {
    let cluster = Installed::start().await;
    let files = Files::new("credentials");
    wrong_credentials_are_told_apart(&cluster, &files);
    the_name_of_a_sandbox_s_cluster_is_enough(&cluster, &files);
    a_cluster_that_is_cut_off_is_told_in_time(&cluster).await;
}

fn server(cluster: &Installed) -> Value {
    let text = std::fs::read_to_string(cluster.kubeconfig()).unwrap();
    let config: Value = serde_saphyr::from_str(&text).unwrap();
    config["clusters"][0]["cluster"].clone()
}

fn wrong_credentials_are_told_apart(cluster: &Installed, files: &Files) {
    let server = server(cluster);
    let file = files.write("token", &server, &json!({"token": "wrong"}));
    let said = refused(&file);
    assert_words(&said, &["does not accept the credentials", "401 Unauthorized", "have expired"]);
    let check = run(&mut liqoctl(&["check", "--kubeconfig", &file]));
    assert_words(&check.stdout, &["✗ the API server answers", "#the-credentials-are-refused"]);

    let secret = "a-token-that-nobody-may-see";
    let verbose = run(&mut liqoctl(&[
        "-vvv",
        "status",
        "--kubeconfig",
        &files.write("secret", &server, &json!({"token": secret})),
    ]));
    assert!(verbose.stderr.len() > 500 && !verbose.stderr.contains(secret), "{}", verbose.stderr);

    let (certificate, key) = expired(cluster);
    let data = |text: &str| serde_json::to_value(k8s_openapi::ByteString(text.as_bytes().to_vec())).unwrap();
    let user = json!({"client-certificate-data": data(&certificate), "client-key-data": data(&key)});
    assert_words(
        &refused(&files.write("expired", &server, &user)),
        &["does not accept the credentials", "have expired"],
    );

    let unknown = json!({"server": server["server"]});
    assert_words(
        &refused(&files.write("authority", &unknown, &json!({}))),
        &["signed by an unknown authority", "CA"],
    );

    let user =
        json!({"exec": {"apiVersion": "client.authentication.k8s.io/v1", "command": "/no/such/plugin"}});
    assert_words(&refused(&files.write("plugin", &server, &user)), &["/no/such/plugin"]);
}

/// A certificate of the cluster's own authority whose time is over.
fn expired(cluster: &Installed) -> (String, String) {
    let pki = cluster.kubeconfig().parent().unwrap().join("pki");
    let read = |name: &str| std::fs::read_to_string(pki.join(name)).unwrap();
    let authority =
        Issuer::from_ca_cert_pem(&read("ca.crt"), KeyPair::from_pem(&read("ca.key")).unwrap()).unwrap();
    let key = KeyPair::generate().unwrap();
    let mut params = CertificateParams::default();
    params.distinguished_name.push(DnType::OrganizationName, "system:masters");
    params.distinguished_name.push(DnType::CommonName, "late");
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
    params.not_before = rcgen::date_time_ymd(2020, 1, 1);
    params.not_after = rcgen::date_time_ymd(2020, 2, 1);
    (params.signed_by(&key, &authority).unwrap().pem(), key.serialize_pem())
}

fn the_name_of_a_sandbox_s_cluster_is_enough(cluster: &Installed, files: &Files) {
    let place = cluster.sandbox().sandbox().place();
    let run = |arguments: &[&str], kubeconfig: Option<&str>| {
        let mut command = liqoctl(arguments);
        command.env("LIQO_SANDBOX_STATE_DIR", place.base()).env("LIQO_SANDBOX_NAME", place.name());
        kubeconfig.map(|file| command.env("KUBECONFIG", file));
        run(&mut command)
    };
    let said = run(&["version", "--context", "one"], None);
    assert_eq!(said.code, 0, "{said:#?}");
    assert_words(
        &said.stderr,
        &["note: no kubeconfig has the context \"one\"", &format!("sandbox {}", place.name())],
    );
    assert!(said.stdout.contains("Kubernetes: v1."), "{said:#?}");

    let other = files.kubeconfig("other", "https://127.0.0.1:1", &json!({}));
    assert_eq!(run(&["version", "--context", "one"], Some(&other)).code, 0, "beside a kubeconfig without it");
    let said = run(&["--context", "one", "version", "--kubeconfig", &other], None);
    assert_eq!(said.code, 1);
    assert_words(&said.stderr, &["no context \"one\"", "It has: other"]);
    let said = run(&["status", "--context", "two"], Some(&other));
    assert_words(&said.stderr, &["no context \"two\"", "no running sandbox has a cluster of that name"]);
    let said = run(&["status"], None);
    assert_words(
        &said.stderr,
        &["there is no kubeconfig", &format!("export KUBECONFIG={}", place.kubeconfig().display())],
    );
}

async fn a_cluster_that_is_cut_off_is_told_in_time(cluster: &Installed) {
    cluster.sandbox().cut("one", liqo_sandbox::HOST).await;
    assert_words(
        &refused(cluster.kubeconfig().to_str().unwrap()),
        &["cannot reach the API server", "no answer in time"],
    );
    cluster.sandbox().heal().await;
}

#[test]
fn without_any_kubeconfig_it_is_told_how_to_get_one() {
    let said = run(&mut liqoctl(&["status"]));
    assert_eq!((said.code, said.stdout.as_str()), (1, ""));
    assert_words(
        &said.stderr,
        &["error: there is no kubeconfig at /nonexistent/.kube/config", "$KUBECONFIG", "sandbox up"],
    );
}

#[test]
fn an_interruption_ends_a_command_at_once_with_its_code() {
    let files = Files::new("interrupted");
    let nobody = closed();
    let closed = nobody.address;
    let file = files.kubeconfig("closed", &format!("https://{closed}"), &json!({}));
    let mut waiting = liqoctl(&["-v", "check", "--wait", "60s", "--kubeconfig", &file]);
    let mut waiting = waiting.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    // Its first log line shows that it has come as far as listening to signals.
    let mut first = String::new();
    BufReader::new(waiting.stderr.take().unwrap()).read_line(&mut first).unwrap();
    nix::sys::signal::kill(Pid::from_raw(i32::try_from(waiting.id()).unwrap()), Signal::SIGINT).unwrap();
    assert_eq!(waiting.wait().unwrap().code(), Some(130), "{first}");
}

#[test]
fn flags_may_stand_before_and_after_the_command() {
    for arguments in [["-n", "x", "status"], ["status", "-n", "x"]] {
        let said = run(&mut liqoctl(&arguments));
        assert_eq!(said.code, 1, "a known flag: {said:#?}");
    }
    let said = run(&mut liqoctl(&["status", "-n", "a/../b"]));
    assert_eq!(said.code, 2, "{said:#?}");
    assert_words(&said.stderr, &["\"a/../b\" is not a namespace name"]);
    let said = run(&mut liqoctl(&["sandbox", "status", "--context", "x"]));
    assert_eq!(said.code, 2, "the sandbox has no use for it: {said:#?}");
}

#[test]
fn a_reader_who_has_seen_enough_is_no_error() {
    let program = env!("CARGO_BIN_EXE_liqoctl");
    let script = format!("set -o pipefail; {program} completion bash | head -n 1 >/dev/null");
    let said: Said = Command::new("bash").args(["-c", &script]).output().unwrap().into();
    assert_eq!((said.code, said.stderr.as_str()), (0, ""), "{said:#?}");
}
