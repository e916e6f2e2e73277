//! What the objects say.

use super::*;

#[test]
fn a_quota_names_what_is_requested() {
    let resources = [("cpu", "4"), ("pods", "20"), ("example.com/gpu", "1"), ("ephemeral-storage", "10Gi")];
    let hard = hard(&Resources::parse(resources).resources);
    let names: Vec<&str> = hard.keys().map(String::as_str).collect();
    assert_eq!(names, ["pods", "requests.cpu", "requests.ephemeral-storage", "requests.example.com/gpu"]);
}

#[test]
fn an_event_is_told_once() {
    let key = Key::namespaced("shop", &"x".repeat(253));
    let refusal = Refusal::new("Forbidden", "é".repeat(2000));
    let now = Timestamp::UNIX_EPOCH;
    let about = |uid: &str| About::ShadowPod(uid.to_owned());
    let (one, other) =
        (event(&about("u"), &key, &refusal, "pod", now), event(&about("u"), &key, &refusal, "pod", now));
    assert_eq!(one.metadata.name, other.metadata.name);
    assert!(one.metadata.name.unwrap().len() <= 253);
    assert!(one.note.unwrap().len() <= 1024);
    let another = event(&about("v"), &key, &refusal, "pod", now);
    assert_ne!(another.metadata.name, other.metadata.name);
}
