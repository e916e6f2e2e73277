//! Which crates are linked into the program, from what cargo says.
//!
//! `cargo tree` knows exactly which crates the chosen features bring in (`cargo metadata` adds those that some feature
//! could bring in); `cargo metadata` has their licences; `Cargo.lock` has their checksums.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};
use serde::Deserialize;

use crate::image::command;
use crate::image::layout::NAME;

/// What `tools/build` builds together: the features that one of them asks of a crate, the others get too.
const BUILT_TOGETHER: [&str; 3] = [NAME, "liqoctl", "xtask"];

/// The crates in the program.
#[derive(Debug)]
pub(in crate::image) struct Linked {
    /// In the order of names and versions.
    pub(super) packages: Vec<Package>,
    /// The version of Rust that builds it.
    pub(super) rust_version: String,
    root: usize,
    edges: BTreeMap<usize, BTreeSet<usize>>,
}

/// A crate in one version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::image) struct Package {
    pub(in crate::image) name: String,
    pub(in crate::image) version: String,
    pub(super) description: Option<String>,
    /// As SPDX writes it.
    pub(in crate::image) licence: Option<String>,
    /// Where its source is on this machine.
    pub(in crate::image) directory: PathBuf,
    pub(super) repository: Option<String>,
    /// SHA-256 of the file that the registry has.
    pub(super) checksum: Option<String>,
    from_registry: bool,
}

impl Package {
    /// Whether it is a part of this repository.
    pub(super) fn is_ours(&self) -> bool {
        !self.from_registry
    }

    /// Where everyone gets it; ours are in no registry.
    pub(super) fn purl(&self) -> Option<String> {
        // Build metadata is the one part of a version that a URL would read otherwise.
        self.from_registry.then(|| format!("pkg:cargo/{}@{}", self.name, self.version.replace('+', "%2B")))
    }

    /// How the document refers to it.
    pub(super) fn reference(&self) -> String {
        self.purl().unwrap_or_else(|| format!("{}@{}", self.name, self.version))
    }
}

/// Name and version: no two crates of a program have both in common.
type Key = (String, String);

impl Linked {
    /// Asks cargo.
    pub(in crate::image) fn look(root: &Path, cargo: &Path) -> Result<Self> {
        let target = target();
        let run = |arguments: &[&str]| command::output(Command::new(cargo).current_dir(root).args(arguments));
        let mut tree = vec!["tree", "--locked", "--target", &target, "--edges", "normal,no-proc-macro"];
        tree.extend(["--prefix", "depth", "--format", "{p}"]);
        tree.extend(BUILT_TOGETHER.iter().flat_map(|package| ["--package", package]));
        let metadata = ["metadata", "--format-version", "1", "--locked", "--filter-platform", &target];
        let lock = std::fs::read_to_string(root.join("Cargo.lock")).context("cannot read Cargo.lock")?;
        let rust = command::output(Command::new("rustc").current_dir(root).arg("--version"))?;
        let rust = rust.split_whitespace().nth(1).context("rustc did not tell its version")?;
        Self::from_texts(&run(&tree)?, &run(&metadata)?, &lock, rust)
    }

    /// Puts together what cargo said.
    pub(super) fn from_texts(tree: &str, metadata: &str, lock: &str, rust: &str) -> Result<Self> {
        let edges = edges(tree)?;
        let start = edges.keys().find(|(name, _)| name == NAME).cloned();
        let start = start.with_context(|| format!("cargo tree said nothing about {NAME}"))?;
        let reachable: Vec<Key> = reachable(&edges, &start).into_iter().collect();
        let known = details(metadata, &checksums(lock))?;
        let packages = reachable.iter().map(|(name, version)| {
            let package = known.get(&(name.clone(), version.clone()));
            package.cloned().with_context(|| format!("cargo metadata said nothing about {name} {version}"))
        });
        let packages = packages.collect::<Result<Vec<_>>>()?;
        let index = |key: &Key| reachable.binary_search(key).ok();
        let edges = reachable.iter().enumerate().map(|(number, key)| {
            (number, edges.get(key).into_iter().flatten().filter_map(index).collect::<BTreeSet<_>>())
        });
        let edges = edges.collect();
        let root = index(&start).context("a crate is reachable from itself")?;
        Ok(Self { packages, rust_version: rust.to_owned(), root, edges })
    }

