//! Where the programs of a cluster come from: built once into a cache, or already on the machine in a fitting
//! version. This module only finds them; `make tools` builds them.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::error::{Result, SandboxError};

/// The Kubernetes version of the clusters.
pub const KUBERNETES_VERSION: &str = "v1.34.4";

/// What a control plane consists of.
const CONTROL_PLANE: [&str; 5] =
    ["etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubectl"];
/// What a real node needs beyond Debian's packages.
const NODE: [&str; 3] = ["kubelet", "kube-proxy", "coredns"];
/// What keeps hollow nodes alive.
const HOLLOW: [&str; 1] = ["kwok"];

/// Written last by `make tools`: a line with size and name for each program.
const COMPLETE: &str = "complete";

/// The places where programs may be.
#[derive(Debug, Clone, Default)]
pub struct Sources {
    /// The cache that `make tools` fills; below it there is one directory per Kubernetes version.
    pub cache: PathBuf,
    /// A directory with ready binaries, as `setup-envtest` makes it.
    pub assets: Option<PathBuf>,
    /// Directories of the search path.
    pub path: Vec<PathBuf>,
}

impl Sources {
    /// The directory of the cache that holds the programs of this version.
    pub fn cached(&self) -> PathBuf {
        self.cache.join(format!("kubernetes-{KUBERNETES_VERSION}"))
    }
}

/// Every program that a sandbox needs, by name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Binaries(BTreeMap<&'static str, PathBuf>);

impl Binaries {
    /// Finds what clusters with or without real and hollow nodes need.
    pub fn find(sources: &Sources, real: bool, hollow: bool) -> Result<Self> {
        let cache = Cache::read(&sources.cached());
        let mut found = BTreeMap::new();
        let mut missing = Vec::new();
        let wanted =
            CONTROL_PLANE.iter().chain(NODE.iter().filter(|_| real)).chain(HOLLOW.iter().filter(|_| hollow));
        for name in wanted {
            let elsewhere = || sources.path.iter().map(|dir| dir.join(name)).find(|path| fits(name, path));
            let assets = sources.assets.iter().map(|dir| dir.join(name)).find(|path| fits(name, path));
            match assets.or_else(|| cache.get(name)).or_else(elsewhere) {
                Some(path) => _ = found.insert(*name, path),
                None => missing.push(*name),
            }
        }
        if missing.is_empty() {
            return Ok(Self(found));
        }
        Err(SandboxError::Host(format!(
            "missing: {} ({}). Build them once with: make tools",
            missing.join(", "),
            cache.why_incomplete(&sources.cached())
        )))
    }

    /// Where `name` is.
    pub(crate) fn path(&self, name: &str) -> Result<&Path> {
        self.0.get(name).map(PathBuf::as_path).ok_or_else(|| SandboxError::Unknown {
            what: "program",
            name: name.to_owned(),
            known: self.0.keys().copied().collect::<Vec<_>>().join(", "),
        })
    }

    /// All of them.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&'static str, &Path)> {
        self.0.iter().map(|(name, path)| (*name, path.as_path()))
    }
}

struct Cache {
    dir: PathBuf,
    sizes: Option<BTreeMap<String, u64>>,
}

impl Cache {
    fn read(dir: &Path) -> Self {
        let parse = |text: String| {
            text.lines()
                .filter_map(|line| line.split_once(' '))
                .filter_map(|(size, name)| Some((name.to_owned(), size.parse().ok()?)))
                .collect()
        };
        Self { dir: dir.to_owned(), sizes: fs::read_to_string(dir.join(COMPLETE)).ok().map(parse) }
    }

    /// The program, if it is there in the size that it had when the build ended.
    fn get(&self, name: &str) -> Option<PathBuf> {
        let path = self.dir.join(name);
        let size = *self.sizes.as_ref()?.get(name)?;
        (is_program(&path) && fs::metadata(&path).ok()?.len() == size).then_some(path)
    }

    fn why_incomplete(&self, dir: &Path) -> String {
        let dir = dir.display();
        match &self.sizes {
            None if self.dir.exists() => format!("the build in {dir} did not finish"),
            None => format!("nothing in {dir}"),
            Some(_) => format!("{dir} is damaged"),
        }
    }
}

fn is_program(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
}

/// Whether a program found on the machine can stand in for ours: Kubernetes of the same minor version.
fn fits(name: &str, path: &Path) -> bool {
    if !is_program(path) {
        return false;
    }
    let arguments: &[&str] = if name == "kubectl" { &["version", "--client"] } else { &["--version"] };
    let said = Command::new(path).args(arguments).output().map(|out| out.stdout).unwrap_or_default();
    version_fits(name, &String::from_utf8_lossy(&said))
}

fn version_fits(name: &str, said: &str) -> bool {
    match name {
        "etcd" => said.contains("etcd Version: 3.5") || said.contains("etcd Version: 3.6"),
        "coredns" => said.contains("CoreDNS-1."),
        "kwok" => said.contains("v0.7.") || said.contains("v0.8."),
        _ => {
            let minor = KUBERNETES_VERSION.rsplit_once('.').map_or(KUBERNETES_VERSION, |(minor, _)| minor);
            said.contains(&format!("{minor}."))
        }
    }
}

#[cfg(test)]
mod tests;
