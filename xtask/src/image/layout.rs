//! What is in the image, and how it runs.

use std::path::Path;

use liqo_sandbox::image::{Compression, Image, ImageName, Layer, NONROOT, Protocol};

use super::commit::Commit;

/// What pods call the image, before the colon.
pub(super) const NAME: &str = "liqo";

/// The smallest archive; it takes a second more than the quickest.
const COMPRESSION: Compression = Compression::Gzip(9);
const METRICS_PORT: u16 = 8080;
const PROBES_PORT: u16 = 8081;

const DESCRIPTION: &str =
    "Lets Kubernetes clusters lend each other capacity: manager, gateway, fabric and broker";
const LICENCE: &str = "Apache-2.0";

/// What goes into it.
#[derive(Debug)]
pub(super) struct Content<'a> {
    /// The static program.
    pub(super) binary: &'a Path,
    /// Our own licence.
    pub(super) licence: &'a Path,
    /// The licences of what is linked into the program.
    pub(super) notices: String,
}

/// The image around one static binary. Everything belongs to root and nothing can be written, so that the root file
/// system can be mounted read-only and a process that was taken over can change nothing.
pub(super) fn image(name: &ImageName, version: &str, commit: &Commit, content: Content<'_>) -> Image {
    // Some libraries ask for the name of the user they run as.
    let passwd =
        format!("root:x:0:0:root:/:/sbin/nologin\nliqo:x:{NONROOT}:{NONROOT}:liqo:/:/sbin/nologin\n");
    let group = format!("root:x:0:\nliqo:x:{NONROOT}:\n");
    let layer = Layer::new()
        .file_from("/liqo", content.binary, 0o555)
        .symlink("/usr/bin/liqo", "/liqo")
        .file("/etc/passwd", passwd.into_bytes(), 0o444)
        .file("/etc/group", group.into_bytes(), 0o444)
        .file_from("/licenses/LICENSE", content.licence, 0o444)
        .file("/licenses/THIRD-PARTY.txt", content.notices.into_bytes(), 0o444);
    let image = Image::new(name.to_string())
        .layer(layer)
        .compression(COMPRESSION)
        .created(commit.time)
        .entrypoint(["/liqo"])
        .user(NONROOT, NONROOT)
        .expose(METRICS_PORT, Protocol::Tcp)
        .expose(PROBES_PORT, Protocol::Tcp);
    labels(version, commit)
        .into_iter()
        .fold(image, |image, (key, value)| image.label(format!("org.opencontainers.image.{key}"), value))
}

fn labels(version: &str, commit: &Commit) -> Vec<(&'static str, String)> {
    let mut labels = vec![
        ("title", NAME.to_owned()),
        ("description", DESCRIPTION.to_owned()),
        ("version", commit.version(version)),
        ("created", commit.time.to_string()),
        ("licenses", LICENCE.to_owned()),
    ];
    labels.extend(commit.revision().map(|revision| ("revision", revision)));
    labels
}

#[cfg(test)]
mod tests;
