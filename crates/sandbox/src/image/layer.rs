//! What is in a layer.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use super::ImageError;

/// Directories that nobody named but that a path goes through.
const IMPLIED_MODE: u32 = 0o755;
/// Permissions and the setuid, setgid and sticky bits.
const ALL_MODE_BITS: u32 = 0o7777;
/// Names like these delete files of the layers below.
const WHITEOUT: &str = ".wh.";

/// Files, directories and links that one layer of an image adds.
///
/// Paths may be written with or without the first slash. Directories on the way are added where they are missing.
#[derive(Clone, Debug, Default)]
pub struct Layer {
    entries: Vec<Entry>,
    owner: (u32, u32),
}

#[derive(Clone, Debug)]
struct Entry {
    path: String,
    mode: u32,
    owner: (u32, u32),
    content: Content,
}

#[derive(Clone, Debug)]
enum Content {
    Directory,
    Bytes(Cow<'static, [u8]>),
    File(PathBuf),
    Symlink(String),
}

impl Layer {
    /// An empty layer.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets user and group of what is added from here on; root unless set.
    #[must_use]
    pub fn owner(mut self, user: u32, group: u32) -> Self {
        self.owner = (user, group);
        self
    }

    /// Adds a file with this content.
    #[must_use]
    pub fn file(self, path: impl Into<String>, content: impl Into<Cow<'static, [u8]>>, mode: u32) -> Self {
        self.entry(path.into(), mode, Content::Bytes(content.into()))
    }

    /// Adds a file of this machine, which is read when the image is written and never held in memory.
    #[must_use]
    pub fn file_from(self, path: impl Into<String>, source: impl Into<PathBuf>, mode: u32) -> Self {
        self.entry(path.into(), mode, Content::File(source.into()))
    }

    /// Adds a directory.
    #[must_use]
    pub fn directory(self, path: impl Into<String>, mode: u32) -> Self {
        self.entry(path.into(), mode, Content::Directory)
    }

    /// Adds a symbolic link.
    #[must_use]
    pub fn symlink(self, path: impl Into<String>, target: impl Into<String>) -> Self {
        self.entry(path.into(), 0o777, Content::Symlink(target.into()))
    }

    fn entry(mut self, path: String, mode: u32, content: Content) -> Self {
        self.entries.push(Entry { path, mode, owner: self.owner, content });
        self
    }

    /// Sorts the entries, adds the directories on the way, and refuses what makes no sense.
    pub(super) fn check(&self) -> Result<CheckedLayer<'_>, ImageError> {
        let mut entries = BTreeMap::new();
        for entry in &self.entries {
            let path = normalise(&entry.path)?;
            entry.check()?;
            if entries.insert(path, Some(entry)).is_some() {
                return Err(entry.invalid("it is there twice"));
            }
        }
        for entry in &self.entries {
            let mut path = normalise(&entry.path)?;
            while let Some((parent, _)) = path.rsplit_once('/') {
                match entries.entry(parent.to_owned()).or_default() {
                    Some(Entry { content: Content::Directory, .. }) | None => {}
                    Some(_) => return Err(entry.invalid(&format!("/{parent} is not a directory"))),
                }
                path.truncate(parent.len());
            }
        }
        Ok(CheckedLayer(entries))
    }
}

impl Entry {
    fn invalid(&self, why: &str) -> ImageError {
        ImageError::Path { path: self.path.clone(), why: why.to_owned() }
    }

    fn check(&self) -> Result<(), ImageError> {
        if self.mode & !ALL_MODE_BITS != 0 {
            return Err(self.invalid(&format!("{:o} is no file mode", self.mode)));
        }
        if let Content::Symlink(target) = &self.content
            && (target.is_empty() || target.contains('\0'))
        {
            return Err(self.invalid(&format!("{target:?} is nothing a link can point to")));
        }
        Ok(())
    }
}

/// The path without the first slash, when it names something inside the image and nothing else.
fn normalise(path: &str) -> Result<String, ImageError> {
    let invalid = |why: &str| Err(ImageError::Path { path: path.to_owned(), why: why.to_owned() });
    let inner = path.strip_prefix('/').unwrap_or(path);
    if inner.contains('\0') {
        return invalid("it contains a zero byte");
    }
    for part in inner.split('/') {
        match part {
            "" => return invalid("a part of it is empty"),
            "." | ".." => return invalid("it has . or .. in it"),
            part if part.starts_with(WHITEOUT) => return invalid("names with .wh. delete other files"),
            _ => {}
        }
    }
    Ok(inner.to_owned())
}

/// Entries by path, `None` for a directory that nobody named. A directory comes before what is in it.
#[derive(Debug)]
pub(super) struct CheckedLayer<'a>(BTreeMap<String, Option<&'a Entry>>);

impl CheckedLayer<'_> {
    /// Writes the layer's tar. Every file of it carries the same time.
    pub(super) fn write(&self, out: &mut dyn Write, time: u64) -> io::Result<()> {
        let mut tar = tar::Builder::new(out);
        for (path, entry) in &self.0 {
            let mut header = tar::Header::new_gnu();
            header.set_mtime(time);
            header.set_mode(entry.map_or(IMPLIED_MODE, |entry| entry.mode));
            let (user, group) = entry.map_or((0, 0), |entry| entry.owner);
            header.set_uid(user.into());
            header.set_gid(group.into());
            header.set_size(0);
            match entry.map_or(&Content::Directory, |entry| &entry.content) {
                Content::Directory => {
                    header.set_entry_type(tar::EntryType::Directory);
                    tar.append_data(&mut header, format!("{path}/"), io::empty())?;
                }
                Content::Bytes(bytes) => {
                    header.set_size(bytes.len() as u64);
                    tar.append_data(&mut header, path, bytes.as_ref())?;
                }
                Content::File(source) => {
                    let source = Source::open(source)?;
                    header.set_size(source.left);
                    tar.append_data(&mut header, path, source)?;
                }
                Content::Symlink(target) => {
                    header.set_entry_type(tar::EntryType::Symlink);
                    tar.append_link(&mut header, path, target)?;
                }
            }
        }
        tar.finish()
    }

    /// The files of this machine that go into the layer.
    pub(super) fn sources(&self) -> impl Iterator<Item = &Path> {
        self.0.values().filter_map(|entry| match &entry.as_ref()?.content {
            Content::File(path) => Some(path.as_path()),
            _ => None,
        })
    }
}

/// A file that must keep the size it had when its header was written, else the archive would be broken.
pub(super) struct Source<R> {
    path: PathBuf,
    content: R,
    left: u64,
}

impl Source<File> {
    fn open(path: &Path) -> io::Result<Self> {
        let file = File::open(path)?;
        let size = file.metadata()?.len();
        Ok(Self::new(path, file, size))
    }
}

impl<R: Read> Source<R> {
    pub(super) fn new(path: &Path, content: R, size: u64) -> Self {
        Self { path: path.to_owned(), content, left: size }
    }

    fn changed(&self, how: &str) -> io::Error {
        io::Error::other(format!("{} {how} while it was read", self.path.display()))
    }
}

impl<R: Read> Read for Source<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.content.read(buffer)?;
        match self.left.checked_sub(count as u64) {
            None => Err(self.changed("grew")),
            Some(left) if left > 0 && count == 0 && !buffer.is_empty() => Err(self.changed("shrank")),
            Some(left) => {
                self.left = left;
                Ok(count)
            }
        }
    }
}
