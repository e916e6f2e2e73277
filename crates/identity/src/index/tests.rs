use k8s_openapi::api::core::v1::Secret;

use super::*;
use crate::identity::Wanted;

fn identity() -> Identity {
    Identity::generate(&Wanted { id: None, name: Some("milan".parse().unwrap()) }).unwrap()
}

fn secret() -> Secret {
    objects::secret(&identity(), "liqo").unwrap()
}

/// The Secret as a server would send it.
fn on_wire(secret: &Secret) -> Kept {
    Kept::read(&serde_json::from_value(serde_json::to_value(secret).unwrap()).unwrap())
}

fn set(secret: &mut Secret, key: &str, value: &str) {
    secret.data.as_mut().unwrap().insert(key.to_owned(), ByteString(value.as_bytes().to_vec()));
}

#[test]
fn an_identity_survives_being_kept_in_a_secret() {
    let identity = identity();
    let kept = on_wire(&objects::secret(&identity, "liqo").unwrap()).identity.unwrap();
    assert_eq!((&kept.id, &kept.name), (&identity.id, &identity.name));
    assert_eq!(kept.public_key(), identity.public_key());
}

#[test]
fn each_damage_of_the_secret_is_named_and_never_quoted() {
    type Damage = fn(&mut Secret);
    let damages: [(&str, Damage, &str); 8] = [
        ("nothing", |secret| secret.data = None, "its key private-key is missing"),
        (
            "no key",
            |secret| drop(secret.data.as_mut().unwrap().remove("private-key")),
            "its key private-key is missing",
        ),
        (
            "no ID",
            |secret| drop(secret.data.as_mut().unwrap().remove("cluster-id")),
            "its key cluster-id is missing",
        ),
        (
            "garbage",
            |secret| set(secret, "private-key", "hunter2"),
            "private-key cannot be used: it is no PEM block",
        ),
        (
            "public garbage",
            |secret| set(secret, "public-key", "x"),
            "public-key cannot be used: it is no PEM block",
        ),
        (
            "another public key",
            |secret| set(secret, "public-key", &identity().public_key().to_pem()),
            "its private-key and public-key do not belong together",
        ),
        (
            "an illegal ID",
            |secret| set(secret, "cluster-id", "Not An ID"),
            "in its cluster-id, \"Not An ID\" is not",
        ),
        ("an illegal name", |secret| set(secret, "cluster-name", ""), "in its cluster-name, \"\" is not"),
    ];
    for (what, damage, expected) in damages {
        let mut secret = secret();
        damage(&mut secret);
        let problem = on_wire(&secret).identity.unwrap_err();
        assert!(problem.contains(expected), "{what}: {problem}");
        assert!(!problem.contains("hunter2"), "{problem}");
    }
}

#[test]
fn a_config_map_is_read_with_what_is_noted_on_it() {
    let identity = identity();
    let mut object = objects::config_map(&identity, "liqo");
    object.metadata.resource_version = Some("5".to_owned());
    let published = Published::read(&object);
    assert_eq!(published.identity, Some(identity.cluster_identity()));
    assert_eq!(published.fingerprint, Some(identity.public_key().fingerprint()));
    assert!(published.labelled);
    object.metadata.labels.as_mut().unwrap().remove("app.kubernetes.io/name");
    object.data.as_mut().unwrap().remove("CLUSTER_NAME");
    let published = Published::read(&object);
    assert!(!published.labelled && published.identity.is_none());
}

#[test]
fn another_object_than_the_one_asked_for_is_ignored() {
    let mut index = Index::default();
    let kept = on_wire(&secret());
    index.apply(&Key::namespaced("liqo", "other"), kept.clone());
    assert!(index.secret.object.is_none());
    index.apply(&Key::namespaced("liqo", IDENTITY_SECRET), kept);
    Indexed::<Kept>::delete(&mut index, &Key::namespaced("liqo", "other"));
    assert!(index.secret.object.is_some() && !index.secret.synced);
    Indexed::<Kept>::synced(&mut index);
    assert!(index.secret.synced && !index.config_map.synced);
}

#[test]
fn a_secret_that_another_watch_was_quicker_than_is_late_and_not_lost() {
    let mut index = Index::default();
    let published = Published::read(&objects::config_map(&identity(), "liqo"));
    Indexed::<Kept>::synced(&mut index);
    index.apply(&Key::namespaced("liqo", CLUSTER_ID_CONFIG_MAP), published);
    let seen = index.keyless_since.unwrap();
    assert_eq!(index.late(seen), Some(LATE));
    assert_eq!(index.late(seen + LATE), None);
    // A clock that was set back does not make it late for ever.
    assert_eq!(index.late(seen - LATE), None);
    index.apply(&Key::namespaced("liqo", IDENTITY_SECRET), on_wire(&secret()));
    assert_eq!((index.keyless_since, index.late(seen)), (None, None));
}
