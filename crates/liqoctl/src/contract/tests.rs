use std::path::{Path, PathBuf};

use liqo_api::contract::{Agreed, ContractPhase, ContractStatus};
use liqo_api::{Contract, ContractSpec};
use liqo_core::canonical::Digest;
use liqo_core::contract::{Clauses, Enforcement, ServiceLevel, Terms};
use liqo_core::{Resources, Span};
use liqo_identity::{Identity, Wanted};
use liqo_peering::paper::{self, Keys};
use serde_json::json;

use super::*;
use crate::peering::testing::{cluster, contract, made_at};
use crate::style::Style;

pub(crate) fn identity(name: &str) -> Identity {
    let wanted = Wanted { id: Some(name.parse().unwrap()), name: Some(name.parse().unwrap()) };
    Identity::generate(&wanted).unwrap()
}

fn terms(north: &Identity, south: &Identity) -> Terms {
    Terms::new(Clauses {
        contract: "c-1".parse().unwrap(),
        sequence: 0,
        predecessor: None,
        provider: paper::party(north).unwrap(),
        consumer: paper::party(south).unwrap(),
        resources: Resources::parse([("cpu", "3500m"), ("memory", "6Gi")]).into_result().unwrap(),
        pools: [].into(),
        prices: None,
        not_before: "2026-03-01T12:00:00Z".parse().unwrap(),
        not_after: "2026-03-02T12:00:00Z".parse().unwrap(),
        renewal: Some(Span::clamped(86_400)),
        enforcement: Enforcement::Hard,
        service_level: ServiceLevel::default(),
        offer: Digest::of("test", b"offer"),
    })
    .unwrap()
}

/// A contract that both signed.
pub(crate) fn signed(north: &Identity, south: &Identity) -> Contract {
    let terms = terms(north, south);
    let text = String::from_utf8(terms.canonical().to_vec()).unwrap();
    let mut contract = Contract::new(
        "c-1",
        ContractSpec {
            provider_id: "north".to_owned(),
            consumer_id: "south".to_owned(),
            terms: text.clone(),
            consumer_signature: paper::sign(south, &terms),
            ended: None,
        },
    );
    contract.status = Some(ContractStatus {
        phase: ContractPhase::Active,
        agreed: Some(Agreed {
            terms: text,
            consumer_signature: paper::sign(south, &terms),
            provider_signature: paper::sign(north, &terms),
            time: serde_json::from_value(json!("2026-03-01T12:00:01Z")).unwrap(),
        }),
        digest: Some(terms.digest().to_string()),
        ..ContractStatus::default()
    });
    contract
}

/// A file that is gone after the test.
struct File(PathBuf);

impl File {
    fn new(name: &str, content: &str) -> Self {
        let path = std::env::temp_dir().join(format!("liqoctl-{}-{name}", std::process::id()));
        std::fs::write(&path, content).unwrap();
        Self(path)
    }

    fn path(&self) -> &Path {
        &self.0
    }

    fn text(&self) -> &str {
        self.0.to_str().unwrap()
    }
}

impl Drop for File {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

#[test]
fn what_show_writes_is_what_verify_reads() {
    let (north, south) = (identity("north"), identity("south"));
    let contract = signed(&north, &south);
    let yaml = File::new("contract.yaml", &serde_saphyr::to_string(&contract).unwrap());
    let json = File::new("contract.json", &serde_json::to_string_pretty(&contract).unwrap());
    let pems = [&north, &south].map(|it| it.public_key().to_pem());
    let keys = [File::new("provider.pem", &pems[0]), File::new("consumer.pem", &pems[1])];
    let keys = Keys {
        provider: keys::read(keys[0].text(), "provider").unwrap(),
        consumer: keys::read(keys[1].text(), "consumer").unwrap(),
    };
    for file in [yaml, json] {
        let read = verify::read_contract(file.path()).unwrap();
        let found = paper::verify(&read, &keys);
        assert!(found.is_valid(), "{found:?}");
    }
}

#[test]
fn what_is_no_contract_or_no_key_is_refused_with_a_reason() {
    for (name, content, reason) in [
        ("pod.yaml", "kind: Pod\nmetadata: {name: x}\n", "is no Contract but a Pod"),
        ("text.yaml", "just words", "is no Contract but a file of something else"),
        ("two.yaml", "items: [{kind: Contract}, {kind: Contract}]", "has 2 objects"),
        ("half.yaml", "kind: Contract\nspec: {terms: 1}\n", "is no Contract"),
        ("broken.json", "{\"kind\":", "is no JSON"),
    ] {
        let file = File::new(name, content);
        let error = format!("{:#}", verify::read_contract(file.path()).unwrap_err());
        assert!(error.contains(reason), "{name}: {error}");
    }
    let error = format!("{:#}", keys::read("/nonexistent/key.pem", "provider").unwrap_err());
    assert!(error.contains("cannot read the provider's key"), "{error}");
    let file = File::new("no-key.pem", "nothing");
    let error = format!("{:#}", keys::read(file.text(), "consumer").unwrap_err());
    assert!(error.contains("kubectl get clusterconfig"), "{error}");
}

#[test]
fn contracts_in_force_come_first_then_the_newest() {
    let clusters = [cluster("milan", "north")];
    let all = [
        made_at(contract("c-old", "north", "south", "Ended"), "2026-03-01T10:00:00Z"),
        made_at(contract("c-new", "north", "south", "Ended"), "2026-03-01T11:00:00Z"),
        made_at(contract("c-now", "south", "north", "Active"), "2026-03-01T09:00:00Z"),
        contract("c-unknown", "east", "south", "Active"),
    ];
    let views = views(&clusters, &all, "south");
    let shown: Vec<_> = views.iter().map(|it| (it.name.as_str(), it.peer.as_str(), it.direction)).collect();
    let expected = [
        ("c-unknown", "east", "borrow"),
        ("c-now", "milan", "lend"),
        ("c-new", "milan", "borrow"),
        ("c-old", "milan", "borrow"),
    ];
    assert_eq!(shown, expected);
    let table = show::table(&views, true, "2026-03-01T12:00:00Z".parse().unwrap());
    for part in ["NAME", "c-now", "EUR 1 per hour", "24h", "liqo-tenant-x"] {
        assert!(table.contains(part), "{part:?} is missing in:\n{table}");
    }
}

#[test]
fn a_person_reads_the_terms_that_both_signed() {
    let contract = signed(&identity("north"), &identity("south"));
    let view = view(&[], &contract, "south");
    let text = show::text(&contract, &view, true, Style::plain());
    for part in [
        "Provider:      north (ID north, key ed25519:",
        "Resources:     cpu 3500m, memory 6Gi",
        "Price:         free",
        "Valid:         from 2026-03-01T12:00:00Z to 2026-03-02T12:00:00Z",
        "Digest:        sha256:",
    ] {
        assert!(text.contains(part), "{part:?} is missing in:\n{text}");
    }
}
