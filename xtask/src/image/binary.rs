//! The binary that goes into the image.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail, ensure};
use sha2::{Digest, Sha256};

/// The first bytes of a 64-bit little-endian ELF file; both architectures we build for are that.
const ELF64_LITTLE_ENDIAN: [u8; 6] = [0x7f, b'E', b'L', b'F', 2, 1];
/// Where the header tells place, entry size and number of the program headers.
const TABLE_OFFSET: usize = 32;
const ENTRY_SIZE: usize = 54;
const ENTRY_COUNT: usize = 56;
/// The kind of program header that names a dynamic loader.
const INTERPRETER: u32 = 3;

/// Refuses what cannot start in an image with no loader and no library in it.
pub(super) fn must_be_static(path: &Path) -> Result<()> {
    let program = read(path)?;
    match needs_loader(&program) {
        None => bail!("{} is no program for Linux; build it with: make build", path.display()),
        Some(true) => {
            bail!("{} is not static and cannot start in the image; build it with: make build", path.display())
        }
        Some(false) => Ok(()),
    }
}

/// The digest of a file, in hexadecimal digits.
pub(super) fn sha256(path: &Path) -> Result<String> {
    Ok(hex(&Sha256::digest(read(path)?)))
}

pub(super) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn read(path: &Path) -> Result<Vec<u8>> {
    let program = fs::read(path);
    ensure!(path.exists(), "there is no {}; build it with: make build", path.display());
    program.with_context(|| format!("cannot read {}", path.display()))
}

/// Whether a program asks for a dynamic loader; none if it is no program.
fn needs_loader(program: &[u8]) -> Option<bool> {
    if !program.starts_with(&ELF64_LITTLE_ENDIAN) {
        return None;
    }
    let short = |at: usize| program.get(at..at + 2)?.try_into().ok().map(u16::from_le_bytes).map(usize::from);
    let word = |at: usize| program.get(at..at.checked_add(4)?)?.try_into().ok().map(u32::from_le_bytes);
    let table = program.get(TABLE_OFFSET..TABLE_OFFSET + 8)?.try_into().ok().map(u64::from_le_bytes)?;
    let (table, size) = (usize::try_from(table).ok()?, short(ENTRY_SIZE)?);
    let mut loader = false;
    for entry in 0..short(ENTRY_COUNT)? {
        loader |= word(table.checked_add(entry * size)?)? == INTERPRETER;
    }
    Some(loader)
}

#[cfg(test)]
mod tests;
