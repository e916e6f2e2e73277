//! A real name server: CoreDNS with zones that a test writes.
#![allow(dead_code, reason = "each test file uses a part of it")]

use std::fmt::Write as _;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener, UdpSocket};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

use liqo_sandbox::Sources;

/// CoreDNS on this machine, until it is dropped.
pub(crate) struct NameServer {
    pub(crate) address: SocketAddr,
    directory: PathBuf,
    process: Option<Child>,
    serial: AtomicU32,
}

impl NameServer {
    /// Serves these zones, which have nothing in them yet, to programs of this machine.
    pub(crate) fn start(zones: &[&str]) -> Self {
        Self::start_at(Ipv4Addr::LOCALHOST.into(), zones)
    }

    /// The same, to whoever reaches this address.
    pub(crate) fn start_at(address: IpAddr, zones: &[&str]) -> Self {
        let directory = std::env::temp_dir().join(format!("liqo-discovery-dns-{}", std::process::id()));
        std::fs::create_dir_all(&directory).unwrap();
        let port = free_port(address);
        let mut configuration = String::new();
        for zone in zones {
            let file = directory.join(zone);
            writeln!(
                configuration,
                "{zone}:{port} {{\n  bind {address}\n  file {} {zone} {{\n    reload 1s\n  }}\n  errors\n}}",
                file.display()
            )
            .unwrap();
        }
        std::fs::write(directory.join("Corefile"), configuration).unwrap();
        let address = (address, port).into();
        let mut server = Self { address, directory, process: None, serial: AtomicU32::new(1) };
        zones.iter().for_each(|zone| server.write(zone, ""));
        server.run();
        server
    }

    /// Starts it, or starts it again.
    pub(crate) fn run(&mut self) {
        let log = std::fs::File::create(self.directory.join("log")).unwrap();
        let process = Command::new(program())
            .args(["-conf", "Corefile"])
            .current_dir(&self.directory)
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .unwrap();
        self.process = Some(process);
    }

    pub(crate) fn kill(&mut self) {
        if let Some(mut process) = self.process.take() {
            process.kill().unwrap();
            process.wait().unwrap();
        }
    }

    /// Replaces what a zone has; the server takes it over within a second or two.
    pub(crate) fn write(&self, zone: &str, records: &str) {
        let serial = self.serial.fetch_add(1, Ordering::Relaxed);
        let text = format!(
            "$ORIGIN {zone}.\n@ 5 IN SOA ns.{zone}. admin.{zone}. {serial} 7200 3600 1209600 5\n\
             @ 5 IN NS ns.{zone}.\nns 5 IN A 192.0.2.1\n{records}"
        );
        // At once, so that the server never reads half a zone.
        let draft = self.directory.join(format!("{zone}.new"));
        std::fs::write(&draft, text).unwrap();
        std::fs::rename(&draft, self.directory.join(zone)).unwrap();
    }

    pub(crate) fn log(&self) -> String {
        std::fs::read_to_string(self.directory.join("log")).unwrap_or_default()
    }
}

impl Drop for NameServer {
    fn drop(&mut self) {
        self.kill();
        let _ = std::fs::remove_dir_all(&self.directory);
    }
}

/// Free at this moment for both protocols, and below the range from which anybody is given ports: it stays free while the
/// server is away. Tests at the same time begin to look at different places.
fn free_port(address: IpAddr) -> u16 {
    let first = 10_000 + (std::process::id() % 1000) * 20;
    let free =
        |port: &u16| UdpSocket::bind((address, *port)).is_ok() && TcpListener::bind((address, *port)).is_ok();
    (first..first + 20).filter_map(|port| u16::try_from(port).ok()).find(free).expect("a free port")
}

/// Where the sandbox's programs are, as its tests find them.
#[expect(clippy::disallowed_methods, reason = "a test has no argument struct")]
fn program() -> PathBuf {
    let home = std::env::var_os("HOME").map(PathBuf::from).unwrap_or_default();
    let cache = std::env::var_os("XDG_CACHE_HOME").map_or_else(|| home.join(".cache"), PathBuf::from);
    let cache = std::env::var_os("LIQO_TOOLS_DIR").map_or_else(|| cache.join("liqo-rs"), PathBuf::from);
    let program = Sources { cache, assets: None, path: vec![] }.cached().join("coredns");
    assert!(Path::new(&program).exists(), "{} is missing; run `make tools`", program.display());
    program
}
