//! Names of images.

use std::fmt;

use super::ImageError;

/// The longest name that registries and runtimes agree on.
const MAX_LENGTH: usize = 255;
const MAX_TAG_LENGTH: usize = 128;

/// What Kubernetes and all container tools mean when a name has no registry, no directory or no tag.
const DEFAULT_REGISTRY: &str = "docker.io";
const DEFAULT_NAMESPACE: &str = "library";
const DEFAULT_TAG: &str = "latest";

/// A full image name with a tag: `registry/path:tag`.
///
/// [`ImageName::parse`] refuses short names: under one of them containerd would keep the image as it is, and the
/// kubelet would look for another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImageName {
    repository: String,
    tag: String,
}

impl ImageName {
    /// Takes a name apart and checks it.
    pub fn parse(name: &str) -> Result<Self, ImageError> {
        let invalid = |why| ImageError::Name { name: name.to_owned(), why };
        if name.len() > MAX_LENGTH {
            return Err(invalid("it is longer than 255 characters"));
        }
        if name.contains('@') {
            return Err(invalid("a digest cannot be chosen, it follows from the content"));
        }
        let (registry, path) = name.split_once('/').ok_or_else(|| invalid("it lacks a registry"))?;
        let (path, tag) = path.rsplit_once(':').ok_or_else(|| invalid("it lacks a tag"))?;
        if !is_registry(registry) {
            return Err(invalid("its first part is no registry, which is localhost or has a dot or a port"));
        }
        if !path.split('/').all(is_component) {
            return Err(invalid(
                "its path may have lower-case letters and digits, with . _ - or / between them",
            ));
        }
        if !is_tag(tag) {
            return Err(invalid(
                "its tag may have letters, digits, . _ and -, and does not start with . or -",
            ));
        }
        Ok(Self { repository: format!("{registry}/{path}"), tag: tag.to_owned() })
    }

    /// The full name that a pod's `image` stands for, completed as the kubelet does: `liqo:1` is
    /// `docker.io/library/liqo:1`.
    pub fn complete(name: &str) -> Result<Self, ImageError> {
        let with_registry = match name.split_once('/') {
            None => format!("{DEFAULT_REGISTRY}/{DEFAULT_NAMESPACE}/{name}"),
            Some((first, _)) if is_registry(first) => name.to_owned(),
            Some(_) => format!("{DEFAULT_REGISTRY}/{name}"),
        };
        let last = with_registry.rsplit('/').next().unwrap_or_default();
        let tagged = last.contains(':') || last.contains('@');
        Self::parse(&if tagged { with_registry } else { format!("{with_registry}:{DEFAULT_TAG}") })
    }

    /// What follows the colon.
    pub fn tag(&self) -> &str {
        &self.tag
    }
}

impl fmt::Display for ImageName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.repository, self.tag)
    }
}

fn is_registry(text: &str) -> bool {
    let (host, port) = text.split_once(':').map_or((text, None), |(host, port)| (host, Some(port)));
    let is_label = |label: &str| {
        let inner = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
        !label.is_empty() && label.bytes().all(inner) && !label.starts_with('-') && !label.ends_with('-')
    };
    let recognisable = host == "localhost" || host.contains('.') || port.is_some();
    recognisable && host.split('.').all(is_label) && port.is_none_or(|port| port.parse::<u16>().is_ok())
}

/// Letters and digits in runs, joined by one dot, one or two underscores, or any number of dashes.
fn is_component(text: &str) -> bool {
    let is_letter = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let joints = text.split(|c: char| c.is_ascii_lowercase() || c.is_ascii_digit());
    let joints_fit = joints
        .filter(|joint| !joint.is_empty())
        .all(|joint| matches!(joint, "." | "_" | "__") || joint.bytes().all(|byte| byte == b'-'));
    let ends_fit =
        text.bytes().next().is_some_and(is_letter) && text.bytes().next_back().is_some_and(is_letter);
    joints_fit && ends_fit
}

fn is_tag(text: &str) -> bool {
    let is_word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    text.len() <= MAX_TAG_LENGTH
        && text.bytes().next().is_some_and(is_word)
        && text.bytes().all(|byte| is_word(byte) || byte == b'.' || byte == b'-')
}

#[cfg(test)]
mod tests;
