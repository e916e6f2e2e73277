//! Container images without a registry and without a container tool.
//!
//! An image here is a tar file with an OCI image layout in it, which `ctr images import` and `docker load` take:
//!
//! ```text
//! blobs/sha256/<digest>   each layer (a tar of its own, plain or gzipped), the configuration, the manifest
//! index.json              the manifest under its name
//! manifest.json           the same for docker
//! oci-layout              the layout's version
//! ```
//!
//! The same input makes the same bytes, on every machine and at any time: names are sorted, times are given, and
//! nothing of the files' owners is taken over.

use std::collections::BTreeMap;
use std::path::Path;

use jiff::Timestamp;
pub use oci_spec::image::Digest;

mod archive;
mod archived;
mod documents;
mod error;
mod layer;
mod name;

use archive::{Archive, Blob};
pub use archived::ArchivedImage;
use documents::Documents;
pub use error::ImageError;
pub use layer::Layer;
pub use name::ImageName;

/// The process that holds a pod's namespaces, see [`pause`].
pub const PAUSE_NAME: &str = "localhost/liqo/pause:1";
/// The server for demo and tests, see [`sandbox_app`].
pub const SANDBOX_APP_NAME: &str = "localhost/liqo/sandbox-app:1";
/// The clusters' DNS server, see [`coredns`].
pub const COREDNS_NAME: &str = "localhost/liqo/coredns:1";

/// The user that images by convention run as when they need no rights at all.
pub const NONROOT: u32 = 65532;

const PAUSE: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/pause"));
const SANDBOX_APP: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/sandbox-app"));

/// The static program in [`PAUSE_NAME`]: sleeps until SIGTERM or SIGINT and reaps orphans.
pub fn pause_program() -> &'static [u8] {
    PAUSE
}

/// The static program in [`SANDBOX_APP_NAME`].
pub fn sandbox_app_program() -> &'static [u8] {
    SANDBOX_APP
}

/// Writes the archive of [`PAUSE_NAME`].
pub fn pause(archive: &Path) -> Result<Digest, ImageError> {
    Image::new(PAUSE_NAME)
        .layer(Layer::new().file("/pause", PAUSE, 0o555))
        .entrypoint(["/pause"])
        .user(NONROOT, NONROOT)
        .write(archive)
}

/// Writes the archive of [`SANDBOX_APP_NAME`]. In its pods, `kubectl exec … -- sandbox-app get URL` works.
pub fn sandbox_app(archive: &Path) -> Result<Digest, ImageError> {
    Image::new(SANDBOX_APP_NAME)
        .layer(Layer::new().file("/bin/sandbox-app", SANDBOX_APP, 0o555))
        .entrypoint(["/bin/sandbox-app"])
        .env("PATH", "/bin")
        .user(NONROOT, NONROOT)
        .expose(8080, Protocol::Tcp)
        .write(archive)
}

/// Writes the archive of [`COREDNS_NAME`] around a static CoreDNS. It runs as root, for port 53.
pub fn coredns(program: &Path, archive: &Path) -> Result<Digest, ImageError> {
    Image::new(COREDNS_NAME)
        .layer(Layer::new().file_from("/coredns", program, 0o555))
        .entrypoint(["/coredns"])
        .expose(53, Protocol::Udp)
        .expose(53, Protocol::Tcp)
        .write(archive)
}

/// How layers are stored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Compression {
    /// As they are: the quickest to write and to import.
    #[default]
    None,
    /// With gzip at a level from 0 to 9, for archives that travel.
    Gzip(u32),
}

/// What speaks on a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// TCP.
    Tcp,
    /// UDP.
    Udp,
}

/// What an image consists of. Nothing is checked or read before [`Image::write`].
#[derive(Clone, Debug)]
pub struct Image {
    name: String,
    layers: Vec<Layer>,
    compression: Compression,
    created: Timestamp,
    entrypoint: Vec<String>,
    command: Vec<String>,
    env: BTreeMap<String, String>,
    labels: BTreeMap<String, String>,
    ports: Vec<String>,
    user: Option<(u32, u32)>,
    working_dir: Option<String>,
}

