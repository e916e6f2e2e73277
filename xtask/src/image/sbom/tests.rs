use std::collections::BTreeSet;

use super::*;

const TREE: &str = include_str!("testdata/tree.txt");
const METADATA: &str = include_str!("testdata/metadata.json");
const LOCK: &str = include_str!("testdata/Cargo.lock");

fn linked() -> Linked {
    Linked::from_texts(TREE, METADATA, LOCK, "1.95.0").unwrap()
}

fn product() -> Product<'static> {
    Product {
        name: "liqo",
        version: "0.1.0",
        image_digest: "sha256:aa",
        binary_sha256: "bb",
        time: Timestamp::from_second(1_700_000_000).unwrap(),
    }
}

fn component_named(document: &Value, name: &str) -> Value {
    let components = document["components"].as_array().unwrap();
    components
        .iter()
        .find(|one| one["name"] == name)
        .cloned()
        .unwrap_or_else(|| panic!("no {name}: {document:#}"))
}

fn texts<'a>(values: &'a Value, key: &str) -> Vec<&'a str> {
    values.as_array().unwrap().iter().map(|one| one[key].as_str().unwrap()).collect()
}

#[test]
fn what_is_linked_is_listed_and_what_only_another_program_uses_is_not() {
    let document = document(&product(), &linked());
    let names = texts(&document["components"], "name");
    assert_eq!(names, ["liqo", "liqo-api", "serde", "serde_core", "yaml", "rust-std"]);
}

#[test]
fn a_crate_comes_with_its_origin_licence_and_checksum() {
    let document = document(&product(), &linked());
    let yaml = component_named(&document, "yaml");
    assert_eq!(
        yaml,
        json!({
            "type": "library", "bom-ref": "pkg:cargo/yaml@0.9.34%2Bdeprecated", "name": "yaml", "version": "0.9.34+deprecated",
            "description": "YAML in two lines", "licenses": [{"expression": "MIT OR Apache-2.0"}],
            "purl": "pkg:cargo/yaml@0.9.34%2Bdeprecated", "hashes": [{"alg": "SHA-256", "content": "cccc"}],
            "externalReferences": [{"type": "vcs", "url": "https://example.com/yaml"}],
        })
    );
}

#[test]
fn our_own_crates_claim_no_registry_and_the_program_has_the_digest_of_its_file() {
    let document = document(&product(), &linked());
    let api = component_named(&document, "liqo-api");
    assert_eq!(
        (&api["bom-ref"], &api["purl"], &api["hashes"]),
        (&json!("liqo-api@0.1.0"), &Value::Null, &Value::Null)
    );
    let program = component_named(&document, "liqo");
    assert_eq!(program["type"], "application");
    assert_eq!(program["hashes"], json!([{"alg": "SHA-256", "content": "bb"}]));
}

#[test]
fn the_image_is_named_by_digest_and_by_its_place_in_a_registry() {
    let document =
        |name| document(&Product { name, ..product() }, &linked())["metadata"]["component"].clone();
    let short = document("liqo");
    assert_eq!((&short["type"], &short["bom-ref"]), (&json!("container"), &json!("liqo:0.1.0")));
    assert_eq!(short["purl"], "pkg:oci/liqo@sha256%3Aaa?tag=0.1.0");
    assert_eq!(
        document("registry.example.com/team/liqo")["purl"],
        "pkg:oci/liqo@sha256%3Aaa?repository_url=registry.example.com/team/liqo&tag=0.1.0"
    );
}

#[test]
fn the_graph_leads_from_the_image_to_every_component() {
    let document = document(&product(), &linked());
    let edges = document["dependencies"].as_array().unwrap();
    let of = |name: &str| edges.iter().find(|edge| edge["ref"] == name).unwrap()["dependsOn"].clone();
    assert_eq!(of("liqo:0.1.0"), json!(["liqo@0.1.0"]));
    assert_eq!(
        of("liqo@0.1.0"),
        json!(["liqo-api@0.1.0", "pkg:cargo/yaml@0.9.34%2Bdeprecated", "rust-std@1.95.0"])
    );
    assert_eq!(of("liqo-api@0.1.0"), json!(["pkg:cargo/serde@1.0.229"]));
    assert_eq!(of("pkg:cargo/yaml@0.9.34%2Bdeprecated"), json!(["pkg:cargo/serde@1.0.229"]));

    let mut references: BTreeSet<&str> = texts(&document["components"], "bom-ref").into_iter().collect();
    references.insert("liqo:0.1.0");
    assert_eq!(references.len(), document["components"].as_array().unwrap().len() + 1, "no reference twice");
    assert_eq!(references, texts(&document["dependencies"], "ref").into_iter().collect());
}

#[test]
fn equal_input_makes_an_equal_document_and_another_image_another_serial_number() {
    let one = document(&product(), &linked());
    assert_eq!(one, document(&product(), &linked()));
    assert_eq!(one["metadata"]["timestamp"], "2023-11-14T22:13:20Z");
    let other = document(&Product { image_digest: "sha256:ab", ..product() }, &linked());
    assert_ne!(one["serialNumber"], other["serialNumber"]);
    let serial = one["serialNumber"].as_str().unwrap().strip_prefix("urn:uuid:").unwrap().to_owned();
    let lengths: Vec<usize> = serial.split('-').map(str::len).collect();
    assert_eq!(lengths, [8, 4, 4, 4, 12], "{serial}");
    assert!(serial.split('-').nth(2).unwrap().starts_with('8'), "{serial}");
}

#[test]
fn what_cargo_does_not_say_is_an_error_that_names_it() {
    let error = |tree: &str, metadata: &str| {
        format!("{:#}", Linked::from_texts(tree, metadata, LOCK, "1.95.0").unwrap_err())
    };
    assert!(error("0other v1.0.0\n", METADATA).contains("nothing about liqo"));
    assert!(error("0liqo v0.1.0\n1unknown v1.2.3\n", METADATA).contains("unknown 1.2.3"));
    assert!(error("liqo v0.1.0\n", METADATA).contains("unexpected line"));
    assert!(error(TREE, "{}").contains("cargo metadata"));
}
