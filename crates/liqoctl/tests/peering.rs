//! Two real clusters with liqo installed: what a person types to get to know, lend, agree, decide and part.
//!
//! Needs `make image`.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test can do nothing else about it")]

#[path = "../../authentication/tests/support/authority.rs"]
mod authority;
#[path = "support/impostor.rs"]
mod impostor;
#[path = "support/pair.rs"]
mod support;

use std::fs;
use std::time::Duration;

use authority::Authority;
use impostor::Impostor;
use liqo_sandbox::{ClusterSpec, TestSandbox};
use serde_json::Value;
use support::{CONSUMER, PROVIDER, Pair, Said};
use tokio::time::Instant;

#[tokio::test(flavor = "multi_thread")]
async fn two_clusters_meet_agree_and_part() {
    let pair = Pair::start().await;
    who_is_unknown_is_said_to_be(&pair);
    what_is_wrong_is_refused_before_anything_is_written(&pair);
    the_printed_command_works_when_pasted(&pair);
    an_authority_may_vouch_for_the_provider(&pair);
    both_sides_tell_the_same(&pair);
    a_second_cluster_of_the_same_id_is_refused(&pair);
    a_contract_is_verified_without_any_cluster(&pair);
    a_policy_is_explained_and_tried_before_it_is_there(&pair);
    a_refusal_reaches_the_other_side_in_words(&pair);
    a_person_decides(&pair);
    unpeering_can_be_repeated_and_undone(&pair);
    removing_forgets_on_both_sides(&pair);
    a_provider_lends_unasked_and_stops(&pair);
    both_sides_are_done_at_once_and_both_ways(&pair);
    parting_is_one_way_or_both(&pair);
    peering_again_right_after_removing_waits_for_kubernetes_alone(&pair);
    a_revoked_peer_is_out(&pair);
    parting_from_a_cluster_that_is_gone_is_bounded(&pair).await;
}

fn who_is_unknown_is_said_to_be(pair: &Pair) {
    for words in [
        &["peer", "nobody"][..],
        &["unpeer", "nobody"],
        &["status", "peer", "nobody"],
        &["offer", "accept", "nobody"],
    ] {
        pair.fails(CONSUMER, words).tells(&["there is no cluster \"nobody\"", "generate-add-command"]);
    }
    pair.ok(CONSUMER, &["remove", "cluster", "nobody"]).tells(&["nobody is not known here"]);
    assert_eq!(pair.json(CONSUMER, &["offer", "list"]), Value::Array(vec![]));
    assert_eq!(pair.json(CONSUMER, &["contract", "list"]), Value::Array(vec![]));
    assert_eq!(pair.json(PROVIDER, &["policy", "list"]), Value::Array(vec![]));
    let tokens = pair.json(PROVIDER, &["token", "list"]);
    assert_eq!((&tokens[0]["id"], &tokens[0]["state"]), (&"own".into(), &"Unused".into()), "{tokens:#}");
}

/// The parts of the command that the provider prints.
fn printed(pair: &Pair) -> Value {
    pair.json(PROVIDER, &["generate-add-command"])
}

