//! Bringing the image to the nodes of a sandbox, which have no registry to ask.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use liqo_install::Prepared;
use liqo_install::detect::Distribution;
use liqo_install::finding::Finding;
use liqo_sandbox::{ClusterPlan, Sandbox};

use super::Steps;

/// The heading of docs/troubleshooting.md about it.
const DOCS: &str = "the-image-cannot-be-pulled";
const NAME: &str = "the sandbox's nodes can have the image";

/// A cluster of a sandbox on this machine.
pub(crate) struct Place {
    sandbox: Sandbox,
    plan: ClusterPlan,
}

impl Place {
    /// The one whose API server has this address.
    pub(crate) fn find(sandboxes: Vec<Sandbox>, server: &str) -> Option<Self> {
        sandboxes.into_iter().find_map(|sandbox| {
            let plan = sandbox.clusters().find(|cluster| cluster.plan().api_url() == server)?.plan().clone();
            Some(Self { sandbox, plan })
        })
    }

    pub(crate) fn plan(&self) -> &ClusterPlan {
        &self.plan
    }

    pub(crate) fn sandbox(&self) -> &str {
        self.sandbox.place().name()
    }
}

/// What is to be done about the image.
pub(super) enum Image<'a> {
    /// Nothing: it is not a sandbox, or nobody there could run it.
    Elsewhere,
    /// The nodes have it, and there is no archive to compare with.
    There(String),
    /// This archive has it.
    Archive { place: &'a Place, archive: PathBuf, image: String },
    /// Nobody has it.
    Missing { image: String, looked: Vec<PathBuf>, given: bool },
    /// The sandbox cannot be looked at.
    Unseen(String),
}

/// Decides what to do.
pub(super) fn plan<'a>(given: Option<&Path>, place: Option<&'a Place>, prepared: &Prepared) -> Image<'a> {
    let in_sandbox =
        prepared.outlook.distribution.as_ref().is_some_and(|found| found.value == Distribution::Sandbox);
    let (true, Some(image)) = (in_sandbox, prepared.image()) else { return Image::Elsewhere };
    let Some(place) = place else { return Image::Unseen(image) };
    if place.plan.nodes().is_empty() {
        return Image::Elsewhere;
    }
    let looked = candidates(given, &prepared.version);
    if let Some(archive) = looked.iter().find(|path| path.is_file()) {
        return Image::Archive { place, archive: archive.clone(), image };
    }
    let there = place.sandbox.cluster(place.plan.name()).and_then(|cluster| cluster.has_image(&image));
    match there {
        Ok(true) if given.is_none() => Image::There(image),
        _ => Image::Missing { image, looked, given: given.is_some() },
    }
}

/// Where the archive may be: as given, else where `make build` puts it, seen from this program.
fn candidates(given: Option<&Path>, version: &str) -> Vec<PathBuf> {
    if let Some(path) = given {
        return vec![path.to_owned()];
    }
    let name = format!("liqo-{version}.tar");
    let program = std::env::current_exe().unwrap_or_default();
    let directory = program.parent().unwrap_or(Path::new("."));
    vec![directory.join("../image").join(&name), directory.join(&name)]
}

impl Image<'_> {
    /// What there is to say before anything is changed.
    pub(super) fn finding(&self) -> Option<Finding> {
        match self {
            Image::Elsewhere => None,
            Image::There(image) => Some(Finding::ok(NAME, format!("{image} is there"))),
            Image::Archive { archive, image, .. } => Some(Finding::ok(NAME, format!("{image} from {}", archive.display()))),
            Image::Missing { image, looked, given } => {
                let looked: Vec<String> = looked.iter().map(|path| path.display().to_string()).collect();
                let hint = if *given {
                    "check the path of --image-archive; without it, the one that make image makes is taken".to_owned()
                } else {
                    "make it with: make image\nor name an archive with --image-archive FILE".to_owned()
                };
                Some(
                    Finding::failed(NAME, format!("{image} is not on the nodes, and there is no archive {}", looked.join(" or ")))
                        .hint(hint)
                        .docs(DOCS),
                )
            }
            Image::Unseen(image) => Some(
                Finding::warning(NAME, format!("cannot see whether they have {image}: no running sandbox of this machine is visible"))
                    .hint("run this as root on the machine of the sandbox, or load it there: liqoctl sandbox load-image CLUSTER FILE")
                    .docs(DOCS),
            ),
        }
    }

    /// Loads it where it is missing or another; whether nodes that may run it already got another one.
    pub(super) async fn load(self, steps: &Steps) -> Result<bool> {
        let Image::Archive { place, archive, image } = self else { return Ok(false) };
        steps.begin(&format!("loading {} into the nodes of {}", archive.display(), place.plan.name()));
        let (sandbox, name) = (place.sandbox.clone(), place.plan.name().to_owned());
        let (wanted, path) = (image.clone(), archive.clone());
        let loading = tokio::task::spawn_blocking(move || {
            let cluster = sandbox.cluster(&name)?;
            let before = cluster.has_image(&wanted)?;
            let loaded = cluster.load_image_where_missing(&path)?.len();
            Ok::<_, liqo_sandbox::SandboxError>((before, loaded))
        });
        let (before, loaded) = loading.await?.with_context(|| {
            format!("cannot load the image {}; nothing else was changed", archive.display())
        })?;
        match loaded {
            0 => steps.step(&format!("the nodes have {image}")),
            count => steps.step(&format!("{image} loaded into {count} nodes")),
        }
        Ok(before && loaded > 0)
    }
}
