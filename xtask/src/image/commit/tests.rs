use super::*;

const SOME: Option<&str> = Some("0123abc 1700000000\n");

#[test]
fn a_clean_commit_gives_revision_and_time() {
    let commit = Commit::from_git(SOME, "", None).unwrap();
    assert_eq!(commit.version("1.2.3"), "1.2.3");
    assert_eq!(commit.revision().as_deref(), Some("0123abc"));
    assert_eq!(commit.time.to_string(), "2023-11-14T22:13:20Z");
}

#[test]
fn a_changed_file_is_told_by_version_and_revision() {
    let commit = Commit::from_git(SOME, " M Cargo.toml\n", None).unwrap();
    assert_eq!(commit.version("1.2.3"), "1.2.3-dirty");
    assert_eq!(commit.revision().as_deref(), Some("0123abc-dirty"));
}

#[test]
fn a_source_without_git_has_no_revision_and_no_time() {
    let commit = Commit::from_git(None, "", None).unwrap();
    assert_eq!((commit.version("1.2.3").as_str(), commit.revision()), ("1.2.3-unknown", None));
    assert_eq!(commit.time, Timestamp::UNIX_EPOCH);
}

#[test]
fn the_time_can_be_chosen() {
    let chosen = Commit::from_git(SOME, "", Some(86_400)).unwrap();
    assert_eq!(chosen.time.to_string(), "1970-01-02T00:00:00Z");
    assert!(Commit::from_git(SOME, "", Some(i64::MAX)).is_err());
}
