//! Reading back which image an archive holds.

use std::fs::File;
use std::io;
use std::path::Path;
use std::str::FromStr;

use oci_spec::image::{Digest, ImageIndex};

use super::documents::ANNOTATION_CONTAINERD_NAME;
use super::{ImageError, ImageName};

/// The image that an archive holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArchivedImage {
    /// Under this name a node has it after the import.
    pub name: ImageName,
    /// The digest of its manifest.
    pub digest: Digest,
}

impl ArchivedImage {
    /// Reads name and digest from an OCI archive with one image. The layers are not looked at.
    pub fn read(archive: &Path) -> Result<Self, ImageError> {
        let unreadable = |why: String| ImageError::Unreadable { path: archive.to_owned(), why };
        let index = index(archive).map_err(|error| unreadable(error.to_string()))?;
        let [manifest] = index.manifests().as_slice() else {
            return Err(unreadable(format!("it holds {} images, not one", index.manifests().len())));
        };
        let name = manifest.annotations().as_ref().and_then(|all| all.get(ANNOTATION_CONTAINERD_NAME));
        let name = name.ok_or_else(|| unreadable("the image in it has no name".into()))?;
        let digest = Digest::from_str(manifest.digest().as_ref());
        Ok(Self {
            name: ImageName::parse(name)?,
            digest: digest.map_err(|error| unreadable(error.to_string()))?,
        })
    }
}

fn index(archive: &Path) -> io::Result<ImageIndex> {
    let mut tar = tar::Archive::new(File::open(archive)?);
    for entry in tar.entries_with_seek()? {
        let entry = entry?;
        if entry.path_bytes().as_ref() == b"index.json" {
            return Ok(serde_json::from_reader(entry)?);
        }
    }
    Err(io::Error::new(io::ErrorKind::InvalidData, "there is no index.json in it"))
}

#[cfg(test)]
mod tests;