fn what_is_wrong_is_refused_before_anything_is_written(pair: &Pair) {
    let said = printed(pair);
    let text = |key: &str| said[key].as_str().unwrap();
    let (url, id, token, print) = (text("authURL"), text("clusterID"), text("token"), text("fingerprint"));
    let other = format!("sha256:{}", "0".repeat(64));
    let add =
        |url, id, print| ["add", "--auth-url", url, "--id", id, "--token", token, "--fingerprint", print];
    pair.fails(CONSUMER, &add(url, id, &other)).tells(&["cannot be trusted", "Nothing was changed"]);
    pair.fails(CONSUMER, &add(url, "another", print))
        .tells(&["another cluster answers", "expected the ID another"]);
    pair.fails(CONSUMER, &add("https://127.0.0.1:1", id, print)).tells(&["cannot reach", "--no-check"]);
    pair.fails(PROVIDER, &add(url, id, print)).tells(&["cannot peer with itself"]);
    let unpinned = ["add", "--auth-url", url, "--id", id, "--token", token];
    pair.fails(CONSUMER, &unpinned).tells(&["cannot be trusted", "--fingerprint"]);
    let vouched = |file| ["add", "--auth-url", url, "--id", id, "--token", token, "--ca-file", file];
    let authority = rcgen::generate_simple_self_signed(vec!["another".to_owned()]).unwrap().cert.pem();
    let (other, empty) = (pair.file("other-ca.crt", &authority), pair.file("empty.crt", ""));
    pair.fails(CONSUMER, &vouched(&other)).tells(&["cannot be trusted", "--ca-file", "Nothing was changed"]);
    pair.fails(CONSUMER, &vouched(&empty)).tells(&["no certificate in it", "--ca-file takes"]);
    pair.fails(CONSUMER, &vouched("/nowhere")).tells(&["cannot read the authorities", "--ca-file takes"]);
    pair.fails(CONSUMER, &["peer", "--remote-context", CONSUMER]).tells(&["cannot peer with itself"]);
    assert_eq!(pair.kubectl(CONSUMER, &["get", "foreignclusters", "-o", "name"]), "");
    assert!(
        !pair.kubectl(CONSUMER, &["get", "secrets", "-n", "liqo", "-o", "name"]).contains("remote-token")
    );
}

fn the_printed_command_works_when_pasted(pair: &Pair) {
    let command = pair.ok(PROVIDER, &["generate-add-command", "--only-command"]);
    assert!(command.out.lines().count() == 1 && !command.err.contains("Run this"), "{command}");
    let words: Vec<&str> = command.out.split_whitespace().skip(1).collect();
    pair.ok(CONSUMER, &words).tells(&["identity: provider", "certificate:", "offer:", "contract: c-"]);
    pair.ok(CONSUMER, &words).tells(&["provider was known already"]);
    let named: Vec<&str> = ["add", "cluster", "milan"].into_iter().chain(words.into_iter().skip(1)).collect();
    pair.ok(CONSUMER, &named).tells(&["provider was known already"]);
    let printed = pair.ok(PROVIDER, &["generate-add-command"]);
    assert!(printed.err.contains("Run this") && printed.out == command.out, "{printed}");
}

/// As the guide has it.
fn an_authority_may_vouch_for_the_provider(pair: &Pair) {
    let said = printed(pair);
    let (url, id) = (said["authURL"].as_str().unwrap(), said["clusterID"].as_str().unwrap());
    let host = url.parse::<http::Uri>().unwrap().host().unwrap().to_owned();
    let authority = Authority::new("company");
    let leaf = authority.deputy("department").leaf(&host);
    let (chain, key) = (pair.file("chain.crt", &leaf.chain), pair.file("server.key", &leaf.key));
    let create = ["create", "secret", "tls", "liqo-auth-tls", "-n", "liqo", "--cert", &chain, "--key", &key];
    let create: Vec<_> = create.into_iter().chain(["--dry-run=client", "-o", "yaml"]).collect();
    pair.apply(PROVIDER, &pair.kubectl(PROVIDER, &create));
    let file = pair.file("company-ca.crt", &authority.pem);
    let add = ["add", "--auth-url", url, "--id", id, "--ca-file", &file];
    pair.until(CONSUMER, &add, |said| said.code == Some(0));
    pair.ok(CONSUMER, &add).tells(&["provider was known already"]);
    let spec = ["get", "foreigncluster", PROVIDER, "-o", "jsonpath={.spec}"];
    let spec: Value = serde_json::from_str(&pair.kubectl(CONSUMER, &spec)).unwrap();
    let kept = spec["authCaBundle"].as_str().unwrap_or_default();
    assert!(kept.lines().eq(authority.pem.lines()), "{spec:#}");
    assert!(spec["authFingerprint"].is_null(), "{spec:#}");
    // And back: what is printed is the fingerprint of that certificate.
    let command = pair.ok(PROVIDER, &["generate-add-command", "--only-command"]);
    let words: Vec<&str> = command.out.split_whitespace().skip(1).collect();
    pair.ok(CONSUMER, &words).tells(&["provider is known"]);
}

/// The name of the contract in force.
fn contract(pair: &Pair, cluster: &str) -> String {
    let list = pair.json_until(cluster, &["contract", "list"], |list| list[0]["phase"] == "Active");
    list[0]["name"].as_str().unwrap().to_owned()
}

