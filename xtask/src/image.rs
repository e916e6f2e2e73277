//! `cargo xtask image`: the container image around the static binary, and the list of what is in it.
//!
//! Nothing but files goes in and the same files make the same bytes: no container tool, no clock, no owner of a file.

mod binary;
mod command;
mod commit;
mod layout;
mod notices;
mod sbom;

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use liqo_sandbox::image::{Digest, ImageName};

use commit::Commit;
use sbom::{Linked, Product};

/// A cluster that pulls an image on a slow line waits for every megabyte.
const LARGEST: u64 = 40_000_000;

/// What to put where.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// The static binary, which `make build` makes
    #[arg(long, default_value = "target/release/liqo", value_name = "FILE")]
    binary: PathBuf,
    /// Where the archive and its list of components go
    #[arg(long, default_value = "target/image", value_name = "DIR")]
    output: PathBuf,
    /// The image's name without a tag, for example registry.example.com/team/liqo
    #[arg(long, default_value = layout::NAME, value_name = "REPOSITORY/IMAGE")]
    name: String,
    /// Seconds since 1970 that the image carries as its time, instead of the commit's
    #[arg(long, env = "SOURCE_DATE_EPOCH", value_name = "SECONDS")]
    source_date_epoch: Option<i64>,
    #[arg(long, env = "CARGO", default_value = "cargo", hide = true)]
    cargo: PathBuf,
}

/// Writes archive and list, and says what came out.
pub(crate) fn run(root: &Path, arguments: &Arguments) -> Result<()> {
    let binary = root.join(&arguments.binary);
    binary::must_be_static(&binary)?;
    let version = env!("CARGO_PKG_VERSION");
    let name = full_name(&arguments.name, version)?;
    let commit = Commit::look(root, arguments.source_date_epoch)?;
    let output = root.join(&arguments.output);
    fs::create_dir_all(&output).with_context(|| format!("cannot create {}", output.display()))?;
    let archive = output.join(format!("liqo-{version}.tar"));
    let list = output.join(format!("liqo-{version}.cdx.json"));

    let linked = Linked::look(root, &arguments.cargo)?;
    let licence = root.join("LICENSE");
    let notices = notices::read(&linked)?;
    let content = layout::Content { binary: &binary, licence: &licence, notices };
    let digest = layout::image(&name, version, &commit, content).write(&archive)?;
    let size = check_size(&archive)?;
    let product = Product {
        name: &arguments.name,
        version,
        image_digest: digest.as_ref(),
        binary_sha256: &binary::sha256(&binary)?,
        time: commit.time,
    };
    let document = sbom::document(&product, &linked);
    fs::write(&list, format!("{document:#}\n"))
        .with_context(|| format!("cannot write {}", list.display()))?;
    tell(root, &name, &digest, size, [&archive, &list]);
    Ok(())
}

/// The name that a pod's `image: NAME:VERSION` stands for.
fn full_name(name: &str, version: &str) -> Result<ImageName> {
    let last = name.rsplit('/').next().unwrap_or_default();
    ensure!(!last.contains([':', '@']), "--name {name} has a tag; the tag is the version, {version}");
    Ok(ImageName::complete(&format!("{name}:{version}"))?)
}

/// An image that is too large does not stay: nobody should ship it by mistake.
fn check_size(archive: &Path) -> Result<u64> {
    let size = fs::metadata(archive).with_context(|| format!("cannot read {}", archive.display()))?.len();
    if size > LARGEST {
        fs::remove_file(archive).with_context(|| format!("cannot remove {}", archive.display()))?;
    }
    ensure!(
        size <= LARGEST,
        "the image has {} compressed, more than {}",
        megabytes(size),
        megabytes(LARGEST)
    );
    Ok(size)
}

fn megabytes(bytes: u64) -> String {
    format!("{}.{} MB", bytes / 1_000_000, bytes % 1_000_000 / 100_000)
}

fn tell(root: &Path, name: &ImageName, digest: &Digest, size: u64, [archive, list]: [&Path; 2]) {
    let shown = |path: &Path| path.strip_prefix(root).unwrap_or(path).display().to_string();
    println!("image    {name}");
    println!("digest   {digest}");
    println!("size     {} of at most {}", megabytes(size), megabytes(LARGEST));
    println!("archive  {}", shown(archive));
    println!("sbom     {}", shown(list));
}

#[cfg(test)]
mod tests;
