use std::fs;
use std::path::PathBuf;

use super::*;
use crate::image::{Image, Layer};

/// A directory that goes away with the test.
struct Directory(PathBuf);

impl Directory {
    fn new(test: &str) -> Self {
        let path = std::env::temp_dir().join(format!("liqo-archived-{test}-{}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[test]
fn an_archive_tells_the_name_and_digest_it_was_written_with() {
    let directory = Directory::new("round-trip");
    let archive = directory.0.join("a.tar");
    let image = Image::new("docker.io/library/a:1").layer(Layer::new().file("/a", vec![7; 100_000], 0o555));
    let digest = image.write(&archive).unwrap();
    let read = ArchivedImage::read(&archive).unwrap();
    assert_eq!(read.name.to_string(), "docker.io/library/a:1");
    assert_eq!(read.digest, digest);
}

#[test]
fn a_file_that_is_no_archive_is_named_with_the_reason() {
    let directory = Directory::new("no-archive");
    for (content, reason) in [(&b""[..], "no index.json"), (&[b'x'; 2048][..], "is no OCI archive")] {
        let file = directory.0.join("b.tar");
        fs::write(&file, content).unwrap();
        let error = ArchivedImage::read(&file).unwrap_err().to_string();
        assert!(error.contains(reason) && error.contains("b.tar"), "{error}");
    }
    let error = ArchivedImage::read(&directory.0.join("absent.tar")).unwrap_err().to_string();
    assert!(error.contains("absent.tar") && error.contains("No such file"), "{error}");
}