fn both_sides_tell_the_same(pair: &Pair) {
    let borrowed = pair.json(CONSUMER, &["status", "peer", PROVIDER]);
    assert_eq!(borrowed["outgoing"]["status"], "Established", "{borrowed:#}");
    assert_eq!(borrowed["outgoing"]["contract"]["direction"], "borrow");
    // The consumer was told to be done; the provider may note it a moment later.
    let lent = pair.json_until(PROVIDER, &["status", "peer", CONSUMER], |lent| {
        lent["incoming"]["status"] == "Established" && lent["incoming"]["contract"]["name"].is_string()
    });
    assert_eq!(lent["found"], "IncomingPeering");
    assert_eq!(borrowed["outgoing"]["contract"]["name"], lent["incoming"]["contract"]["name"]);
    assert_eq!(contract(pair, CONSUMER), contract(pair, PROVIDER));
    let text = pair.ok(CONSUMER, &["status", "peer", PROVIDER, "-o", "wide"]);
    for part in
        ["BORROWED FROM IT: Established", "✓ contract: c-", "Certificate:   until 20", "LENT TO IT: None"]
    {
        assert!(text.out.contains(part), "{part:?} is missing: {text}");
    }
    let offers = pair.json(CONSUMER, &["offer", "list"]);
    assert_eq!(
        (&offers[0]["peer"], &offers[0]["phase"]),
        (&PROVIDER.into(), &"Accepted".into()),
        "{offers:#}"
    );
    assert!(offers[0]["largestPod"]["cpu"].is_string(), "{offers:#}");
    let shown = pair.ok(CONSUMER, &["contract", "show", &contract(pair, CONSUMER)]);
    assert!(shown.out.contains("Provider:      provider (ID") && shown.out.contains("✓ Signed"), "{shown}");
    pair.fails(CONSUMER, &["contract", "show", "c-none"])
        .tells(&["there is no contract \"c-none\"", "There are: c-"]);
}

fn a_second_cluster_of_the_same_id_is_refused(pair: &Pair) {
    let id = printed(pair)["clusterID"].as_str().unwrap().to_owned();
    let impostor = Impostor::start(&id, PROVIDER);
    let known = || {
        let secrets = ["get", "secrets", "-n", "liqo", "-o", "jsonpath={.items[*].metadata.resourceVersion}"];
        let spec = ["get", "foreigncluster", PROVIDER, "-o", "jsonpath={.spec}"];
        (pair.kubectl(CONSUMER, &spec), pair.kubectl(CONSUMER, &secrets))
    };
    let before = known();
    let (url, print) = (impostor.url(), impostor.certificate.to_string());
    let add = ["add", "--auth-url", &url, "--id", &id, "--token", "stolen", "--fingerprint", &print];
    let said = pair.fails(CONSUMER, &add);
    said.tells(&["another cluster claims the ID", &impostor.key, "Nothing was changed"]);
    let pem = pair.kubectl(PROVIDER, &["get", "clusterconfig", "liqo", "-o", "jsonpath={.status.publicKey}"]);
    let key = liqo_identity::key::PublicKey::from_pem(pem.as_bytes()).unwrap();
    said.tells(&[&key.fingerprint(), &format!("liqoctl remove cluster {id}")]);
    assert_eq!(known(), before);
}