    /// Those that are not a part of this repository.
    pub(in crate::image) fn others(&self) -> impl Iterator<Item = &Package> {
        self.packages.iter().filter(|package| !package.is_ours())
    }

    /// The program itself.
    pub(super) fn root(&self) -> &Package {
        &self.packages[self.root]
    }

    /// What a crate uses.
    pub(super) fn dependencies_of<'a>(&'a self, package: &Package) -> impl Iterator<Item = &'a Package> {
        let number = self.packages.iter().position(|one| one == package);
        let others = number.and_then(|number| self.edges.get(&number));
        others.into_iter().flatten().map(|&other| &self.packages[other])
    }
}

/// The target that the image's program is built for.
fn target() -> String {
    format!("{}-unknown-linux-musl", std::env::consts::ARCH)
}

/// Who uses whom, from the depth at the start of each line: `2serde v1.0.229 (*)`.
///
/// A crate's own dependencies are listed where it comes first; there may be several roots.
fn edges(tree: &str) -> Result<BTreeMap<Key, BTreeSet<Key>>> {
    let mut edges: BTreeMap<Key, BTreeSet<Key>> = BTreeMap::new();
    let mut path: Vec<Key> = Vec::new();
    for line in tree.lines().filter(|line| !line.is_empty()) {
        let unexpected = || format!("cargo tree printed an unexpected line: {line}");
        let name_at = line.find(|c: char| !c.is_ascii_digit()).with_context(unexpected)?;
        let depth: usize = line[..name_at].parse().with_context(unexpected)?;
        let mut words = line[name_at..].split_whitespace();
        let name = words.next().with_context(unexpected)?;
        let version = words.next().and_then(|word| word.strip_prefix('v')).with_context(unexpected)?;
        let key = (name.to_owned(), version.to_owned());
        path.truncate(depth);
        if let Some(user) = path.last() {
            edges.entry(user.clone()).or_default().insert(key.clone());
        }
        edges.entry(key.clone()).or_default();
        path.push(key);
    }
    Ok(edges)
}

fn reachable(edges: &BTreeMap<Key, BTreeSet<Key>>, start: &Key) -> BTreeSet<Key> {
    let mut found = BTreeSet::from([start.clone()]);
    let mut open = vec![start.clone()];
    while let Some(key) = open.pop() {
        for next in edges.get(&key).into_iter().flatten() {
            if found.insert(next.clone()) {
                open.push(next.clone());
            }
        }
    }
    found
}

#[derive(Deserialize)]
struct Metadata {
    packages: Vec<Described>,
}

#[derive(Deserialize)]
struct Described {
    name: String,
    version: String,
    description: Option<String>,
    license: Option<String>,
    repository: Option<String>,
    source: Option<String>,
    manifest_path: PathBuf,
}

fn details(metadata: &str, checksums: &BTreeMap<Key, String>) -> Result<BTreeMap<Key, Package>> {
    let metadata: Metadata =
        serde_json::from_str(metadata).context("cargo metadata printed something else")?;
    let packages = metadata.packages.into_iter().map(|described| {
        let key = (described.name, described.version);
        let package = Package {
            name: key.0.clone(),
            version: key.1.clone(),
            description: described.description,
            // The way it was written before SPDX expressions came.
            licence: described.license.map(|text| text.replace(" / ", "/").replace('/', " OR ")),
            repository: described.repository,
            directory: described.manifest_path.parent().unwrap_or(Path::new("")).to_owned(),
            checksum: checksums.get(&key).cloned(),
            from_registry: described.source.is_some(),
        };
        (key, package)
    });
    Ok(packages.collect())
}

/// The checksums in a lock file, whose form cargo alone decides: one `key = "value"` per line.
fn checksums(lock: &str) -> BTreeMap<Key, String> {
    let value = |block: &str, key: &str| {
        let line = block.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(" = "))?;
        Some(line.trim_matches('"').to_owned())
    };
    let blocks = lock.split("[[package]]");
    let of_block =
        |block| Some(((value(block, "name")?, value(block, "version")?), value(block, "checksum")?));
    blocks.filter_map(of_block).collect()
}
