//! Where a chart's files come from: this program, a directory or an archive.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Component, Path};

use flate2::read::GzDecoder;

use super::{ChartFiles, METADATA};
use crate::error::ChartError;

/// The largest file of a chart, as in Helm.
const MAX_FILE: u64 = 5 << 20;

/// All of a chart. Kubernetes itself takes no more than about 1 MiB of it.
const MAX_TOTAL: u64 = 20 << 20;

/// Files of a chart, or directories inside each other, so that a wrong path such as `/` is soon found to be wrong.
const MAX_FILES: usize = 2_000;
const MAX_DEPTH: usize = 20;

/// What some editors put before a text.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

static EMBEDDED: &[(&str, &[u8])] = include!(concat!(env!("OUT_DIR"), "/chart.rs"));

pub(super) fn embedded() -> ChartFiles {
    EMBEDDED.iter().map(|(path, content)| ((*path).to_owned(), (*content).into())).collect()
}

pub(super) fn open(path: &Path) -> Result<ChartFiles, ChartError> {
    let failed = |reason: String| ChartError::Open { path: path.to_owned(), reason };
    let kind = fs::metadata(path).map_err(|error| failed(error.to_string()))?;
    let mut collected = Collected::default();
    if kind.is_dir() {
        if !path.join(METADATA).is_file() {
            return Err(failed(format!("there is no {METADATA} in it")));
        }
        collected.directory(path, "", 0).map_err(failed)?;
    } else {
        collected.archive(path).map_err(failed)?;
        if !collected.files.contains_key(METADATA) {
            return Err(failed(format!("there is no {METADATA} in the archive's directory")));
        }
    }
    Ok(collected.files)
}

#[derive(Default)]
struct Collected {
    files: ChartFiles,
    total: u64,
}

impl Collected {
    fn directory(&mut self, directory: &Path, prefix: &str, depth: usize) -> Result<(), String> {
        if depth > MAX_DEPTH {
            return Err(format!("{} is more than {MAX_DEPTH} directories deep", directory.display()));
        }
        let failed = |path: &Path, error: io::Error| format!("{}: {error}", path.display());
        for entry in fs::read_dir(directory).map_err(|error| failed(directory, error))? {
            let path = entry.map_err(|error| failed(directory, error))?.path();
            let Some(name) = path.file_name().and_then(|name| name.to_str()) else {
                return Err(format!("{} has a name that is not UTF-8", path.display()));
            };
            let inner = format!("{prefix}{name}");
            // Symbolic links are followed, as Helm does.
            let kind = fs::metadata(&path).map_err(|error| failed(&path, error))?;
            if kind.is_dir() {
                self.directory(&path, &format!("{inner}/"), depth + 1)?;
            } else if kind.is_file() {
                let file = File::open(&path).map_err(|error| failed(&path, error))?;
                self.add(inner, file)?;
            }
        }
        Ok(())
    }

    /// An archive has one directory, the chart's.
    fn archive(&mut self, path: &Path) -> Result<(), String> {
        let no_archive = |error: io::Error| format!("it is no directory and no archive of a chart: {error}");
        let file = File::open(path).map_err(|error| error.to_string())?;
        // What unpacks to more than all files may have together is not read to its end.
        let mut archive = tar::Archive::new(GzDecoder::new(file).take(2 * MAX_TOTAL));
        for entry in archive.entries().map_err(no_archive)? {
            let entry = entry.map_err(no_archive)?;
            if !entry.header().entry_type().is_file() {
                continue;
            }
            let path = entry.path().map_err(no_archive)?.into_owned();
            if let Some(inner) = inner_path(&path)? {
                self.add(inner, entry)?;
            }
        }
        Ok(())
    }

    fn add(&mut self, path: String, content: impl Read) -> Result<(), String> {
        let mut bytes = Vec::new();
        content.take(MAX_FILE + 1).read_to_end(&mut bytes).map_err(|error| format!("{path}: {error}"))?;
        let size = bytes.len() as u64;
        self.total += size;
        if size > MAX_FILE {
            return Err(format!("{path} is larger than {} MiB", MAX_FILE >> 20));
        }
        if self.total > MAX_TOTAL || self.files.len() >= MAX_FILES {
            return Err(format!("it has more than {} MiB or {MAX_FILES} files", MAX_TOTAL >> 20));
        }
        let content = bytes.strip_prefix(BYTE_ORDER_MARK).unwrap_or(&bytes);
        self.files.insert(path, content.into());
        Ok(())
    }
}

/// The path inside the chart's directory; none for what is beside it.
fn inner_path(path: &Path) -> Result<Option<String>, String> {
    let mut names = Vec::new();
    for component in path.components() {
        match component {
            Component::Normal(name) => {
                names.push(name.to_str().ok_or_else(|| format!("{} is not UTF-8", path.display()))?);
            }
            Component::CurDir => {}
            _ => return Err(format!("{} leads out of the archive", path.display())),
        }
    }
    Ok(names.split_first().filter(|(_, inner)| !inner.is_empty()).map(|(_, inner)| inner.join("/")))
}