fn a_contract_is_verified_without_any_cluster(pair: &Pair) {
    let name = contract(pair, CONSUMER);
    let file = pair.file("contract.yaml", &pair.ok(CONSUMER, &["contract", "show", &name, "-o", "yaml"]).out);
    let key = |cluster| {
        let key =
            pair.kubectl(cluster, &["get", "clusterconfig", "liqo", "-o", "jsonpath={.status.publicKey}"]);
        pair.file(&format!("{cluster}.pem"), &key)
    };
    let (provider, consumer) = (key(PROVIDER), key(CONSUMER));
    let verify = |file: &str, provider: &str, consumer: &str| {
        let words = ["contract", "verify", file, "--provider-key", provider, "--consumer-key", consumer];
        Said::of(&pair.alone(&words))
    };
    let fine = verify(&file, &provider, &consumer);
    assert!(fine.code == Some(0) && fine.out.contains("is what both signed"), "{fine}");
    let swapped = verify(&file, &consumer, &provider);
    assert!(
        swapped.code == Some(1) && swapped.out.contains("✗ the provider's key is the given one"),
        "{swapped}"
    );
    let forged = fs::read_to_string(&file).unwrap().replacen("notAfter", "notafter", 1);
    let forged = verify(&pair.file("forged.yaml", &forged), &provider, &consumer);
    assert!(forged.code == Some(1) && forged.out.contains("does not hold"), "{forged}");
    for cluster in [CONSUMER, PROVIDER] {
        let checked = pair.ok(cluster, &["contract", "verify", &name, "--log"]);
        assert!(
            checked.out.contains("✓ the contract log notes that these terms were agreed on"),
            "{checked}"
        );
        let pages =
            ["get", "configmaps", "-n", "liqo", "-l", "sharing.liqo.io/contract-log=true", "-o", "yaml"];
        let log = pair.file(&format!("{cluster}-log.yaml"), &pair.kubectl(cluster, &pages));
        let said = Said::of(&pair.alone(&["contract", "verify", &format!("--log={log}")]));
        assert!(said.code == Some(0) && said.out.contains("the log is what was written"), "{said}");
    }
}

const GOLD: &str = "apiVersion: sharing.liqo.io/v1alpha1
kind: SharingPolicy
metadata: {name: gold-only}
spec: {peers: {matchLabels: {tier: gold}}, share: {percentage: 50}}
";

fn a_policy_is_explained_and_tried_before_it_is_there(pair: &Pair) {
    let lines = pair.ok(PROVIDER, &["policy", "explain", "--peer", CONSUMER]);
    assert!(
        lines.out.contains("the cluster's own percentage applies") && lines.out.contains("cpu: offered: "),
        "{lines}"
    );
    let explained = pair.json(PROVIDER, &["policy", "explain", "--peer", CONSUMER]);
    let offered = pair.json(PROVIDER, &["offer", "list"]);
    assert_eq!(
        explained["resources"]["memory"], offered[0]["resources"]["memory"],
        "{explained:#}\n{offered:#}"
    );
    let file = pair.file("gold.yaml", GOLD);
    let dry = ["policy", "explain", "--dry-run", "-f", &file];
    let changes = pair.ok(PROVIDER, &dry);
    assert!(changes.out.contains("refused: policy gold-only needs label tier=gold"), "{changes}");
    assert_eq!(pair.kubectl(PROVIDER, &["get", "sharingpolicies", "-o", "name"]), "");
    let wrong = pair.file("wrong.yaml", &GOLD.replace("50", "150"));
    pair.fails(PROVIDER, &["policy", "explain", "--dry-run", "-f", &wrong])
        .tells(&["the API server would not take gold-only"]);
}

fn a_refusal_reaches_the_other_side_in_words(pair: &Pair) {
    pair.apply(PROVIDER, GOLD);
    let sentence = "policy gold-only needs label tier=gold";
    pair.until(CONSUMER, &["status", "peer", PROVIDER], |said| {
        said.code == Some(1) && said.out.contains(sentence)
    });
    pair.fails(CONSUMER, &["peer", PROVIDER]).tells(&[sentence, "liqoctl status peer provider"]);
    let list = pair.json(PROVIDER, &["policy", "list"]);
    assert_eq!((&list[0]["name"], &list[0]["whom"]), (&"gold-only".into(), &"tier=gold".into()), "{list:#}");
    pair.kubectl(PROVIDER, &["label", "foreigncluster", CONSUMER, "tier=gold"]);
    // A refusal that lasts for seconds is taken for one that stays.
    pair.until(CONSUMER, &["status", "peer", PROVIDER], |said| !said.out.contains(sentence));
    pair.ok(CONSUMER, &["peer", PROVIDER]).tells(&["contract: c-"]);

    let ask = GOLD.replace("share:", "approval: Required, share:");
    pair.apply(PROVIDER, &ask);
    pair.until(PROVIDER, &["policy", "explain", "--peer", CONSUMER], |said| {
        said.out.contains("needs somebody's approval")
    });
    pair.ok(PROVIDER, &["policy", "approve", CONSUMER]).tells(&["consumer is approved"]);
    pair.until(CONSUMER, &["status", "peer", PROVIDER], |said| said.code == Some(0));
    pair.ok(CONSUMER, &["peer", PROVIDER]).tells(&["contract: c-"]);
    pair.ok(PROVIDER, &["policy", "approve", CONSUMER, "--revoke"]);
    pair.kubectl(PROVIDER, &["delete", "sharingpolicy", "gold-only"]);
    pair.until(CONSUMER, &["status", "peer", PROVIDER], |said| said.code == Some(0));
    pair.ok(CONSUMER, &["peer", PROVIDER]);
}

