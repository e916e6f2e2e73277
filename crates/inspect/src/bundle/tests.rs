use std::io::Read;

use super::collect::keep_end;
use super::*;

fn bundle() -> Bundle {
    Bundle::new(Timestamp::UNIX_EPOCH, "v1.34.4", "liqo")
}

#[test]
fn the_archive_has_the_manifest_first_and_every_file_it_lists() {
    let mut bundle = bundle();
    bundle.add("logs/pod/container.log", "a log", "line\n".into());
    bundle.problem("nodes", &"no permission");
    let mut bytes = Vec::new();
    bundle.write(&mut bytes).unwrap();
    let mut archive = tar::Archive::new(flate2::read::GzDecoder::new(bytes.as_slice()));
    let mut files = Vec::new();
    for entry in archive.entries().unwrap() {
        let mut entry = entry.unwrap();
        let path = entry.path().unwrap().display().to_string();
        let mut text = String::new();
        entry.read_to_string(&mut text).unwrap();
        files.push((path, text));
    }
    assert_eq!(files[0].0, "liqo-bundle/manifest.json");
    assert_eq!(files[1], ("liqo-bundle/logs/pod/container.log".to_owned(), "line\n".to_owned()));
    let manifest: serde_json::Value = serde_json::from_str(&files[0].1).unwrap();
    assert_eq!(manifest["files"][0]["path"], "logs/pod/container.log");
    assert_eq!(manifest["problems"][0]["why"], "no permission");
}

#[test]
fn what_would_make_it_too_large_is_left_out_and_listed() {
    let mut bundle = bundle();
    bundle.add("large", "", "x".repeat(LARGEST - 10));
    bundle.add("too-much", "", "x".repeat(11));
    bundle.add("fits", "", "x".repeat(10));
    let files: Vec<&str> = bundle.manifest.files.iter().map(|file| file.path.as_str()).collect();
    assert_eq!(files, ["large", "fits"]);
    assert_eq!(bundle.manifest.problems[0].what, "too-much");
}

#[test]
fn of_a_long_log_the_end_stays_and_begins_with_a_whole_line() {
    let mut log = String::new();
    for number in 0..200_000 {
        keep_end(&mut log, &format!("line {number} ü\n"));
    }
    assert!(log.len() <= 2 * LARGEST_LOG, "{}", log.len());
    assert!(log.starts_with("line ") && log.ends_with("line 199999 ü\n"), "{}", &log[..40]);
}
