//! Clusters for tests: there when the test starts, gone when it ends, passed or panicked.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Output;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use crate::binaries::Sources;
use crate::cluster::Cluster;
use crate::component::{Component, Part};
use crate::faults::RelayHost;
use crate::plan::Place;
use crate::sandbox::{Options, Sandbox, Up};
use crate::spec::{ClusterSpec, Spec};
use crate::state::Owner;
use crate::{down, host};

/// Tests keep their clusters apart from those a person started.
const BASE: &str = "/var/lib/liqo-sandbox-tests";
/// After a test changed a component, its API server must answer within this time.
const READY_DEADLINE: Duration = Duration::from_secs(60);

/// A sandbox that belongs to one test. Its methods panic with the reason when something cannot be done, since a
/// test can do nothing else about it.
#[derive(Debug)]
pub struct TestSandbox {
    sandbox: Sandbox,
}

impl TestSandbox {
    /// Starts these clusters.
    ///
    /// # Panics
    /// When this machine cannot run them; the message says why.
    pub async fn start(clusters: impl IntoIterator<Item = ClusterSpec>) -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let name = format!("t{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let base = Path::new(BASE);
        for debris in down::abandoned(base) {
            // Another test may be removing the same at this moment.
            let _ = Place::new(base, &debris).map(|place| down::down(&place));
        }
        let place = known(Place::new(base, &name));
        let guard = Guard(place.clone());
        let options = Options { sources: sources(), owner: Some(Owner::me()) };
        let up = Sandbox::up(&place, &Spec::new(clusters), &options, &|_, _| {}).await;
        let (Up::Started(sandbox) | Up::Running(sandbox)) = known(up);
        std::mem::forget(guard);
        Self { sandbox }
    }

    /// One of its clusters.
    ///
    /// # Panics
    /// When there is none of that name.
    pub fn cluster(&self, name: &str) -> TestCluster<'_> {
        TestCluster(known(self.sandbox.cluster(name)))
    }

    /// The sandbox itself.
    pub fn sandbox(&self) -> &Sandbox {
        &self.sandbox
    }

    /// Drops all packets between two clusters, or a cluster and this machine (`host`).
    ///
    /// # Panics
    /// When a name is unknown or the network refuses.
    pub async fn cut(&self, a: &str, b: &str) {
        known(self.sandbox.clone().cut(a, b, &RelayHost::Thread).await);
    }

    /// Delays all packets between two clusters in each direction.
    ///
    /// # Panics
    /// When a name is unknown or the network refuses.
    pub async fn delay(&self, a: &str, b: &str, each_way: Duration) {
        known(self.sandbox.clone().delay(a, b, each_way, &RelayHost::Thread).await);
    }

    /// Ends all network faults.
    ///
    /// # Panics
    /// When the network refuses.
    pub async fn heal(&self) {
        known(self.sandbox.clone().heal(&RelayHost::Thread).await);
    }
}

impl Drop for TestSandbox {
    fn drop(&mut self) {
        if std::thread::panicking() {
            keep_logs(self.sandbox.place());
        }
        remove(self.sandbox.place());
    }
}

/// Removes a sandbox whose start panicked or was cancelled.
struct Guard(Place);

impl Drop for Guard {
    fn drop(&mut self) {
        remove(&self.0);
    }
}

fn remove(place: &Place) {
    if let Err(error) = down::down(place) {
        eprintln!("cannot remove the test's sandbox: {error}");
    }
}

/// Keeps the logs of a failed test's clusters beside the build, and says where.
fn keep_logs(place: &Place) {
    let kept = logs_directory().join(test_name());
    // Logs of an earlier run of the same test would only confuse.
    let _ = fs::remove_dir_all(&kept);
    match copy_logs(&place.root(), &kept) {
        Ok(()) => eprintln!("logs of the test's clusters: {}", kept.display()),
        Err(error) => eprintln!("cannot keep the logs of the test's clusters in {}: {error}", kept.display()),
    }
}

fn copy_logs(from: &Path, to: &Path) -> std::io::Result<()> {
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        // Links of a node lead to places that only the node sees.
        let (path, kind) = (entry.path(), entry.file_type()?);
        let target = to.join(entry.file_name());
        if kind.is_dir()
            && !path.ends_with("containerd")
            && !path.ends_with("kubelet")
            && !path.ends_with("etcd")
        {
            copy_logs(&path, &target)?;
        } else if kind.is_file() && path.extension().is_some_and(|extension| extension == "log") {
            fs::create_dir_all(to)?;
            fs::copy(&path, &target)?;
        }
    }
    Ok(())
}

fn logs_directory() -> PathBuf {
    target_directory().join("cluster-logs")
}