/// By the manager's flag; what the ClusterConfig says counts before it.
fn a_person_decides(pair: &Pair) {
    pair.ok(CONSUMER, &["unpeer", PROVIDER]).tells(&["nothing is borrowed from provider any more"]);
    let manager = "deployment/liqo-controller-manager";
    let by_hand = r#"[{"op": "add", "path": "/spec/template/spec/containers/0/args/-",
        "value": "--offer-disable-auto-accept=true"}]"#;
    let pods = pair.kubectl(CONSUMER, &["-n", "liqo", "get", "pods", "-o", "name"]);
    let old = pods.lines().find(|pod| pod.contains("controller-manager")).unwrap();
    pair.kubectl(CONSUMER, &["-n", "liqo", "patch", manager, "--type=json", "-p", by_hand]);
    pair.kubectl(CONSUMER, &["-n", "liqo", "rollout", "status", manager, "--timeout=60s"]);
    // It would accept by itself as long as it leads.
    pair.kubectl(CONSUMER, &["-n", "liqo", "wait", "--for=delete", old, "--timeout=60s"]);
    pair.fails(CONSUMER, &["peer", PROVIDER])
        .tells(&["somebody has to decide", "liqoctl offer accept provider"]);
    pair.ok(CONSUMER, &["offer", "refuse", PROVIDER]).tells(&["refused"]);
    pair.json_until(CONSUMER, &["offer", "list"], |list| list[0]["phase"] == "Refused");
    pair.ok(CONSUMER, &["offer", "accept", PROVIDER]).tells(&["accepted: cpu", "contract: c-"]);
    pair.ok(CONSUMER, &["offer", "accept", PROVIDER]);
    let automatic = r#"{"spec": {"borrowing": {"automatic": true}}}"#;
    pair.kubectl(CONSUMER, &["patch", "clusterconfig", "liqo", "--type=merge", "-p", automatic]);
}

fn unpeering_can_be_repeated_and_undone(pair: &Pair) {
    pair.ok(CONSUMER, &["unpeer", PROVIDER]);
    pair.ok(CONSUMER, &["unpeer", PROVIDER]);
    let peer = pair.json(CONSUMER, &["status", "peer", PROVIDER]);
    assert_eq!(
        (&peer["outgoing"]["status"], &peer["outgoing"]["enabled"]),
        (&"None".into(), &"No".into()),
        "{peer:#}"
    );
    assert_eq!(peer["incoming"]["enabled"], "Auto", "nobody asked for anything: {peer:#}");
    pair.until(PROVIDER, &["contract", "list", "-o", "json"], |said| !said.out.contains("\"Active\""));
    pair.ok(CONSUMER, &["peer", PROVIDER]).tells(&["contract: c-"]);
    assert_eq!(contract(pair, CONSUMER), contract(pair, PROVIDER));
}

fn removing_forgets_on_both_sides(pair: &Pair) {
    pair.ok(CONSUMER, &["remove", "cluster", PROVIDER]).tells(&["provider is gone"]);
    pair.ok(CONSUMER, &["remove", "cluster", PROVIDER]).tells(&["provider is not known here"]);
    pair.until(PROVIDER, &["status", "peer", CONSUMER], |said| said.err.contains("there is no cluster"));
    for cluster in [CONSUMER, PROVIDER] {
        pair.json_until(cluster, &["contract", "list"], |list| *list == Value::Array(vec![]));
        pair.ok(cluster, &["contract", "verify", "--log"]);
    }
}

