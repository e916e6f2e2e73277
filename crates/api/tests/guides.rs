//! What the guides to policies and contracts show is what comes out.
//!
//! In the guide to policies, below a heading, blocks of YAML are the policies in force, and blocks of text show what `explain` says about a cluster
//! of that name: every line must come, in that order. A remark before the block says when, if not on a Wednesday at noon,
//! and what is sold: `<!-- at 2026-07-01T22:30:00Z -->`, `<!-- sold bari by half: cpu=20 -->`.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test can do nothing else about it")]

use jiff::Timestamp;
use liqo_api::{Contract, SharingPolicy};
use liqo_core::Resources;
use liqo_core::capacity::{Capacity, Load, Node, Owner};
use liqo_core::contract::Terms;
use liqo_core::ledger::{Ledger, Sale};
use liqo_core::policy::{Peer, Percent, Policy, evaluate};

const GUIDE: &str = include_str!("../../../docs/policies.md");
const CONTRACTS: &str = include_str!("../../../docs/contracts.md");
const EXAMPLE: &str = include_str!("../../../docs/examples/contract.json");
const EXPLAIN: &str = "$ liqoctl policy explain --peer ";
const NOON: &str = "2026-07-01T12:00:00Z";

/// The cluster of the guide: nodes, their labels, and what local pods request there.
const NODES: [(&str, &str, &str, &str); 3] = [
    ("m1", "pool=general", "cpu=16 memory=64Gi pods=110", "cpu=6 memory=20Gi"),
    ("m2", "pool=general", "cpu=16 memory=64Gi pods=110", ""),
    ("g1", "pool=gpu", "cpu=32 memory=128Gi pods=110 nvidia.com/gpu=4", "cpu=4 memory=16Gi nvidia.com/gpu=1"),
];

/// The labels that the guide's cluster has put on its peers.
const PEERS: [(&str, &str); 3] = [("rome", "tier=gold"), ("bari", "tier=silver"), ("lyon", "")];

fn pairs(text: &str) -> impl Iterator<Item = (&str, &str)> {
    text.split_whitespace().map(|pair| pair.split_once('=').unwrap_or_else(|| panic!("no '=' in {pair}")))
}

fn amounts(text: &str) -> Resources {
    Resources::parse(pairs(text)).into_result().unwrap_or_else(|problems| panic!("{problems}"))
}

fn labels(text: &str) -> std::collections::BTreeMap<String, String> {
    pairs(text).map(|(key, value)| (key.to_owned(), value.to_owned())).collect()
}

fn capacity() -> Capacity {
    let mut capacity = Capacity::default();
    for (name, label, allocatable, requested) in NODES {
        let node = Node {
            name: name.to_owned(),
            allocatable: amounts(allocatable),
            labels: labels(label).into_iter().collect(),
            ready: true,
            schedulable: true,
            virtual_node: false,
        };
        let mut load = Load::default();
        if !requested.is_empty() {
            load.add(&Owner::Local, &amounts(requested));
        }
        capacity.insert(node, load);
    }
    capacity
}

fn peer(name: &str) -> Peer {
    let (_, given) =
        PEERS.iter().find(|(known, _)| *known == name).unwrap_or_else(|| panic!("who is {name}?"));
    Peer {
        id: name.parse().unwrap(),
        labels: labels(given).into_iter().collect(),
        approved: false,
        wants: Resources::new(),
    }
}

/// `bari by half: cpu=20 memory=80Gi`.
fn sale(remark: &str) -> Sale {
    let (who, what) = remark.split_once(": ").unwrap_or_else(|| panic!("{remark}"));
    let (peer, policy) = who.split_once(" by ").unwrap_or_else(|| panic!("{remark}"));
    Sale {
        contract: format!("c-{peer}").parse().unwrap(),
        sequence: 0,
        peer: peer.parse().unwrap(),
        pot: Some(policy.to_owned()),
        resources: amounts(what),
        pools: [].into(),
        since: Timestamp::UNIX_EPOCH,
    }
}

/// What is told below one heading.
#[derive(Default)]
struct Scene {
    policies: Vec<Policy>,
    now: Option<Timestamp>,
    ledger: Ledger,
    explained: usize,
}

impl Scene {
    fn remark(&mut self, remark: &str) {
        if let Some(time) = remark.strip_prefix("at ") {
            self.now = Some(time.parse().unwrap());
        } else if let Some(sold) = remark.strip_prefix("sold ") {
            self.ledger = self.ledger.restore(sale(sold), true);
        }
    }

    fn policy(&mut self, block: &str) {
        let read: SharingPolicy =
            serde_saphyr::from_str(block).unwrap_or_else(|error| panic!("{error}\n{block}"));
        let name = read.metadata.name.clone().unwrap();
        self.policies.push(Policy::read(name, &(&read.spec).into()));
    }

    fn explained(&mut self, block: &str) {
        let (command, shown) = block.split_once('\n').unwrap();
        let name = command.strip_prefix(EXPLAIN).unwrap();
        let now = self.now.unwrap_or_else(|| NOON.parse().unwrap());
        let percentage = Percent::new(90).unwrap();
        let told = evaluate(&self.policies, percentage, &peer(name), &capacity(), &self.ledger, now);
        let lines: Vec<String> = told.lines.iter().map(ToString::to_string).collect();
        let mut rest = lines.iter();
        for line in shown.lines().filter(|line| *line != "…") {
            let found = rest.any(|told| told == line);
            assert!(found, "{name} is not told, or not in this order:\n{line}\nbut:\n{}", lines.join("\n"));
        }
        self.explained += 1;
    }
}

#[test]
fn what_the_guide_to_policies_explains_comes_out_so() {
    let (mut scene, mut scenes, mut lines) = (Scene::default(), 0, GUIDE.lines());
    while let Some(line) = lines.next() {
        if line.starts_with('#') {
            scenes += scene.explained;
            scene = Scene::default();
        } else if let Some(remark) = line.strip_prefix("<!-- ").and_then(|line| line.strip_suffix(" -->")) {
            scene.remark(remark);
        } else if let Some(language) = line.strip_prefix("```") {
            let block: Vec<&str> = lines.by_ref().take_while(|line| *line != "```").collect();
            let block = block.join("\n");
            match language {
                "yaml" => scene.policy(&block),
                "text" if block.starts_with(EXPLAIN) => scene.explained(&block),
                _ => {}
            }
        }
    }
    assert!(scenes + scene.explained >= 10, "only {scenes} explanations were found");
}

#[test]
fn the_contract_of_the_guide_is_in_canonical_form() {
    let contract: Contract = serde_json::from_str(EXAMPLE).unwrap();
    let status = contract.status.unwrap();
    let agreed = status.agreed.unwrap();
    let terms = Terms::parse(agreed.terms.as_bytes()).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(status.digest, Some(terms.digest().to_string()));
    assert_eq!(contract.spec.terms, agreed.terms);
    for shown in [agreed.terms, terms.digest().to_string()] {
        assert!(CONTRACTS.contains(&shown), "docs/contracts.md does not show {shown}");
    }
}
