use std::fs;
use std::path::PathBuf;

use jiff::Timestamp;
use liqo_sandbox::image::ArchivedImage;
use serde_json::Value;

use super::*;
use crate::image::command;

/// A directory that goes away with the test.
struct Directory(PathBuf);

impl Directory {
    fn new(test: &str) -> Self {
        let path = std::env::temp_dir().join(format!("liqo-layout-{test}-{}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn some_commit() -> Commit {
    let time = Timestamp::from_second(1_700_000_000).unwrap();
    Commit { revision: Some("0123abc".into()), dirty: false, time }
}

/// Writes the image of a small binary and returns its archive.
fn write(directory: &Directory, commit: &Commit) -> PathBuf {
    let [binary, licence, archive] = ["binary", "licence", "a.tar"].map(|name| directory.0.join(name));
    fs::write(&binary, "program").unwrap();
    fs::write(&licence, "you may").unwrap();
    let name = ImageName::complete("liqo:0.1.0").unwrap();
    let content = Content { binary: &binary, licence: &licence, notices: "others say".into() };
    image(&name, "0.1.0", commit, content).write(&archive).unwrap();
    archive
}

fn tar(arguments: &[&str], archive: &Path) -> String {
    let mut tar = std::process::Command::new("tar");
    command::output(tar.arg("--file").arg(archive).args(arguments)).unwrap()
}

fn blob(archive: &Path, digest: &Value) -> String {
    format!(
        "blobs/sha256/{}",
        digest.as_str().unwrap().strip_prefix("sha256:").unwrap_or_else(|| panic!("{archive:?}"))
    )
}

fn json(archive: &Path, member: &str) -> Value {
    serde_json::from_str(&tar(&["--extract", "--to-stdout", member], archive)).unwrap()
}

fn manifest(archive: &Path) -> Value {
    json(archive, &blob(archive, &json(archive, "index.json")["manifests"][0]["digest"]))
}

#[test]
fn it_runs_the_program_without_rights_and_says_what_it_is() {
    let directory = Directory::new("config");
    let archive = write(&directory, &some_commit());
    let config = json(&archive, &blob(&archive, &manifest(&archive)["config"]["digest"]));
    assert_eq!(config["created"], "2023-11-14T22:13:20Z");
    assert_eq!(config["config"]["User"], "65532:65532");
    assert_eq!(config["config"]["Entrypoint"], serde_json::json!(["/liqo"]));
    assert_eq!(config["config"]["ExposedPorts"], serde_json::json!({"8080/tcp": {}, "8081/tcp": {}}));
    let labels = &config["config"]["Labels"];
    for (key, value) in [
        ("title", "liqo"),
        ("version", "0.1.0"),
        ("revision", "0123abc"),
        ("created", "2023-11-14T22:13:20Z"),
        ("licenses", "Apache-2.0"),
    ] {
        assert_eq!(labels[format!("org.opencontainers.image.{key}")], value, "{labels}");
    }
    assert_eq!(ArchivedImage::read(&archive).unwrap().name.to_string(), "docker.io/library/liqo:0.1.0");
}

#[test]
fn a_source_that_differs_from_its_commit_shows() {
    let directory = Directory::new("dirty");
    let archive = write(&directory, &Commit { dirty: true, ..some_commit() });
    let config = json(&archive, &blob(&archive, &manifest(&archive)["config"]["digest"]));
    assert_eq!(config["config"]["Labels"]["org.opencontainers.image.version"], "0.1.0-dirty");
}

#[test]
fn everything_in_it_belongs_to_root_and_nothing_can_be_written() {
    let directory = Directory::new("files");
    let archive = write(&directory, &some_commit());
    let layer = manifest(&archive)["layers"][0].clone();
    assert_eq!(layer["mediaType"], "application/vnd.oci.image.layer.v1.tar+gzip");
    tar(&["--extract", "--directory", directory.0.to_str().unwrap()], &archive);
    let layer = directory.0.join(blob(&archive, &layer["digest"]));
    let list = tar(&["--list", "--verbose", "--gzip", "--numeric-owner", "--utc"], &layer);
    let lines: Vec<String> =
        list.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
    let when = "2023-11-14 22:13";
    for line in [
        format!("-r-xr-xr-x 0/0 7 {when} liqo"),
        format!("lrwxrwxrwx 0/0 0 {when} usr/bin/liqo -> /liqo"),
        format!("-r--r--r-- 0/0 7 {when} licenses/LICENSE"),
        format!("-r--r--r-- 0/0 10 {when} licenses/THIRD-PARTY.txt"),
    ] {
        assert!(lines.contains(&line), "no {line:?} in {lines:#?}");
    }
    let files = lines.iter().filter(|line| line.starts_with('-'));
    assert!(files.clone().all(|line| line.contains(" 0/0 ") && !line[..10].contains('w')), "{lines:#?}");
    let passwd = tar(&["--extract", "--to-stdout", "--gzip", "etc/passwd"], &layer);
    assert!(passwd.contains("liqo:x:65532:65532:liqo:/:/sbin/nologin\n"), "{passwd}");
    assert!(tar(&["--extract", "--to-stdout", "--gzip", "etc/group"], &layer).contains("liqo:x:65532:\n"));
}