/// The provider calls, under a name of its own for the consumer; a person takes what lies there.
fn a_provider_lends_unasked_and_stops(pair: &Pair) {
    let command = pair.ok(CONSUMER, &["generate-add-command", "--only-command"]).out;
    let flags = command.split_whitespace().skip(2);
    let add: Vec<&str> = ["add", "cluster", "rome"].into_iter().chain(flags).collect();
    let lend: Vec<&str> = add.iter().copied().chain(["--lend", "--no-borrow"]).collect();
    pair.ok(PROVIDER, &lend).tells(&["rome is known", "standing offer: somebody at", "liqoctl offer accept"]);
    let lent = pair.json(PROVIDER, &["status", "peer", "rome"]);
    assert_eq!((&lent["outgoing"]["enabled"], &lent["incoming"]["enabled"]), (&"No".into(), &"Yes".into()));
    pair.json_until(CONSUMER, &["offer", "list"], |list| list[0]["phase"] == "ManualActionRequired");
    pair.ok(CONSUMER, &["offer", "accept", PROVIDER]).tells(&["accepted: cpu", "contract: c-"]);
    assert_eq!(contract(pair, CONSUMER), contract(pair, PROVIDER));
    pair.ok(PROVIDER, &lend).tells(&["rome was known already", "standing offer: consumer may use cpu"]);

    for _ in 0..2 {
        pair.ok(PROVIDER, &["unpeer", "rome"]).tells(&["nothing is lent to rome any more", "--lend"]);
    }
    pair.until(CONSUMER, &["contract", "list", "-o", "json"], |said| !said.out.contains("\"Active\""));
    pair.fails(PROVIDER, &["peer", "rome", "--no-borrow"]).tells(&["say --lend as well"]);
    pair.ok(PROVIDER, &["peer", "rome", "--lend", "--no-borrow"]).tells(&["standing offer"]);
    pair.until(CONSUMER, &["contract", "list", "-o", "json"], |said| said.out.contains("\"Active\""));

    pair.ok(PROVIDER, &["remove", "cluster", "rome"]).tells(&["rome is gone"]);
    pair.ok(CONSUMER, &["remove", "cluster", PROVIDER]);
    for cluster in [CONSUMER, PROVIDER] {
        pair.json_until(cluster, &["contract", "list"], |list| *list == Value::Array(vec![]));
    }
}

fn both_sides_are_done_at_once_and_both_ways(pair: &Pair) {
    let peer = ["peer", "milan", "--remote-context", PROVIDER, "--bidirectional"];
    pair.ok(CONSUMER, &peer).tells(&["milan is known", "consumer is known", "contract: c-"]);
    pair.ok(CONSUMER, &peer).tells(&["milan was known already"]);
    for (cluster, other) in [(CONSUMER, "milan"), (PROVIDER, CONSUMER)] {
        // Who borrows is waited for; who lends may note it a moment later.
        let status = pair.json_until(cluster, &["status", "peer", other], |status| {
            status["incoming"]["status"] == "Established"
        });
        assert_eq!(status["outgoing"]["status"], "Established", "{status:#}");
        assert_eq!(pair.json(cluster, &["contract", "list"]).as_array().unwrap().len(), 2);
    }
}

fn parting_is_one_way_or_both(pair: &Pair) {
    let active = |pair: &Pair, cluster: &str| {
        let all = pair.json(cluster, &["contract", "list"]);
        all.as_array().unwrap().iter().filter(|contract| contract["phase"] == "Active").count()
    };
    let one_way = ["unpeer", "milan", "--direction", "incoming"];
    for _ in 0..2 {
        pair.ok(CONSUMER, &one_way)
            .tells(&["nothing is lent to milan any more", "what is borrowed from milan stays"]);
        assert_eq!(active(pair, CONSUMER), 1);
    }
    let words = "the provider does not lend to this cluster";
    pair.until(PROVIDER, &["status", "peer", CONSUMER], |said| said.out.contains(words));
    for _ in 0..2 {
        pair.ok(CONSUMER, &["unpeer", "milan"]).tells(&[
            "nothing is borrowed from milan any more",
            "nothing is lent to milan any more",
            "stays known",
        ]);
        assert_eq!(active(pair, CONSUMER), 0);
    }
    pair.until(PROVIDER, &["contract", "list", "-o", "json"], |said| !said.out.contains("\"Active\""));
    pair.ok(CONSUMER, &["peer", "milan"]).tells(&["it is refused here", "contract: c-"]);
    pair.ok(CONSUMER, &["peer", "milan", "--remote-context", PROVIDER, "--bidirectional"])
        .tells(&["milan is not refused any more", "contract: c-"]);
    pair.ok(CONSUMER, &["unpeer", "milan", "--direction", "outgoing"])
        .tells(&["nothing is borrowed from milan any more", "what is lent to milan stays"]);
    assert_eq!(active(pair, CONSUMER), 1);
    pair.ok(CONSUMER, &["peer", "milan"]).tells(&["contract: c-"]);
}

