use proptest::prelude::*;
use serde_json::{Value, json};

use super::{Clauses, InvalidTerms, Party, PublicKey, Terms};
use crate::canonical::Digest;
use crate::contract::{Enforcement, ServiceLevel};
use crate::money::{Period, Prices};
use crate::pools::{Pool, Pools};
use crate::quantity::{Format, Quantity};
use crate::resources::Resources;
use crate::selector::Labels;
use crate::span::Span;
use crate::testing::{clauses, contract_id, list, time};

/// Something done to clauses.
type Edit<'a> = &'a dyn Fn(&mut Clauses);

/// The form as it is documented; changing it breaks every signature that was ever made.
const WRITTEN: &str = concat!(
    r#"{"consumer":{"id":"south","name":"sueden","publicKey":"ed25519:0202020202020202020202020202020202020202020202020202020202020202"},"#,
    r#""contract":"c-1","enforcement":"hard","notAfter":"2026-08-01T00:00:00Z","notBefore":"2026-07-01T00:00:00Z","#,
    r#""offer":"sha256:ca978112ca1bbdcafac231b39a23dc4da786eff8147c4e72b9807785afee48bb","#,
    r#""prices":{"currency":"EUR","perUnit":{"cpu":"20m","memory":"4m"},"period":3600},"#,
    r#""provider":{"id":"north","name":"norden","publicKey":"ed25519:0101010101010101010101010101010101010101010101010101010101010101"},"#,
    r#""renewal":2592000,"resources":{"cpu":"1500m","memory":"4Gi","nvidia.com/gpu":"1"},"sequence":0,"#,
    r#""serviceLevel":{"availability":"99.9"},"version":1}"#
);

fn terms(clauses: Clauses) -> Terms {
    Terms::new(clauses).unwrap_or_else(|problem| panic!("{problem}"))
}

#[test]
fn the_written_form_is_the_documented_one() {
    let mut clauses = clauses();
    clauses.offer =
        "sha256:ca978112ca1bbdcafac231b39a23dc4da786eff8147c4e72b9807785afee48bb".parse().unwrap();
    let terms = terms(clauses);
    assert_eq!(String::from_utf8_lossy(terms.canonical()), WRITTEN);
    let expected = Digest::of("liqo.io/contract-terms/v1", WRITTEN.as_bytes());
    assert_eq!(terms.digest(), expected);
    let input = terms.signing_input();
    assert!(input.starts_with(b"liqo.io/contract-signature/v1\0") && input.ends_with(expected.as_bytes()));
    assert_eq!(input.len(), 30 + 32);
    assert_eq!(Terms::parse(WRITTEN.as_bytes()).unwrap(), terms);
}

#[test]
fn how_an_amount_was_written_does_not_matter() {
    let mut other = clauses();
    other.resources = list("cpu=1.5, memory=4194304Ki, nvidia.com/gpu=1000m");
    assert_eq!(terms(other).digest(), terms(clauses()).digest());
}

