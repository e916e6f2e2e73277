//! Our image archives in a real containerd, with real containers made from them. Needs root.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]
#![allow(
    clippy::disallowed_types,
    reason = "nothing here is async: processes are waited for with std's clock"
)]

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use liqo_sandbox::image::{self, Compression, Image, Layer};

/// Far more than anything here takes; only a failing test waits this long.
const DEADLINE: Duration = Duration::from_secs(60);

/// A containerd in namespaces of its own: with its first process go its containers and its mounts.
struct Containerd {
    dir: PathBuf,
    cgroup: String,
    unshare: Child,
    pid: String,
}

impl Containerd {
    fn start(test: &str) -> Self {
        let cgroup = format!("liqo-image-import-{test}-{}", std::process::id());
        let dir = std::env::temp_dir().join(&cgroup);
        fs::create_dir_all(&dir).unwrap();
        fs::write(dir.join("config.toml"), config(&dir)).unwrap();
        // The shims' sockets have a fixed place below /run, so that has to be a private one.
        let script =
            "mount -t tmpfs tmpfs /run && exec containerd --config \"$0/config.toml\" > \"$0/log\" 2>&1";
        // Dies with this test, even when the test is killed.
        let unshare = Command::new("setpriv")
            .args(["--pdeathsig", "KILL", "unshare"])
            .args(["--mount", "--pid", "--fork", "--kill-child", "--mount-proc", "--propagation", "private"])
            .args(["sh", "-c", script])
            .arg(&dir)
            .spawn()
            .expect("setpriv and unshare are part of util-linux");
        let mut containerd = Self { dir, cgroup, unshare, pid: String::new() };
        containerd.wait();
        containerd
    }

