//! The baseline of an API-server-only cluster: the same two programs on loopback, started by hand.
//!
//! What Kubernetes itself costs on this machine; everything above it is ours.

use std::fs::{self, File};
use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use rcgen::{CertificateParams, KeyPair};
use tokio::time::Instant;

/// A start that takes longer is broken.
const PATIENCE: Duration = Duration::from_secs(60);
/// How often readiness is asked for; the number is right to about this much.
const INTERVAL: Duration = Duration::from_millis(25);

/// Starts and ends the two programs once; returns the seconds until the API server was ready.
pub(super) fn round(programs: &Path, dir: &Path) -> Result<f64> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    // What an interrupted bench left there would be taken for this round's data.
    let _ = fs::remove_dir_all(dir);
    fs::create_dir_all(dir).with_context(|| format!("cannot create {}", dir.display()))?;
    let seconds = runtime.block_on(start(programs, dir))?;
    fs::remove_dir_all(dir).with_context(|| format!("cannot remove {}", dir.display()))?;
    Ok(seconds)
}

async fn start(programs: &Path, dir: &Path) -> Result<f64> {
    let [etcd, peer, api] = free_ports()?;
    // As in the sandbox, keys are part of starting a cluster.
    let started = Instant::now();
    let certificate = write_keys(dir)?;
    let etcd_url = format!("http://127.0.0.1:{etcd}");
    let peer_url = format!("http://127.0.0.1:{peer}");
    let _etcd = Program::start(
        programs,
        "etcd",
        dir,
        &[
            format!("--data-dir={}", dir.join("etcd").display()),
            format!("--listen-client-urls={etcd_url}"),
            format!("--advertise-client-urls={etcd_url}"),
            format!("--listen-peer-urls={peer_url}"),
            format!("--initial-advertise-peer-urls={peer_url}"),
            format!("--initial-cluster=default={peer_url}"),
            "--unsafe-no-fsync".into(),
            "--log-level=warn".into(),
        ],
    )?;
    let file = |name: &str| dir.join(name).display().to_string();
    let mut apiserver = Program::start(
        programs,
        "kube-apiserver",
        dir,
        &[
            "--bind-address=127.0.0.1".into(),
            format!("--secure-port={api}"),
            format!("--etcd-servers={etcd_url}"),
            // It would refuse to write a loopback address into the endpoints.
            "--endpoint-reconciler-type=none".into(),
            "--authorization-mode=Node,RBAC".into(),
            "--enable-admission-plugins=NodeRestriction".into(),
            "--service-cluster-ip-range=10.80.0.0/16".into(),
            format!("--tls-cert-file={}", file("server.crt")),
            format!("--tls-private-key-file={}", file("server.key")),
            "--service-account-issuer=https://kubernetes.default.svc.cluster.local".into(),
            format!("--service-account-key-file={}", file("accounts.pub")),
            format!("--service-account-signing-key-file={}", file("accounts.key")),
            "--shutdown-delay-duration=0s".into(),
            "--profiling=false".into(),
        ],
    )?;
    let mut config = kube::Config::new(format!("https://127.0.0.1:{api}").parse()?);
    config.root_cert = Some(vec![certificate]);
    let client = kube::Client::try_from(config)?;
    while !ready(&client).await {
        apiserver.check()?;
        ensure!(started.elapsed() < PATIENCE, "kube-apiserver was not ready after {PATIENCE:?}");
        tokio::time::sleep(INTERVAL).await;
    }
    Ok(started.elapsed().as_secs_f64())
}

async fn ready(client: &kube::Client) -> bool {
    match http::Request::get("/readyz").body(Vec::new()) {
        Ok(request) => client.request_text(request).await.is_ok(),
        Err(_) => false,
    }
}

/// Ports that nobody listens on now.
fn free_ports() -> Result<[u16; 3]> {
    // All are held until all are known, or the same one could come twice.
    let mut held = Vec::new();
    for _ in 0..3 {
        held.push(TcpListener::bind("127.0.0.1:0")?);
    }
    Ok([held[0].local_addr()?.port(), held[1].local_addr()?.port(), held[2].local_addr()?.port()])
}

/// Writes a serving certificate that signs itself, and a key for service accounts. Returns the certificate (DER).
fn write_keys(dir: &Path) -> Result<Vec<u8>> {
    let (server, accounts) = (KeyPair::generate()?, KeyPair::generate()?);
    let certificate = CertificateParams::new(["127.0.0.1".to_owned()])?.self_signed(&server)?;
    let files = [
        ("server.crt", certificate.pem()),
        ("server.key", server.serialize_pem()),
        ("accounts.key", accounts.serialize_pem()),
        ("accounts.pub", accounts.public_key_pem()),
    ];
    for (name, text) in files {
        fs::write(dir.join(name), text).with_context(|| format!("cannot write {name}"))?;
    }
    Ok(certificate.der().to_vec())
}

/// A program that ends with this value, and with the bench if that is killed.
struct Program {
    name: &'static str,
    child: Child,
    log: std::path::PathBuf,
}

impl Program {
    fn start(programs: &Path, name: &'static str, dir: &Path, arguments: &[String]) -> Result<Self> {
        let log = dir.join(format!("{name}.log"));
        let output = File::create(&log).with_context(|| format!("cannot create {}", log.display()))?;
        let child = Command::new("setpriv")
            .args(["--pdeathsig", "KILL"])
            .arg(programs.join(name))
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(output.try_clone()?)
            .stderr(output)
            .spawn()
            .with_context(|| format!("cannot start {} through setpriv", programs.join(name).display()))?;
        Ok(Self { name, child, log })
    }

    /// Fails, with the end of the log, if the program has ended.
    fn check(&mut self) -> Result<()> {
        let Some(status) = self.child.try_wait()? else { return Ok(()) };
        let log = fs::read_to_string(&self.log).unwrap_or_default();
        let last: Vec<&str> = log.lines().rev().take(5).collect();
        bail!("{} ended ({status}): {}", self.name, last.into_iter().rev().collect::<Vec<_>>().join("\n"))
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // Killing fails only for a program that has ended, and waiting then takes no time.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
