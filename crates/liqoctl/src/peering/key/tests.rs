use super::*;

/// SPKI of Ed25519, before the 32 bytes of the key.
const NOTED: &str = "MCowBQYDK2VwAyEAAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQE=";

fn key(byte: u8) -> PublicKey {
    PublicKey::from_bytes(&[byte; 32])
}

fn judge(noted: &str, shown: &Shown) -> Result<(), String> {
    compare(&"id-1".parse().unwrap(), noted, shown).map_err(|error| error.to_string())
}

#[test]
fn the_same_key_is_the_same_cluster() {
    assert_eq!(judge(NOTED, &Shown::Key(key(1))), Ok(()));
    assert_eq!(judge(NOTED, &Shown::NotAsked), Ok(()));
}

#[test]
fn another_key_is_refused_with_both_fingerprints_and_what_to_do() {
    let error = judge(NOTED, &Shown::Key(key(2))).unwrap_err();
    for part in [
        "claims the ID id-1",
        &key(1).fingerprint(),
        &key(2).fingerprint(),
        "Nothing was changed",
        "liqoctl remove cluster id-1",
        "--cluster-id",
    ] {
        assert!(error.contains(part), "{part} is missing: {error}");
    }
}

#[test]
fn no_key_and_an_unreadable_one_are_nobodys() {
    assert!(judge(NOTED, &Shown::from(None)).unwrap_err().contains("this one shows none"));
    assert!(judge("garbled", &Shown::Key(key(1))).unwrap_err().contains("the key that cannot be read"));
}
