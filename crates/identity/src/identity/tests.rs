use super::*;

#[test]
fn a_new_identity_has_a_random_uuid_and_a_name_made_from_it() {
    let identity = Identity::generate(&Wanted::default()).unwrap();
    let id = identity.id.as_str();
    assert_eq!(id.len(), 36, "{id}");
    let parts: Vec<_> = id.split('-').map(str::len).collect();
    assert_eq!(parts, [8, 4, 4, 4, 12], "{id}");
    assert_eq!(&id[14..15], "4", "version 4: {id}");
    assert!("89ab".contains(&id[19..20]), "variant of RFC 9562: {id}");
    assert_eq!(identity.name.as_str(), format!("cluster-{}", &id[..6]));
    let other = Identity::generate(&Wanted::default()).unwrap();
    assert_ne!(other.id, identity.id);
}

#[test]
fn what_is_wanted_is_taken() {
    let wanted = Wanted { id: Some("my-id".parse().unwrap()), name: None };
    let identity = Identity::generate(&wanted).unwrap();
    assert_eq!((identity.id.as_str(), identity.name.as_str()), ("my-id", "cluster-myid"));
    let wanted = Wanted { id: None, name: Some("milan".parse().unwrap()) };
    let identity = Identity::generate(&wanted).unwrap();
    assert_eq!((identity.id.as_str().len(), identity.name.as_str()), (36, "milan"));
}

#[test]
fn printing_an_identity_for_debugging_shows_no_key() {
    let identity = Identity::generate(&Wanted::default()).unwrap();
    let (shown, private) = (format!("{identity:?}"), identity.key.to_pem().unwrap());
    let secret = private.lines().nth(1).unwrap();
    assert!(shown.contains(identity.id.as_str()) && !shown.contains(secret), "{shown}");
}
