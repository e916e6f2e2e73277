//! The tar file around everything, written front to back in one pass.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, BufWriter, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::str::FromStr;

use flate2::GzBuilder;
use oci_spec::image::Digest;
use sha2::{Digest as _, Sha256};

use super::layer::CheckedLayer;
use super::{Compression, ImageError};

/// Everything in a tar starts at a multiple of this.
const BLOCK: u64 = 512;
const BUFFER: usize = 256 * 1024;

/// Something stored under its digest.
#[derive(Clone, Debug)]
pub(super) struct Blob {
    pub(super) digest: Digest,
    pub(super) size: u64,
    /// The digest of what it is unpacked; differs when it is compressed.
    pub(super) unpacked: Digest,
}

/// An archive in the making, which takes its name only when it is finished.
#[derive(Debug)]
pub(super) struct Archive {
    path: PathBuf,
    partial: Partial,
    out: BufWriter<File>,
    time: u64,
    stored: BTreeSet<String>,
}

/// A file that goes away again unless it is renamed.
#[derive(Debug)]
struct Partial(PathBuf);

impl Drop for Partial {
    fn drop(&mut self) {
        // Renamed, and then there is nothing to remove, or given up, and then there is nothing more to do.
        let _ = fs::remove_file(&self.0);
    }
}

impl Archive {
    pub(super) fn create(path: &Path, time: u64) -> Result<Self, ImageError> {
        let failed = |source| ImageError::Archive { path: path.to_owned(), source };
        let name = path.file_name().ok_or_else(|| failed(io::ErrorKind::InvalidFilename.into()))?;
        let mut partial = name.to_owned();
        partial.push(format!(".{}.partial", std::process::id()));
        let partial = Partial(path.with_file_name(partial));
        let file = File::create(&partial.0).map_err(failed)?;
        let out = BufWriter::with_capacity(BUFFER, file);
        let mut archive = Self { path: path.to_owned(), partial, out, time, stored: BTreeSet::new() };
        archive.directories().map_err(failed)?;
        Ok(archive)
    }

    fn directories(&mut self) -> io::Result<()> {
        for name in ["blobs/", "blobs/sha256/"] {
            let header = self.header(name, 0, tar::EntryType::Directory)?;
            self.out.write_all(header.as_bytes())?;
        }
        Ok(())
    }

    /// Adds a layer as a blob.
    pub(super) fn layer(
        &mut self,
        layer: &CheckedLayer<'_>,
        compression: Compression,
    ) -> Result<Blob, ImageError> {
        for path in layer.sources() {
            check_source(path).map_err(|source| ImageError::Source { path: path.to_owned(), source })?;
        }
        let time = self.time;
        self.blob(|out| match compression {
            Compression::None => layer.write(out, time).map(|()| None),
            Compression::Gzip(level) => {
                // Neither time nor file name: both would change the digest of equal content.
                let gzip = GzBuilder::new().write(out, flate2::Compression::new(level));
                let mut unpacked = Hashing::new(gzip);
                layer.write(&mut unpacked, time)?;
                let (digest, _, gzip) = unpacked.finish()?;
                gzip.finish()?;
                Ok(Some(digest))
            }
        })
    }

    /// Adds a JSON document as a blob.
    pub(super) fn document(&mut self, json: &[u8]) -> Result<Blob, ImageError> {
        self.blob(|out| out.write_all(json).map(|()| None))
    }

    /// Adds a file that is found by its name.
    pub(super) fn file(&mut self, name: &str, content: &[u8]) -> Result<(), ImageError> {
        let written = self.try_file(name, content);
        written.map_err(|source| self.failed(source))
    }

    /// Ends the archive and gives it its name.
    pub(super) fn finish(mut self) -> Result<(), ImageError> {
        let finished = self.try_finish();
        finished.map_err(|source| self.failed(source))
    }

    fn blob(
        &mut self,
        write: impl FnOnce(&mut dyn Write) -> io::Result<Option<Digest>>,
    ) -> Result<Blob, ImageError> {
        let written = self.try_blob(write);
        written.map_err(|source| self.failed(source))
    }

    fn failed(&self, source: io::Error) -> ImageError {
        ImageError::Archive { path: self.path.clone(), source }
    }

    fn try_file(&mut self, name: &str, content: &[u8]) -> io::Result<()> {
        let header = self.header(name, content.len() as u64, tar::EntryType::Regular)?;
        self.out.write_all(header.as_bytes())?;
        self.out.write_all(content)?;
        self.pad(content.len() as u64)
    }

    fn try_finish(&mut self) -> io::Result<()> {
        self.out.write_all(&[0; 2 * BLOCK as usize])?;
        // A blob that was there already may have left its bytes behind the end.
        let end = self.out.stream_position()?;
        self.out.flush()?;
        self.out.get_ref().set_len(end)?;
        fs::rename(&self.partial.0, &self.path)
    }

    /// Streams a blob, whose name and size are known only afterwards: the header's place is kept free till then.
    fn try_blob(
        &mut self,
        write: impl FnOnce(&mut dyn Write) -> io::Result<Option<Digest>>,
    ) -> io::Result<Blob> {
        let start = self.out.stream_position()?;
        self.out.write_all(&[0; BLOCK as usize])?;
        let mut hashing = Hashing::new(&mut self.out);
        let unpacked = write(&mut hashing)?;
        let (digest, size, _) = hashing.finish()?;
        if self.stored.insert(digest.to_string()) {
            self.pad(size)?;
            let end = self.out.stream_position()?;
            let name = format!("blobs/sha256/{}", digest.digest());
            let header = self.header(&name, size, tar::EntryType::Regular)?;
            self.out.seek(SeekFrom::Start(start))?;
            self.out.write_all(header.as_bytes())?;
            self.out.seek(SeekFrom::Start(end))?;
        } else {
            self.out.seek(SeekFrom::Start(start))?;
        }
        Ok(Blob { unpacked: unpacked.unwrap_or_else(|| digest.clone()), digest, size })
    }

    fn header(&self, name: &str, size: u64, kind: tar::EntryType) -> io::Result<tar::Header> {
        let mut header = tar::Header::new_ustar();
        header.set_path(name)?;
        header.set_entry_type(kind);
        header.set_size(size);
        header.set_mtime(self.time);
        header.set_mode(if kind.is_dir() { 0o755 } else { 0o644 });
        header.set_uid(0);
        header.set_gid(0);
        header.set_cksum();
        Ok(header)
    }

    fn pad(&mut self, size: u64) -> io::Result<()> {
        let missing = size.next_multiple_of(BLOCK) - size;
        io::copy(&mut io::Read::take(io::repeat(0), missing), &mut self.out).map(drop)
    }
}

/// Found before anything is written, so that the message names the file and not the archive.
fn check_source(path: &Path) -> io::Result<()> {
    let file = File::open(path)?;
    if file.metadata()?.is_file() { Ok(()) } else { Err(io::Error::other("it is not a regular file")) }
}

/// Hashes and counts what passes through.
struct Hashing<W> {
    inner: W,
    hash: Sha256,
    size: u64,
}

impl<W: Write> Hashing<W> {
    fn new(inner: W) -> Self {
        Self { inner, hash: Sha256::new(), size: 0 }
    }

    fn finish(self) -> io::Result<(Digest, u64, W)> {
        let hex: String = self.hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
        let digest = Digest::from_str(&format!("sha256:{hex}")).map_err(io::Error::other)?;
        Ok((digest, self.size, self.inner))
    }
}

impl<W: Write> Write for Hashing<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let count = self.inner.write(bytes)?;
        self.hash.update(&bytes[..count]);
        self.size += count as u64;
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}
