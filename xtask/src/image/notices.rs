//! The licence texts of everything that is linked into the program: most of them ask to be handed on with it.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

use super::sbom::Linked;

/// How files with licence texts and notices are called, whatever follows and in whatever case.
const NAMES: [&str; 6] = ["license", "licence", "unlicense", "copying", "copyright", "notice"];
const RULE: &str = "════════════════════════════════════════════════════════════════════════════════";

/// What one crate hands on.
#[derive(Debug)]
struct Notice {
    /// Name, version and licence.
    of: String,
    texts: Vec<String>,
}

/// One text for the whole program.
pub(super) fn read(linked: &Linked) -> Result<String> {
    let notices = linked.others().map(|package| {
        let of =
            format!("{} {} ({})", package.name, package.version, package.licence.as_deref().unwrap_or("?"));
        Ok(Notice { of, texts: texts_in(&package.directory)? })
    });
    Ok(text(&notices.collect::<Result<Vec<_>>>()?))
}

/// The texts in a crate's directory, in the order of their file names.
fn texts_in(directory: &Path) -> Result<Vec<String>> {
    let entries = fs::read_dir(directory).with_context(|| format!("cannot read {}", directory.display()))?;
    let mut files = Vec::new();
    for entry in entries {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().to_lowercase();
        if NAMES.iter().any(|start| name.starts_with(start)) && path.is_file() {
            files.push(path);
        }
    }
    files.sort();
    let read =
        |path: std::path::PathBuf| fs::read(&path).with_context(|| format!("cannot read {}", path.display()));
    let lossless = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).replace("\r\n", "\n");
    files.into_iter().map(|path| read(path).map(lossless)).collect()
}

/// Equal texts stand once, below everything they belong to.
fn text(notices: &[Notice]) -> String {
    let mut users: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    let mut order = Vec::new();
    for notice in notices {
        for text in notice.texts.iter().map(|text| text.trim()) {
            let users = users.entry(text).or_default();
            if users.is_empty() {
                order.push(text);
            }
            users.push(&notice.of);
        }
    }
    let mut all = String::from("Licences and notices of the crates in this program\n\n");
    for notice in notices {
        let _ = writeln!(all, "  {}", notice.of);
    }
    for text in order {
        let users = users.remove(text).unwrap_or_default().join("\n");
        let _ = write!(all, "\n{RULE}\n{users}\n{RULE}\n\n{text}\n");
    }
    all
}

#[cfg(test)]
mod tests;
