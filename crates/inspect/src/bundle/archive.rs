//! Writing a bundle.

use std::io::Write;

use flate2::Compression;
use flate2::write::GzEncoder;
use tar::{Builder, EntryType, Header};

use super::Bundle;

/// The directory that everything unpacks into.
const DIRECTORY: &str = "liqo-bundle";
/// Files are for their owner's eyes, though they hold no secrets.
const MODE: u32 = 0o600;

/// Why a bundle could not be written.
#[derive(Debug, thiserror::Error)]
pub enum BundleError {
    /// The disk is full, or the like.
    #[error("cannot write the bundle: {0}")]
    Write(#[from] std::io::Error),
    /// The manifest could not be made.
    #[error("cannot write the manifest: {0}")]
    Manifest(#[from] serde_json::Error),
}

impl Bundle {
    /// Writes the archive: a compressed tar file whose first entry is the manifest.
    pub fn write(&self, out: impl Write) -> Result<(), BundleError> {
        let mut archive = Builder::new(GzEncoder::new(out, Compression::default()));
        let time = u64::try_from(self.manifest.created.as_second()).unwrap_or_default();
        let manifest = serde_json::to_string_pretty(&self.manifest)? + "\n";
        let files = self.files.iter().map(|file| (file.path.as_str(), file.text.as_str()));
        for (path, text) in std::iter::once(("manifest.json", manifest.as_str())).chain(files) {
            let mut header = Header::new_gnu();
            header.set_entry_type(EntryType::Regular);
            header.set_size(text.len() as u64);
            header.set_mode(MODE);
            header.set_mtime(time);
            archive.append_data(&mut header, format!("{DIRECTORY}/{path}"), text.as_bytes())?;
        }
        archive.into_inner()?.finish()?.flush()?;
        Ok(())
    }
}