    fn wait(&mut self) {
        let children = format!("/proc/{0}/task/{0}/children", self.unshare.id());
        let end = Instant::now() + DEADLINE;
        loop {
            self.pid = fs::read_to_string(&children).unwrap_or_default().trim().to_owned();
            if !self.pid.is_empty() && self.ctr(&["version"]).status.success() {
                return;
            }
            let log = fs::read_to_string(self.dir.join("log")).unwrap_or_default();
            assert!(self.unshare.try_wait().unwrap().is_none(), "containerd has ended:\n{log}");
            assert!(Instant::now() < end, "containerd does not answer:\n{log}");
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new("nsenter");
        command.args(["--target", &self.pid, "--mount", "--pid", "ctr", "--namespace", "k8s.io"]).args(args);
        command
    }

    fn ctr(&self, args: &[&str]) -> Output {
        self.command(args).output().expect("nsenter is part of util-linux")
    }

    /// Runs `ctr`, which must succeed, and returns what it prints.
    fn must(&self, args: &[&str]) -> String {
        let output = self.ctr(args);
        assert!(output.status.success(), "ctr {args:?}: {output:?}");
        String::from_utf8(output.stdout).unwrap()
    }

    fn import(&self, archive: &Path) -> Duration {
        let started = Instant::now();
        self.must(&["images", "import", archive.to_str().unwrap()]);
        started.elapsed()
    }

    /// The arguments to run a container; `what` is the image, an id, and perhaps a command.
    fn run(&self, options: &[&str], what: &[&str]) -> Command {
        let mut command = self.command(&["run", "--rm", "--cgroup", &format!("/{}", self.cgroup)]);
        command.args(options).args(what);
        command
    }

    fn cgroups(&self) -> Vec<PathBuf> {
        let hierarchies = fs::read_dir("/sys/fs/cgroup").unwrap();
        hierarchies.map(|dir| dir.unwrap().path().join(&self.cgroup)).filter(|path| path.exists()).collect()
    }
}

impl Drop for Containerd {
    fn drop(&mut self) {
        let _ = self.unshare.kill();
        let _ = self.unshare.wait();
        for cgroup in self.cgroups() {
            let _ = fs::remove_dir(cgroup);
        }
        let _ = fs::remove_dir_all(&self.dir);
    }
}

fn config(dir: &Path) -> String {
    let unused = [
        "io.containerd.grpc.v1.cri",
        "io.containerd.internal.v1.opt",
        "io.containerd.snapshotter.v1.aufs",
        "io.containerd.snapshotter.v1.btrfs",
        "io.containerd.snapshotter.v1.devmapper",
        "io.containerd.snapshotter.v1.zfs",
    ];
    format!(
        "version = 2\nroot = {root:?}\nstate = \"/run/containerd\"\noom_score = 0\ndisabled_plugins = {unused:?}\n",
        root = dir.join("root")
    )
}

/// What `ctr images list` shows for an image, in columns.
fn listed(containerd: &Containerd, name: &str) -> Vec<String> {
    let list = containerd.must(&["images", "list"]);
    let line = list.lines().find(|line| line.split_whitespace().next() == Some(name));
    line.unwrap_or_else(|| panic!("{name} is not in\n{list}")).split_whitespace().map(str::to_owned).collect()
}

#[test]
fn containerd_imports_the_sandboxes_images_and_runs_them() {
    let containerd = Containerd::start("own");
    let archive = |name: &str| containerd.dir.join(name);

    // The names and digests under which they arrive.
    let program = archive("coredns");
    fs::write(&program, vec![b'x'; 10_000_000]).unwrap();
    let (pause, app, coredns) = (archive("pause.tar"), archive("app.tar"), archive("coredns.tar"));
    for (path, name, digest) in [
        (&pause, image::PAUSE_NAME, image::pause(&pause).unwrap()),
        (&app, image::SANDBOX_APP_NAME, image::sandbox_app(&app).unwrap()),
        (&coredns, image::COREDNS_NAME, image::coredns(&program, &coredns).unwrap()),
    ] {
        let took = containerd.import(path);
        let columns = listed(&containerd, name);
        assert_eq!(columns[2], digest.to_string(), "{columns:?}");
        let size = fs::metadata(path).unwrap().len();
        println!("{name}: {size} bytes, imported in {} ms", took.as_millis());
    }
    let again = containerd.import(&app);
    println!("{} again: {} ms", image::SANDBOX_APP_NAME, again.as_millis());

    // A command that ends by itself.
    let output =
        containerd.run(&[], &[image::SANDBOX_APP_NAME, "ends", "sandbox-app", "exit", "3"]).output().unwrap();
    assert_eq!(output.status.code(), Some(3), "{output:?}");

    server_answers_and_ends(&containerd);
    pause_ends(&containerd);

    let (dir, cgroups) = (containerd.dir.clone(), containerd.cgroups());
    drop(containerd);
    assert_eq!(cgroups, Vec::<PathBuf>::new());
    assert!(!dir.exists());
    let mounts = fs::read_to_string("/proc/self/mounts").unwrap();
    assert!(!mounts.contains(dir.to_str().unwrap()), "{mounts}");
}

fn server_answers_and_ends(containerd: &Containerd) {
    let what = [image::SANDBOX_APP_NAME, "serves", "sandbox-app", "--listen", "127.0.0.1:0"];
    let mut server = containerd
        .run(&["--net-host", "--env", "POD_NAME=web-1"], &what)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut log = BufReader::new(server.stdout.take().unwrap());
    let mut line = String::new();
    log.read_line(&mut line).unwrap();
    let address = line.trim().rsplit(' ').next().unwrap().to_owned();
    let mut stream =
        TcpStream::connect(&address).unwrap_or_else(|error| panic!("{address} from {line:?}: {error}"));
    stream.write_all(b"GET / HTTP/1.0\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200 ") && answer.contains(r#""pod":"web-1""#), "{answer}");

    let processes = containerd.must(&["tasks", "ps", "serves"]);
    let pid = processes
        .lines()
        .nth(1)
        .and_then(|line| line.split_whitespace().next())
        .expect(&processes)
        .to_owned();
    // containerd tells the PIDs of its own namespace.
    let output = Command::new("nsenter")
        .args(["--target", &containerd.pid, "--mount", "--pid", "cat", &format!("/proc/{pid}/status")])
        .output()
        .unwrap();
    let status = String::from_utf8(output.stdout).unwrap();
    assert!(status.contains("Uid:\t65532\t65532\t65532\t65532\n"), "{status}");
    assert!(status.contains("Gid:\t65532\t65532\t65532\t65532\n"), "{status}");

    containerd.must(&["tasks", "kill", "--signal", "SIGTERM", "serves"]);
    assert_eq!(ended(&mut server), Some(0));
}

fn pause_ends(containerd: &Containerd) {
    let mut pause = containerd.run(&[], &[image::PAUSE_NAME, "pauses"]).stdin(Stdio::null()).spawn().unwrap();
    let end = Instant::now() + DEADLINE;
    while !containerd.must(&["tasks", "list"]).contains("RUNNING") {
        assert!(Instant::now() < end, "pause does not run: {}", containerd.must(&["tasks", "list"]));
    }
    // Sent again and again: the first may come before the program is ready to take it.
    let started = Instant::now();
    while pause.try_wait().unwrap().is_none() {
        assert!(Instant::now() < end, "pause ignores SIGTERM");
        let _ = containerd.ctr(&["tasks", "kill", "--signal", "SIGTERM", "pauses"]);
    }
    println!("pause ended {} ms after SIGTERM", started.elapsed().as_millis());
    assert_eq!(ended(&mut pause), Some(0));
}

fn ended(child: &mut Child) -> Option<i32> {
    let end = Instant::now() + DEADLINE;
    loop {
        if let Some(status) = child.try_wait().unwrap() {
            return status.code();
        }
        if Instant::now() > end {
            let _ = child.kill();
            panic!("process {} has not ended within {DEADLINE:?}", child.id());
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn layers_links_owners_and_compression_survive_the_import() {
    let containerd = Containerd::start("layers");
    let archive = containerd.dir.join("archive.tar");
    let name = "registry.example.org/liqo/layers:v1";
    let program = image::sandbox_app_program();
    let digest = Image::new(name)
        .layer(
            Layer::new()
                .file("/usr/bin/app", program, 0o555)
                .owner(1000, 1000)
                .file("/usr/bin/theirs", program, 0o500)
                .owner(1001, 1001)
                .file("/usr/bin/mine", program, 0o500),
        )
        .layer(Layer::new().symlink("/app", "usr/bin/app").directory("/home", 0o755))
        .compression(Compression::Gzip(6))
        .entrypoint(["/app"])
        .command(["exit", "7"])
        .user(1001, 1001)
        .working_dir("/home")
        .write(&archive)
        .unwrap();
    containerd.import(&archive);
    assert_eq!(listed(&containerd, name)[2], digest.to_string());

    // Entrypoint and command of the image itself; the program is reached through the other layer's link.
    let output = containerd.run(&[], &[name, "default"]).output().unwrap();
    assert_eq!(output.status.code(), Some(7), "{output:?}");
    // A file with mode 500 is for its owner, as long as no capability overrides that.
    let run = |program: &str| {
        let what = [name, "private", program, "exit", "8"];
        containerd.run(&["--cap-drop", "CAP_DAC_OVERRIDE"], &what).output().unwrap()
    };
    let output = run("/usr/bin/theirs");
    assert!(String::from_utf8_lossy(&output.stderr).contains("permission denied"), "{output:?}");
    let output = run("/usr/bin/mine");
    assert_eq!(output.status.code(), Some(8), "{output:?}");
}