/// The directory that this test was built into.
fn target_directory() -> PathBuf {
    let executable = std::env::current_exe().unwrap_or_default();
    let target = executable.ancestors().find(|dir| dir.ends_with("target"));
    target.unwrap_or(Path::new("target")).to_owned()
}

/// The archive of the product's image, `liqo:VERSION`, which `make image` writes.
///
/// # Panics
/// When there is none, or when it was made before the binary that should be in it.
pub fn product_image() -> PathBuf {
    known(product_image_in(&target_directory()))
}

fn product_image_in(target: &Path) -> Result<PathBuf, String> {
    let image = target.join("image").join(format!("liqo-{}.tar", env!("CARGO_PKG_VERSION")));
    let time = |path: &Path| fs::metadata(path).and_then(|file| file.modified());
    match (time(&image), time(&target.join("release/liqo"))) {
        (Err(error), _) => Err(format!("{}: {error}; run `make image` first", image.display())),
        (Ok(image_time), Ok(binary_time)) if image_time < binary_time => {
            Err(format!("{} is older than the binary; run `make image` first", image.display()))
        }
        _ => Ok(image),
    }
}

fn test_name() -> String {
    std::thread::current().name().unwrap_or("test").replace("::", "-")
}

#[expect(clippy::disallowed_methods, reason = "a test has no argument struct")]
fn sources() -> Sources {
    let home = std::env::var_os("HOME").map(PathBuf::from).unwrap_or_default();
    let cache = std::env::var_os("XDG_CACHE_HOME").map_or_else(|| home.join(".cache"), PathBuf::from);
    Sources {
        cache: std::env::var_os("LIQO_TOOLS_DIR").map_or_else(|| cache.join("liqo-rs"), PathBuf::from),
        assets: std::env::var_os("KUBEBUILDER_ASSETS").map(PathBuf::from),
        path: vec![],
    }
}

#[expect(clippy::panic, reason = "a test without its clusters has failed")]
fn known<T, E: std::fmt::Display>(result: Result<T, E>) -> T {
    result.unwrap_or_else(|error| panic!("{error}"))
}

/// One cluster of a test.
#[derive(Debug, Clone, Copy)]
pub struct TestCluster<'a>(Cluster<'a>);

impl<'a> std::ops::Deref for TestCluster<'a> {
    type Target = Cluster<'a>;

    fn deref(&self) -> &Cluster<'a> {
        &self.0
    }
}

/// All of these panic with the reason when something cannot be done.
#[expect(clippy::missing_panics_doc, reason = "said once, for all")]
impl TestCluster<'_> {
    /// The administrator's client.
    pub async fn client(&self) -> kube::Client {
        known(self.0.client().await)
    }

    /// The administrator's client configuration.
    pub async fn config(&self) -> kube::Config {
        known(self.0.config().await)
    }

    /// Runs kubectl.
    pub fn kubectl<S: AsRef<OsStr>>(&self, arguments: impl IntoIterator<Item = S>) -> Output {
        known(self.0.kubectl(arguments))
    }

    /// `kubectl apply -f -`.
    pub fn kubectl_apply(&self, yaml: &str) -> Output {
        known(self.0.kubectl_apply(yaml))
    }

    /// Runs kubectl in the cluster's own network.
    pub fn kubectl_inside<S: AsRef<OsStr>>(&self, arguments: impl IntoIterator<Item = S>) -> Output {
        known(self.0.kubectl_inside(arguments))
    }

    fn all_of(&self, component: Component) -> Vec<Part> {
        known(self.0.parts(Some(component.name())))
    }

    /// Ends a component politely.
    pub async fn stop(&self, component: Component) {
        known(self.0.stop(&self.all_of(component)));
    }

    /// Ends a component at once.
    pub async fn kill(&self, component: Component) {
        known(self.0.kill(&self.all_of(component)));
    }

    /// Freezes a component.
    pub async fn pause(&self, component: Component) {
        known(self.0.pause(&self.all_of(component)));
    }

    /// Lets a frozen component go on.
    pub async fn resume(&self, component: Component) {
        known(self.0.resume(&self.all_of(component)));
    }

    /// Starts a component again.
    pub async fn start(&self, component: Component) {
        known(self.0.start(&self.all_of(component), &|_, _| {}).await);
    }

    /// Waits until the API server is ready.
    pub async fn wait_ready(&self) {
        let deadline = tokio::time::Instant::now() + READY_DEADLINE;
        while let Err(state) = self.0.api_ready().await {
            assert!(tokio::time::Instant::now() < deadline, "cluster {} is not ready: {state}", self.name());
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }

    /// Drops etcd's history.
    pub async fn compact_etcd(&self) {
        known(self.0.compact_etcd().await);
    }
}

/// Whether tests that need clusters can run at all; they must not pass silently where they cannot.
///
/// # Panics
/// When this process is not root.
pub fn require_root() {
    known(host::check_root());
}

#[cfg(test)]
mod tests;
