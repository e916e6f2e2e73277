//! What is in a bundle.
#![allow(dead_code, unreachable_pub, reason = "each test file uses its own part")]
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test can do nothing else about it")]

use std::collections::BTreeMap;
use std::io::Read;

/// The files of a bundle, by their paths below its directory.
pub struct Archive(BTreeMap<String, String>);

impl Archive {
    pub fn read(bytes: &[u8]) -> Self {
        let mut archive = tar::Archive::new(flate2::read::GzDecoder::new(bytes));
        let files = archive.entries().unwrap().map(|entry| {
            let mut entry = entry.unwrap();
            let path = entry.path().unwrap().display().to_string();
            let path = path.strip_prefix("liqo-bundle/").unwrap_or_else(|| panic!("{path}")).to_owned();
            let mut text = String::new();
            entry.read_to_string(&mut text).unwrap();
            (path, text)
        });
        Self(files.collect())
    }

    pub fn paths(&self) -> Vec<&String> {
        self.0.keys().collect()
    }

    pub fn has(&self, path: &str) -> bool {
        self.0.contains_key(path)
    }

    pub fn text(&self, path: &str) -> &str {
        self.0.get(path).unwrap_or_else(|| panic!("no {path}: {:#?}", self.paths()))
    }

    /// Where a text is to be found.
    pub fn containing(&self, text: &str) -> Vec<String> {
        self.0.iter().filter(|(_, content)| content.contains(text)).map(|(path, _)| path.clone()).collect()
    }
}
