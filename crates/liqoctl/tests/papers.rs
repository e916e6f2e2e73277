//! What needs no cluster: contracts are verified, and what makes no sense is refused with the right code.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test can do nothing else about it")]

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// `liqoctl` as somebody without any cluster has it.
fn liqoctl(words: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_liqoctl"));
    command.args(words).stdin(Stdio::null());
    for variable in ["KUBECONFIG", "KUBERNETES_SERVICE_HOST", "LIQO_SANDBOX_NAME"] {
        command.env_remove(variable);
    }
    command.env("HOME", "/nonexistent").env("LIQO_SANDBOX_STATE_DIR", "/nonexistent");
    command.output().unwrap()
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

fn example(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/examples").join(name);
    path.display().to_string()
}

fn verify(file: &str) -> Output {
    let (provider, consumer) = (example("provider.pem"), example("consumer.pem"));
    liqoctl(&["contract", "verify", file, "--provider-key", &provider, "--consumer-key", &consumer])
}

/// A file that is gone after the test.
struct File(PathBuf);

impl File {
    fn new(name: &str, content: &str) -> Self {
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{}-{name}", std::process::id()));
        std::fs::write(&path, content).unwrap();
        Self(path)
    }
}

impl Drop for File {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

#[test]
fn the_example_of_the_guide_holds() {
    let output = verify(&example("contract.json"));
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    assert!(said(&output).contains("is what both signed"), "{}", said(&output));
    let keys = ["provider", "consumer"].map(|party| example(&format!("{party}.pem")));
    let file = example("contract.json");
    let words =
        ["contract", "verify", &file, "--provider-key", &keys[0], "--consumer-key", &keys[1], "-o", "json"];
    let outcome: serde_json::Value = serde_json::from_slice(&liqoctl(&words).stdout).unwrap();
    assert_eq!(outcome["valid"], true, "{outcome:#}");
    assert!(outcome["checks"].as_array().unwrap().len() > 5, "{outcome:#}");
}

#[test]
fn whatever_is_changed_in_a_contract_is_noticed() {
    let text = std::fs::read_to_string(example("contract.json")).unwrap();
    let contract: serde_json::Value = serde_json::from_str(&text).unwrap();
    let fields = [
        ("/metadata/name", "c-00000000000000000000"),
        ("/spec/providerID", "somebody"),
        ("/spec/consumerID", "somebody"),
        ("/spec/terms", "{}"),
        ("/status/agreed/terms", "{}"),
        ("/status/agreed/consumerSignature", "ed25519:00"),
        ("/status/agreed/providerSignature", "ed25519:00"),
        ("/status/digest", "sha256:00"),
    ];
    for (field, value) in fields {
        let mut changed = contract.clone();
        *changed.pointer_mut(field).unwrap_or_else(|| panic!("{field}")) = value.into();
        let file = File::new("changed.json", &changed.to_string());
        let output = verify(&file.0.display().to_string());
        assert_eq!(output.status.code(), Some(1), "{field}: {}", said(&output));
        assert!(said(&output).contains('✗'), "{field}: {}", said(&output));
    }
    let mut unsigned = contract.clone();
    unsigned.as_object_mut().unwrap().remove("status");
    let file = File::new("unsigned.json", &unsigned.to_string());
    let output = verify(&file.0.display().to_string());
    assert_eq!(output.status.code(), Some(1), "{}", said(&output));
    assert!(said(&output).contains("the provider has not signed it"), "{}", said(&output));
}

#[test]
fn wrong_usage_ends_with_two_and_says_what_is_expected() {
    for (words, reason) in [
        (&["add"][..], "--auth-url"),
        (&["add", "milan", "--auth-url", "https://h", "--id", "x"], "invalid value 'milan'"),
        (&["add", "--auth-url", "http://h", "--id", "x"], "https://203.0.113.7:31520"),
        (&["add", "--auth-url", "https://h", "--id", "../x"], "is not a cluster ID"),
        (&["add", "--auth-url", "https://h", "--id", "x", "--fingerprint", "md5:00"], "expected sha256:"),
        (
            &["add", "--auth-url", "https://h", "--id", "x", "--ca-file", "x", "--insecure-skip-tls-verify"],
            "cannot be used with",
        ),
        (&["peer"], "<CLUSTER>"),
        (&["remove"], "cluster"),
        (&["token"], "rotate-own"),
        (&["token", "create", "--expires", "soon"], "is no duration"),
        (&["token", "revoke"], "<ID>"),
        (&["contract", "verify"], "<FILE|NAME>"),
        (&["contract", "verify", "x", "--provider-key", "y"], "--consumer-key"),
        (&["policy", "explain"], "--peer"),
        (&["policy", "explain", "--peer", "x", "--dry-run"], "--filename"),
        (&["policy", "explain", "-f", "x"], "--dry-run"),
        (&["generate-add-command", "--only-command", "-o", "json"], "cannot be used with"),
    ] {
        let output = liqoctl(words);
        assert_eq!(output.status.code(), Some(2), "{words:?}: {}", said(&output));
        assert!(said(&output).contains(reason), "{words:?}: {}", said(&output));
    }
}

#[test]
fn without_a_cluster_the_others_say_so() {
    for words in [
        &["peer", "x"][..],
        &["unpeer", "x"],
        &["remove", "cluster", "x"],
        &["status", "peer", "x"],
        &["token", "list"],
        &["offer", "list"],
        &["contract", "list"],
        &["contract", "verify", "--log"],
        &["policy", "list"],
        &["generate-add-command"],
    ] {
        let output = liqoctl(words);
        assert_eq!(output.status.code(), Some(1), "{words:?}: {}", said(&output));
        assert!(said(&output).contains("there is no kubeconfig"), "{words:?}: {}", said(&output));
        assert!(output.stdout.is_empty(), "{words:?}: {}", said(&output));
    }
}
