//! The programs as a pod would run them: over the network and with signals.
#![allow(clippy::disallowed_types, reason = "std's clock, as in the program")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::process::{Child, ChildStdout, Command, ExitStatus, Output, Stdio};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

const SANDBOX_APP: &str = env!("CARGO_BIN_EXE_sandbox-app");
const PAUSE: &str = env!("CARGO_BIN_EXE_pause");
/// Far more than anything here takes; only a failing test waits this long.
const DEADLINE: Duration = Duration::from_secs(20);

/// A running server; killed when dropped.
struct Server {
    child: Child,
    stdout: BufReader<ChildStdout>,
    address: SocketAddr,
}

impl Server {
    fn start() -> Self {
        let mut child = Command::new(SANDBOX_APP)
            .args(["--listen", "127.0.0.1:0"])
            .env("POD_NAME", "web-1")
            .env("CLUSTER_NAME", "provider-a")
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        stdout.read_line(&mut line).unwrap();
        let address = line.trim().rsplit(' ').next().unwrap().parse().expect(&line);
        Self { child, stdout, address }
    }

    fn url(&self, target: &str) -> String {
        format!("http://{}{target}", self.address)
    }

    fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(self.address).unwrap();
        stream.set_read_timeout(Some(DEADLINE)).unwrap();
        stream
    }

    /// Sends these bytes and returns all that comes back until the server closes.
    fn talk(&self, bytes: &[u8]) -> String {
        let mut stream = self.connect();
        // The server may close as soon as it has seen enough.
        let _ = stream.write_all(bytes);
        let _ = stream.shutdown(Shutdown::Write);
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).unwrap();
        String::from_utf8(answer).unwrap()
    }

    fn log_line(&mut self) -> String {
        let mut line = String::new();
        self.stdout.read_line(&mut line).unwrap();
        line
    }

    fn wait(&mut self) -> ExitStatus {
        wait(&mut self.child)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn wait(child: &mut Child) -> ExitStatus {
    let end = Instant::now() + DEADLINE;
    loop {
        if let Some(status) = child.try_wait().unwrap() {
            return status;
        }
        if Instant::now() > end {
            let _ = child.kill();
            panic!("process {} has not ended within {DEADLINE:?}", child.id());
        }
        std::thread::sleep(Duration::from_millis(2));
    }
}

fn send(child: &Child, signal: Signal) {
    kill(Pid::from_raw(child.id().try_into().unwrap()), signal).unwrap();
}

fn sandbox_app(args: &[&str]) -> Output {
    Command::new(SANDBOX_APP).args(args).output().unwrap()
}

fn text(bytes: &[u8]) -> &str {
    str::from_utf8(bytes).unwrap()
}

#[test]
fn the_client_gets_what_the_server_answers_and_the_server_logs_it() {
    let mut server = Server::start();
    let output = sandbox_app(&["get", &server.url("/")]);
    assert!(output.status.success(), "{output:?}");
    let body = text(&output.stdout);
    assert!(body.contains(r#""cluster":"provider-a""#) && body.contains(r#""pod":"web-1""#), "{body}");
    assert!(body.ends_with("}\n"), "{body}");

    let line = server.log_line();
    let fields: Vec<_> = line.split_whitespace().collect();
    assert_eq!(fields[1..4], ["GET", "/", "200"], "{line}");
    assert!(fields[0].ends_with('Z') && fields[4].ends_with("ms"), "{line}");
    assert_eq!(fields[5], "127.0.0.1", "{line}");
}

#[test]
fn the_client_fails_when_the_status_is_not_200_or_nobody_answers() {
    let server = Server::start();
    let output = sandbox_app(&["get", &server.url("/nothing")]);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert!(output.stdout.is_empty());
    assert!(text(&output.stderr).contains("status 404"), "{output:?}");

    let url = server.url("/");
    drop(server);
    let output = sandbox_app(&["get", &url, "--retry", "1"]);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert!(text(&output.stderr).contains("trying again (1 left)"), "{output:?}");
    assert!(text(&output.stderr).contains("refused"), "{output:?}");
}

#[test]
fn a_connection_serves_many_requests_of_every_framing() {
    let server = Server::start();
    let answers = server.talk(
        b"POST /echo HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n\
          PUT /echo HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\nfg\
          HEAD / HTTP/1.1\r\nHost: h\r\n\r\n\
          GET /nothing HTTP/1.1\r\nHost: h\r\n\r\n\
          POST / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n\
          GET /never HTTP/1.1\r\nHost: h\r\n\r\n",
    );
    let statuses: Vec<_> = answers.lines().filter_map(|line| line.strip_prefix("HTTP/1.1 ")).collect();
    assert_eq!(
        statuses,
        ["200 OK", "100 Continue", "200 OK", "200 OK", "404 Not Found", "405 Method Not Allowed"],
        "{answers}"
    );
    assert!(answers.contains(r#""body":"abcde""#) && answers.contains(r#""body":"fg""#), "{answers}");
    assert_eq!(answers.matches(r#""app":"sandbox-app""#).count(), 0, "HEAD has no body: {answers}");
    assert!(answers.contains("\r\nAllow: GET, HEAD\r\n"), "{answers}");
}

#[test]
fn hostile_requests_get_an_answer_and_do_not_hurt_the_others() {
    let server = Server::start();
    let mut huge_chunk =
        b"POST /echo HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n180000\r\n".to_vec();
    huge_chunk.resize(huge_chunk.len() + 0x18_0000, b'x');
    let cases: [(&[u8], &str); 7] = [
        (b"\x16\x03\x01\x02\x00\r\n\r\n", "400"),
        (b"GET / HTTP/3.0\r\n\r\n", "505"),
        (b"GET / HTTP/1.1\r\nHost: h\r\nExpect: miracles\r\n\r\n", "417"),
        (b"POST /echo HTTP/1.1\r\nHost: h\r\nContent-Length: 1048577\r\n\r\n", "413"),
        (&huge_chunk, "413"),
        (&[b'x'; 100_000], "431"),
        (b"POST /echo HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n", "400"),
    ];
    for (bytes, status) in cases {
        let answer = server.talk(bytes);
        assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "expected {status}, got {answer:?}");
        assert!(answer.contains("\r\nConnection: close\r\n"), "{answer}");
    }
    assert_eq!(server.talk(b"GET / HT"), "", "half a request and gone: there is nobody to answer");
    assert!(sandbox_app(&["get", &server.url("/")]).status.success());
}

#[test]
fn connections_above_the_limit_are_turned_away_and_places_come_back() {
    let server = Server::start();
    let idle: Vec<_> = (0..128).map(|_| server.connect()).collect();
    // Connections are accepted in order, so the 129th is the one too many.
    let mut answer = String::new();
    server.connect().read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 503 "), "{answer}");
    drop(idle);
    let output = sandbox_app(&["get", &server.url("/"), "--retry", "20"]);
    assert!(output.status.success(), "{output:?}");
}

#[test]
fn dial_tells_what_another_server_answered() {
    let (first, second) = (Server::start(), Server::start());
    let get = |target: &str| sandbox_app(&["get", &first.url(target)]);
    let output = get(&format!("/dial?url={}&timeout=10s", second.url("/healthz")));
    let body = text(&output.stdout);
    assert!(body.contains(r#""status":200"#), "{output:?}");
    assert!(body.contains(r#""body":"{\"healthy\":true}\n""#), "{body}");

    let url = second.url("/");
    drop(second);
    let output = get(&format!("/dial?url={url}"));
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert!(
        text(&output.stderr).contains("status 502") && text(&output.stderr).contains("refused"),
        "{output:?}"
    );
}

#[test]
fn stop_ends_the_server_after_it_has_answered() {
    let mut server = Server::start();
    assert!(sandbox_app(&["get", &server.url("/stop?code=7")]).status.success());
    assert_eq!(server.wait().code(), Some(7));
}

#[test]
fn sigterm_ends_the_server_at_once_and_without_cutting_an_answer_off() {
    let mut server = Server::start();
    let burn = |server: &Server| {
        let mut stream = server.connect();
        let request = b"GET /burn?ms=300&cores=16 HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n";
        stream.write_all(request).unwrap();
        stream
    };
    let mut stream = burn(&server);
    // No core is left to burn as long as the request above is being answered. A busy machine may be too late to see it.
    let end = Instant::now() + DEADLINE;
    while !server.talk(b"GET /burn?ms=0 HTTP/1.0\r\n\r\n").starts_with("HTTP/1.1 429 ") {
        assert!(Instant::now() < end, "the request to burn is not being answered");
        stream.set_nonblocking(true).unwrap();
        let answered = stream.peek(&mut [0]).is_ok();
        stream.set_nonblocking(false).unwrap();
        if answered {
            stream = burn(&server);
        }
    }
    let sent = Instant::now();
    send(&server.child, Signal::SIGTERM);
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
    assert_eq!(server.wait().code(), Some(0));
    assert!(sent.elapsed() < Duration::from_secs(5), "took {:?}", sent.elapsed());
}

#[test]
fn commands_for_jobs_end_as_told() {
    assert_eq!(sandbox_app(&["exit", "3"]).status.code(), Some(3));
    assert_eq!(sandbox_app(&["sleep", "10ms"]).status.code(), Some(0));
    let output = sandbox_app(&["exit"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("--help"), "{output:?}");
    let help = sandbox_app(&["--help"]);
    assert!(help.status.success() && text(&help.stdout).contains("/dial"), "{help:?}");
}

/// A program that is PID 1 of a PID namespace, where SIGTERM is ignored unless it is asked for.
struct Container {
    unshare: Child,
}

impl Container {
    fn start(args: &[&str]) -> Self {
        // Dies with this test, even when the test is killed.
        let mut command = Command::new("setpriv");
        command
            .args(["--pdeathsig", "KILL", "unshare", "--pid", "--fork", "--kill-child", "--mount-proc"])
            .args(args);
        command.stdin(Stdio::piped()).stdout(Stdio::null());
        Self { unshare: command.spawn().unwrap() }
    }

    /// PID 1 as seen from outside, once it runs `program`.
    fn pid_1(&self, program: &str) -> Pid {
        let end = Instant::now() + DEADLINE;
        loop {
            let pid = children(self.unshare.id());
            let runs = std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
            if runs.trim() == program {
                return Pid::from_raw(pid.parse().unwrap());
            }
            assert!(Instant::now() < end, "{program} does not run: child {pid:?} of unshare runs {runs:?}");
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    /// Sends SIGTERM until the program ends: one that comes before it has looked at its arguments is lost.
    fn terminate(&mut self, pid: Pid) -> ExitStatus {
        let end = Instant::now() + DEADLINE;
        loop {
            // Fails when the program has ended, which the next line sees.
            let _ = kill(pid, Signal::SIGTERM);
            if let Some(status) = self.unshare.try_wait().unwrap() {
                return status;
            }
            assert!(Instant::now() < end, "process {pid} ignores SIGTERM");
            std::thread::sleep(Duration::from_millis(2));
        }
    }
}

impl Drop for Container {
    fn drop(&mut self) {
        // PID 1 goes with it, by --kill-child.
        let _ = self.unshare.kill();
        let _ = self.unshare.wait();
    }
}

fn children(pid: impl std::fmt::Display) -> String {
    std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default().trim().to_owned()
}

#[test]
fn as_pid_1_of_a_container_both_programs_end_on_sigterm() {
    let cases: [(&[&str], &str, i32); 3] = [
        (&[PAUSE], "pause", 0),
        (&[SANDBOX_APP, "--listen", "127.0.0.1:0"], "sandbox-app", 0),
        (&[SANDBOX_APP, "sleep", "1h"], "sandbox-app", 143),
    ];
    for (args, program, code) in cases {
        let mut container = Container::start(args);
        let pid = container.pid_1(program);
        assert_eq!(container.terminate(pid).code(), Some(code), "{args:?}");
    }
}

#[test]
fn pause_reaps_what_is_orphaned_in_its_pod() {
    // The inner shell ends at once, so that its background process becomes a child of PID 1. It ends with its
    // input, and is a zombie from then on unless PID 1 takes it. (A shell keeps its own input from what it starts
    // in the background, therefore descriptor 3.)
    let script = format!("sh -c 'cat <&3 &' 3<&0; exec {PAUSE}");
    let mut container = Container::start(&["sh", "-c", &script]);
    let pause = container.pid_1("pause");
    assert_ne!(children(pause), "", "there is no orphan to reap");
    drop(container.unshare.stdin.take());
    wait_until_childless(pause);
    assert_eq!(container.terminate(pause).code(), Some(0));
}

#[test]
fn pause_reaps_what_was_a_zombie_before_it_started() {
    // Nobody is told about such a child any more: what becomes pause has ignored the signal. A shell would take
    // the child itself.
    let script = r#"
        defined(my $pid = fork) or die;
        exit unless $pid;
        do { open my $file, "<", "/proc/$pid/stat" or die; $stat = <$file> } until $stat =~ /\) Z /;
        exec @ARGV;
    "#;
    let mut container = Container::start(&["perl", "-e", script, PAUSE]);
    let pause = container.pid_1("pause");
    wait_until_childless(pause);
    assert_eq!(container.terminate(pause).code(), Some(0));
}

fn wait_until_childless(pid: Pid) {
    let end = Instant::now() + DEADLINE;
    while !children(pid).is_empty() {
        assert!(Instant::now() < end, "{} is still a child of process {pid}", children(pid));
        std::thread::sleep(Duration::from_millis(2));
    }
}