/// Kubernetes begins to empty a namespace five seconds after it was deleted; the rest is ours.
const AGAIN: Duration = Duration::from_secs(20);

fn peering_again_right_after_removing_waits_for_kubernetes_alone(pair: &Pair) {
    let started = Instant::now();
    pair.ok(CONSUMER, &["remove", "cluster", "milan"]).tells(&["milan is gone"]);
    pair.ok(CONSUMER, &["peer", "milan", "--remote-context", PROVIDER, "--bidirectional"])
        .tells(&["milan is known", "contract: c-"]);
    let took = started.elapsed();
    println!("removed and peered again, both ways: {took:?}");
    assert!(took < AGAIN, "{took:?}");
}

fn a_revoked_peer_is_out(pair: &Pair) {
    let tokens = pair.json(PROVIDER, &["token", "list"]);
    let used = tokens.as_array().unwrap().iter().find(|it| it["state"] == "Used" && it["id"] != "own");
    let id = used.unwrap_or_else(|| panic!("{tokens:#}"))["id"].as_str().unwrap();
    pair.ok(PROVIDER, &["token", "revoke", id]).tells(&["is revoked", "is out within seconds"]);
    pair.ok(PROVIDER, &["token", "revoke", id]);
    pair.fails(PROVIDER, &["token", "revoke", "own"]).tells(&["rotate-own"]);
    pair.fails(PROVIDER, &["token", "revoke", "ffffffff"]).tells(&["there is no token ffffffff"]);
    let made =
        pair.json(PROVIDER, &["token", "create", "--for-cluster", "somebody", "--note", "for the test"]);
    let list = pair.ok(PROVIDER, &["token", "list"]);
    assert!(list.out.contains("for the test") && list.out.contains("Revoked"), "{list}");
    assert!(!list.out.contains(made["token"].as_str().unwrap()), "{list}");
    let before = printed(pair)["token"].clone();
    pair.ok(PROVIDER, &["token", "rotate-own"]).tells(&["generate-add-command"]);
    assert_ne!(printed(pair)["token"], before);
}

async fn parting_from_a_cluster_that_is_gone_is_bounded(pair: &Pair) {
    pair.sandbox.cut(CONSUMER, PROVIDER).await;
    pair.ok(CONSUMER, &["remove", "cluster", "milan", "--force", "--timeout", "30s"])
        .tells(&["milan is gone"]);
    pair.ok(PROVIDER, &["remove", "cluster", CONSUMER, "--force", "--timeout", "30s"])
        .tells(&["consumer is gone"]);
    pair.sandbox.heal().await;
    let there = pair.sandbox.cluster(PROVIDER).kubeconfig().display().to_string();
    pair.ok(CONSUMER, &["peer", "office", "--remote-kubeconfig", &there])
        .tells(&["office is known", "contract: c-"]);
}

/// The clusters of the pair.
fn clusters() -> [ClusterSpec; 2] {
    [ClusterSpec::real(CONSUMER, 1), ClusterSpec::real(PROVIDER, 1)]
}

impl Pair {
    async fn start() -> Self {
        let pair = Self { sandbox: TestSandbox::start(clusters()).await };
        for cluster in [CONSUMER, PROVIDER] {
            pair.ok(cluster, &["install", "sandbox"]);
        }
        pair
    }
}
