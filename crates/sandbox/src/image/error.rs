//! Why an image could not be made.

use std::io;
use std::path::PathBuf;

/// Why an image could not be made.
#[derive(Debug, thiserror::Error)]
pub enum ImageError {
    /// The image's name is no name.
    #[error("{name:?} is no image name: {why}. Write it like localhost/liqo/pause:1")]
    Name {
        /// What was given.
        name: String,
        /// The rule it breaks.
        why: &'static str,
    },
    /// The image as a whole makes no sense.
    #[error("cannot make the image {name}: {why}")]
    Invalid {
        /// The image.
        name: String,
        /// The rule it breaks.
        why: String,
    },
    /// A path in a layer makes no sense.
    #[error("cannot put {path:?} into an image: {why}")]
    Path {
        /// The path inside the image.
        path: String,
        /// The rule it breaks.
        why: String,
    },
    /// A file for a layer cannot be used.
    #[error("cannot put {} into an image: {source}", path.display())]
    Source {
        /// The file on this machine.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The archive is not one that we could have written.
    #[error("{} is no OCI archive of an image: {why}", path.display())]
    Unreadable {
        /// The archive.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// The archive cannot be written.
    #[error("cannot write the image archive {}: {source}", path.display())]
    Archive {
        /// The archive.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}