#[test]
fn clauses_that_make_no_sense_are_refused() {
    let changed = |change: &dyn Fn(&mut Clauses)| {
        let mut clauses = clauses();
        change(&mut clauses);
        Terms::new(clauses).map(|terms| terms.digest()).map_err(|problem| problem.to_string())
    };
    let cases: [(Edit<'_>, &str); 15] = [
        (&|c| c.consumer.id = c.provider.id.clone(), "consumer.id: a cluster has no contract with itself"),
        (&|c| c.consumer.key = c.provider.key, "consumer.publicKey: both parties have the same key"),
        (&|c| c.sequence = 1, "predecessor: every amendment names its predecessor"),
        (&|c| c.predecessor = Some(c.offer), "predecessor: every amendment names its predecessor"),
        (&|c| (c.sequence, c.predecessor) = (1 << 53, Some(c.offer)), "sequence: is beyond 9007199254740991"),
        (&|c| c.not_after = c.not_before, "notAfter: must be later than notBefore"),
        (&|c| c.not_before = time("2026-07-01T00:00:00.5Z"), "notBefore: must be a whole second"),
        (
            &|c| c.not_before = time("1969-07-01T00:00:00Z"),
            "notBefore: must be a whole second, not before 1970",
        ),
        (&|c| c.resources = Resources::new(), "resources: a contract about nothing is none"),
        (&|c| c.resources = list("cpu=0"), "resources[cpu]: is 0; must be more than 0"),
        (&|c| c.resources = list("cpu=-1"), "resources[cpu]: is -1; must be more than 0"),
        (
            &|c| c.resources = list("cpu=1e300"),
            "resources[cpu]: is 100e27; must be more than 0 and at most 10^18",
        ),
        (
            &|c| c.resources = list("cpu=1.0001"),
            "resources[cpu]: is 1000100u; must be more than 0 and at most 10^18, in thousandths",
        ),
        (&|c| c.resources = list("nvidia.com/gpu=500m"), "resources[nvidia.com/gpu]: is 500m; must be"),
        (
            &|c| {
                c.resources = (0..65)
                    .map(|index| {
                        (format!("r{index}").parse().unwrap(), Quantity::from_units(1, Format::DecimalSi))
                    })
                    .collect();
            },
            "resources: has 65 entries, at most 64 are allowed",
        ),
    ];
    for (change, expected) in cases {
        let problem = changed(change).unwrap_err();
        assert!(problem.starts_with(expected), "{problem}");
    }
}

/// Every field of the document with a value that must not be accepted, or that must give other terms.
#[test]
fn whatever_is_changed_in_the_document_is_noticed() {
    let document: Value = serde_json::from_str(WRITTEN).unwrap();
    let original = Terms::parse(WRITTEN.as_bytes()).unwrap();
    let mut paths = Vec::new();
    collect_paths(&document, "", &mut paths);
    assert_eq!(paths.len(), 28, "{paths:#?}");
    let replacements = [
        json!(null),
        json!(true),
        json!(0),
        json!(1),
        json!(2),
        json!(-1),
        json!(9_007_199_254_740_991_u64),
        json!(""),
        json!("1"),
        json!("2"),
        json!("x"),
        json!("soft"),
        json!("1e300"),
        json!("-1"),
        json!("2027-01-01T00:00:00Z"),
        json!([]),
        json!({}),
        json!("\u{202e}"),
        json!("ed25519:0303030303030303030303030303030303030303030303030303030303030303"),
        json!("sha256:0303030303030303030303030303030303030303030303030303030303030303"),
    ];
    let mut accepted = 0;
    for path in &paths {
        let mut removed = document.clone();
        let (parent, key) = path.rsplit_once('/').unwrap();
        removed.pointer_mut(parent).unwrap().as_object_mut().unwrap().remove(&key.replace("~1", "/"));
        let removed = [removed];
        let replaced = replacements.iter().map(|replacement| {
            let mut changed = document.clone();
            *changed.pointer_mut(path).unwrap() = replacement.clone();
            changed
        });
        for changed in removed.into_iter().chain(replaced).filter(|changed| *changed != document) {
            let Ok(bytes) = crate::canonical::bytes(&changed) else { continue };
            if let Ok(terms) = Terms::parse(&bytes) {
                accepted += 1;
                assert_ne!(terms.digest(), original.digest(), "{path}: {changed}");
                assert_ne!(terms, original, "{path}: {changed}");
            }
        }
    }
    assert!(accepted > 10, "the test must have changed something that is allowed: {accepted}");
}

fn collect_paths(value: &Value, at: &str, paths: &mut Vec<String>) {
    if let Some(fields) = value.as_object() {
        for (key, field) in fields {
            let path = format!("{at}/{}", key.replace('/', "~1"));
            paths.push(path.clone());
            collect_paths(field, &path, paths);
        }
    }
}

#[test]
fn another_spelling_of_the_same_is_refused() {
    for (from, to) in [
        ("\"1500m\"", "\"1.5\""),
        ("\"4Gi\"", "\"4096Mi\""),
        ("\"20m\"", "\"0.02\""),
        ("2026-08-01T00:00:00Z", "2026-08-01T02:00:00+02:00"),
        ("2026-08-01T00:00:00Z", "2026-08-01T00:00:00.000Z"),
        ("\"version\":1", "\"version\": 1"),
        ("\"sequence\":0", "\"sequence\":00"),
        ("\"hard\"", "\"h\\u0061rd\""),
    ] {
        assert!(WRITTEN.contains(from));
        let spelled = WRITTEN.replace(from, to);
        assert!(Terms::parse(spelled.as_bytes()).is_err(), "{spelled}");
    }
    assert!(Terms::parse(format!("{WRITTEN}\n").as_bytes()).is_err());
}

#[test]
fn later_versions_and_floods_are_refused_in_words() {
    let problem = Terms::parse(br#"{"everything":"new","version":2}"#).unwrap_err();
    assert_eq!(problem, InvalidTerms::Version(2));
    assert_eq!(problem.to_string(), "terms of version 2 are not known here; this program reads version 1");
    let problem = Terms::parse(&vec![b'1'; 1 << 20]).unwrap_err().to_string();
    assert_eq!(problem, "terms of 1048576 bytes are not read; at most 131072 are allowed");
    assert!(Terms::parse(b"{}").unwrap_err().to_string().contains("missing field"));
}

#[test]
fn the_longest_allowed_terms_fit() {
    let mut long = clauses();
    let promises = (0..32).map(|index| (format!("promise-{index}"), "ä".repeat(512)));
    long.service_level = ServiceLevel::new(promises.collect()).unwrap();
    let name =
        |index: usize| format!("{}.example/{}{index}", "a".repeat(240), "b".repeat(60)).parse().unwrap();
    let amount = Quantity::from_units(1, Format::DecimalSi);
    long.resources = (10..74).map(|index| (name(index), amount)).collect();
    long.prices = Some(
        Prices::new("EUR".parse().unwrap(), Period::HOUR, (10..74).map(|index| (name(index), amount)))
            .unwrap(),
    );
    let terms = terms(long);
    assert_eq!(Terms::parse(terms.canonical()).unwrap(), terms);
}

#[test]
fn an_amendment_follows_on_what_it_names() {
    let first = terms(clauses());
    let mut next = clauses();
    (next.sequence, next.predecessor) = (1, Some(first.digest()));
    next.resources = list("cpu=1");
    next.provider.key = PublicKey::new([9; 32]);
    let second = terms(next.clone());
    assert_eq!(second.check_follows(&first), Ok(()));
    let cases: [(Edit<'_>, &str); 5] = [
        (&|c| c.contract = contract_id("c-2"), "it is of another contract"),
        (&|c| c.provider.id = "east".parse().unwrap(), "the provider is another cluster"),
        (&|c| c.consumer.id = "east".parse().unwrap(), "the consumer is another cluster"),
        (&|c| c.sequence = 2, "its number is not the next one"),
        (&|c| c.predecessor = Some(c.offer), "it names other terms as its predecessor"),
    ];
    for (change, expected) in cases {
        let mut other = next.clone();
        change(&mut other);
        let problem = terms(other).check_follows(&first).unwrap_err().to_string();
        assert!(problem.ends_with(expected), "{problem}");
    }
    assert!(first.check_follows(&second).is_err() && second.check_follows(&second).is_err());
}

#[test]
fn keys_are_read_and_written() {
    let key = PublicKey::new([0xab; 32]);
    assert_eq!(key.to_string().parse(), Ok(key));
    for text in ["", "ed25519:", "ed25519:ab", &"ab".repeat(32), &format!("ed25519:{}", "AB".repeat(32))] {
        assert!(text.parse::<PublicKey>().unwrap_err().to_string().contains("is not a public key"));
    }
}

fn any_clauses() -> impl Strategy<Value = Clauses> {
    let label = "[a-z0-9]([-a-z0-9]{0,8}[a-z0-9])?";
    let party = |seed: u8| {
        (label, label, any::<[u8; 31]>()).prop_map(move |(id, name, key)| {
            let mut bytes = [seed; 32];
            bytes[1..].copy_from_slice(&key);
            let id = format!("{seed}{id}").parse().unwrap();
            Party { id, name: name.parse().unwrap(), key: PublicKey::new(bytes) }
        })
    };
    let resources =
        (1_i64..1 << 50, 1_i64..1 << 50, prop::option::of(1_i64..1000)).prop_map(|(cpu, memory, gpu)| {
            let gpu = gpu.map_or_else(String::new, |gpu| format!(", nvidia.com/gpu={gpu}"));
            list(&format!("cpu={cpu}m, memory={memory}{gpu}"))
        });
    let prices = prop::option::of((0_i64..1 << 40, 1_u64..40_000_000).prop_map(|(nanos, seconds)| {
        let price = Quantity::from_nanos(nanos.into(), Format::DecimalSi).unwrap();
        let period = Period::from_seconds(seconds).unwrap();
        Prices::new("EUR".parse().unwrap(), period, [("cpu".parse().unwrap(), price)]).unwrap()
    }));
    let text = any::<String>()
        .prop_map(|text| text.chars().filter(|c| !c.is_control()).take(40).collect::<String>());
    let promises = prop::collection::btree_map("[a-zA-Z0-9._-]{1,9}", text, 0..3);
    let times = (0_i64..4_000_000_000, 1_i64..4_000_000_000, prop::option::of(1_u64..1_000_000));
    let numbers = (0_u64..4, any::<[u8; 2]>(), any::<bool>(), any::<bool>());
    ((party(b'1'), party(b'2')), resources, prices, promises, times, numbers).prop_map(
        |(
            (provider, consumer),
            resources,
            prices,
            promises,
            (from, length, renewal),
            (sequence, digests, hard, pooled),
        )| Clauses {
            contract: contract_id("c"),
            sequence,
            predecessor: (sequence > 0).then(|| Digest::of("test", &digests[..1])),
            provider,
            consumer,
            pools: if pooled { halves(&resources) } else { [].into() },
            resources,
            prices,
            not_before: jiff::Timestamp::from_second(from).unwrap(),
            not_after: jiff::Timestamp::from_second(from + length).unwrap(),
            renewal: renewal.map(Span::clamped),
            enforcement: if hard { Enforcement::Hard } else { Enforcement::Soft },
            service_level: ServiceLevel::new(promises).unwrap(),
            offer: Digest::of("test", &digests),
        },
    )
}

/// The same in two pools, as evenly as can be.
fn halves(resources: &Resources) -> Pools {
    let names = ["a", "b"].map(|name| name.parse().unwrap());
    let all = names.into_iter().map(|name| (name, resources.clone())).collect();
    let labels = [("zone".to_owned(), "north".to_owned())].into();
    let parts = crate::pools::split(resources, &all).into_iter();
    let pools = parts.filter(|(_, resources)| !resources.is_empty());
    pools.map(|(name, resources)| (name, Pool { resources, labels: Labels::clone(&labels) })).collect()
}

#[test]
fn pools_are_part_of_what_is_signed_and_must_add_up() {
    let mut clauses = clauses();
    let without = Terms::new(clauses.clone()).unwrap();
    clauses.pools = halves(&clauses.resources);
    let terms = Terms::new(clauses.clone()).unwrap();
    let text = std::str::from_utf8(terms.canonical()).unwrap();
    let expected = r#""pools":{"a":{"labels":{"zone":"north"},"resources":{"cpu":"750m","memory":"2Gi","nvidia.com/gpu":"1"}},"b":{"labels":{"zone":"north"},"resources":{"cpu":"750m","memory":"2Gi"}}},"#;
    assert!(text.contains(expected), "{text}");
    assert_eq!(text.replacen(expected, "", 1).as_bytes(), without.canonical(), "nothing else is different");
    assert_ne!(terms.digest(), without.digest());

    let problem = |change: &dyn Fn(&mut Clauses)| {
        let mut changed = clauses.clone();
        change(&mut changed);
        Terms::new(changed).unwrap_err().to_string()
    };
    assert_eq!(problem(&|c| drop(c.pools.pop_first())), "pools: do not add up to the resources");
    let nothing = |c: &mut Clauses| drop(c.pools.insert("c".parse().unwrap(), Pool::default()));
    assert_eq!(problem(&nothing), "pools[c].resources: a contract about nothing is none");
    let label = |c: &mut Clauses| {
        c.pools.values_mut().for_each(|pool| drop(pool.labels.insert("a b".to_owned(), String::new())));
    };
    assert!(
        problem(&label).starts_with("pools[a].labels[a b]: \"a b\" is not a label key"),
        "{}",
        problem(&label)
    );
    for wrong in [r#""pools":{},"#, r#""pools":{"A":{"resources":{"cpu":"1"}}},"#, r#""pools":null,"#] {
        let text = text.replacen(expected, wrong, 1);
        assert!(Terms::parse(text.as_bytes()).is_err(), "{wrong}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn terms_survive_the_way_through_their_bytes(clauses in any_clauses()) {
        let terms = Terms::new(clauses.clone()).unwrap();
        let read = Terms::parse(terms.canonical()).unwrap();
        prop_assert_eq!(&*read, &clauses);
        prop_assert_eq!(read.digest(), terms.digest());
    }

    #[test]
    fn different_terms_have_different_bytes(a in any_clauses(), b in any_clauses()) {
        let same = a == b;
        let (a, b) = (Terms::new(a).unwrap(), Terms::new(b).unwrap());
        prop_assert_eq!(same, a.canonical() == b.canonical());
        prop_assert_eq!(same, a.digest() == b.digest());
    }

    #[test]
    fn a_flipped_bit_is_noticed(clauses in any_clauses(), position: prop::sample::Index, bit in 0_u8..8) {
        let terms = Terms::new(clauses).unwrap();
        let mut bytes = terms.canonical().to_vec();
        let at = position.index(bytes.len());
        bytes[at] ^= 1 << bit;
        match Terms::parse(&bytes) {
            Err(_) => {}
            Ok(other) => prop_assert_ne!(other.digest(), terms.digest()),
        }
    }
}