impl Image {
    /// An empty image under a full name with a tag, such as `localhost/liqo/pause:1`.
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            layers: Vec::new(),
            compression: Compression::default(),
            created: Timestamp::UNIX_EPOCH,
            entrypoint: Vec::new(),
            command: Vec::new(),
            env: BTreeMap::new(),
            labels: BTreeMap::new(),
            ports: Vec::new(),
            user: None,
            working_dir: None,
        }
    }

    /// Adds a layer on top.
    #[must_use]
    pub fn layer(mut self, layer: Layer) -> Self {
        self.layers.push(layer);
        self
    }

    /// How all layers are stored.
    #[must_use]
    pub fn compression(mut self, compression: Compression) -> Self {
        self.compression = compression;
        self
    }

    /// The time that everything in the image carries; 1970 unless set, so that equal images have equal digests.
    #[must_use]
    pub fn created(mut self, time: Timestamp) -> Self {
        self.created = time;
        self
    }

    /// The program and its first arguments, which a pod's `command` replaces.
    #[must_use]
    pub fn entrypoint<S: Into<String>>(mut self, words: impl IntoIterator<Item = S>) -> Self {
        self.entrypoint = words.into_iter().map(Into::into).collect();
        self
    }

    /// Further arguments, which a pod's `args` replace.
    #[must_use]
    pub fn command<S: Into<String>>(mut self, words: impl IntoIterator<Item = S>) -> Self {
        self.command = words.into_iter().map(Into::into).collect();
        self
    }

    /// Sets an environment variable.
    #[must_use]
    pub fn env(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.env.insert(name.into(), value.into());
        self
    }

    /// Sets a label.
    #[must_use]
    pub fn label(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.labels.insert(name.into(), value.into());
        self
    }

    /// Says which port the program serves; for the reader, it opens nothing.
    #[must_use]
    pub fn expose(mut self, port: u16, protocol: Protocol) -> Self {
        let protocol = if protocol == Protocol::Tcp { "tcp" } else { "udp" };
        self.ports.push(format!("{port}/{protocol}"));
        self
    }

    /// The user and group to run as; root unless set.
    #[must_use]
    pub fn user(mut self, user: u32, group: u32) -> Self {
        self.user = Some((user, group));
        self
    }

    /// The directory to run in.
    #[must_use]
    pub fn working_dir(mut self, path: impl Into<String>) -> Self {
        self.working_dir = Some(path.into());
        self
    }

    /// Writes the archive and returns the digest of the image's manifest.
    ///
    /// The file appears whole or not at all. One that is there already is replaced.
    pub fn write(&self, path: &Path) -> Result<Digest, ImageError> {
        let name = ImageName::parse(&self.name)?;
        let time = self.check(&name)?;
        let layers = self.layers.iter().map(Layer::check).collect::<Result<Vec<_>, _>>()?;
        let mut archive = Archive::create(path, time)?;
        let mut blobs = Vec::with_capacity(layers.len());
        for layer in &layers {
            blobs.push(archive.layer(layer, self.compression)?);
        }
        let documents = Documents { image: self, name: &name, layers: &blobs };
        let config = archive.document(&documents.config()?)?;
        let manifest = archive.document(&documents.manifest(&config)?)?;
        archive.file("index.json", &documents.index(&manifest)?)?;
        archive.file("manifest.json", &documents.docker_manifest(&config)?)?;
        archive.file("oci-layout", &documents.layout()?)?;
        archive.finish()?;
        Ok(manifest.digest)
    }

    /// Checks what is not a file, and returns the time for the tar headers.
    fn check(&self, name: &ImageName) -> Result<u64, ImageError> {
        let invalid = |why: String| Err(ImageError::Invalid { name: name.to_string(), why });
        if self.layers.is_empty() {
            return invalid("it has no layer".into());
        }
        if let Compression::Gzip(level) = self.compression
            && level > 9
        {
            return invalid(format!("gzip has no level {level}, only 0 to 9"));
        }
        if let Some(variable) = self.env.keys().find(|key| key.is_empty() || key.contains('=')) {
            return invalid(format!("{variable:?} is no name for an environment variable"));
        }
        if let Some(path) = self.working_dir.as_deref().filter(|path| !path.starts_with('/')) {
            return invalid(format!("the working directory {path:?} does not start with /"));
        }
        let words =
            self.entrypoint.iter().chain(&self.command).chain(self.env.values()).chain(self.env.keys());
        if let Some(word) = words.chain(&self.working_dir).find(|word| word.contains('\0')) {
            return invalid(format!("{word:?} contains a zero byte, which no program can be given"));
        }
        match u64::try_from(self.created.as_second()) {
            Ok(time) => Ok(time),
            Err(_) => invalid(format!("it cannot have been made before 1970, on {}", self.created)),
        }
    }
}

#[cfg(test)]
mod tests;
