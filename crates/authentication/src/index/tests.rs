use k8s_openapi::api::core::v1::{Namespace, Secret};
use liqo_kit::Index as _;
use serde_json::json;

use super::*;
use crate::testing::{Put, foreign_cluster, milan, now, tenant};

#[expect(clippy::needless_pass_by_value, reason = "json! makes values")]
fn secret(name: &str, labels: serde_json::Value, data: serde_json::Value) -> Secret {
    let metadata = json!({ "name": name, "namespace": "liqo", "uid": "u", "labels": labels });
    serde_json::from_value(json!({ "metadata": metadata, "data": data })).unwrap()
}

#[test]
fn secrets_of_the_house_are_taken_for_what_they_are_and_forgotten() {
    let mut index = Index::default();
    let token = json!({ "token": "c2VjcmV0" });
    let remote = json!({ "discovery.liqo.io/auth-token": "", "discovery.liqo.io/cluster-id": "milan-id" });
    let secrets = [
        secret("auth-token", json!({}), token.clone()),
        secret("remote-token-milan-id", remote, token.clone()),
        secret("liqo-auth-tls", json!({}), json!({})),
    ];
    for secret in &secrets {
        index.apply(&Key::namespaced("liqo", &secret.name_any()), HouseSecret::read(secret).unwrap());
    }
    assert_eq!(index.book.own.as_ref().unwrap().reveal(), "secret");
    assert_eq!(index.remote_tokens["milan-id"].token.reveal(), "secret");
    // It is there and is none: somebody must look at it, and it must not be overwritten.
    assert!(index.serving_exists && index.serving.is_none());
    for secret in &secrets {
        liqo_kit::Index::<HouseSecret>::delete(&mut index, &Key::namespaced("liqo", &secret.name_any()));
    }
    assert!(!index.own_token_exists && !index.serving_exists && index.remote_tokens.is_empty());
    assert!(HouseSecret::read(&secret("other", json!({}), token)).is_none());
}

#[test]
fn the_first_foreign_cluster_that_stays_is_the_peers() {
    let mut index = Index::default();
    let spec = json!({ "clusterIdentity": { "clusterID": "milan-id", "clusterName": "milan" } });
    let made = |name: &str, day: u32, deleting: bool| {
        let mut metadata = json!({ "creationTimestamp": format!("2026-01-{day:02}T00:00:00Z") });
        if deleting {
            metadata["deletionTimestamp"] = json!(now());
        }
        foreign_cluster(name, metadata, spec.clone())
    };
    index.put_cluster(made("third", 3, false));
    index.put_cluster(made("second", 2, false));
    assert_eq!(index.cluster_of(&milan().id).unwrap().name_any(), "second");
    index.put_cluster(made("first", 1, true));
    assert_eq!(index.cluster_of(&milan().id).unwrap().name_any(), "second");
}

#[test]
fn a_tenant_namespace_says_who_its_peer_is() {
    let peer = tenant(&milan().id, &[("authentication.liqo.io/admitted-by", "own")]);
    assert_eq!((peer.key, peer.admitted_by), (KnownKey::None, Some(AdmittedBy::Own)));
    let unlabelled: Namespace = serde_json::from_value(json!({ "metadata": { "name": "x" } })).unwrap();
    assert_eq!(Tenant::read(&unlabelled), None);
}

#[test]
fn claims_read_back_and_nonsense_is_none() {
    let claim = Claim { at: now(), fingerprint: "ab".repeat(32) };
    assert_eq!(Claim::parse(&claim.to_annotation()), Some(claim.clone()));
    let keyless = Claim { fingerprint: NO_KEY.to_owned(), ..claim };
    assert_eq!(Claim::parse(&keyless.to_annotation()), Some(keyless));
    for text in ["", "x", "2026-01-01T00:00:00Z", "2026-01-01T00:00:00Z <script>", "never none"] {
        assert_eq!(Claim::parse(text), None, "{text}");
    }
}

#[test]
fn an_identity_that_is_not_whole_says_what_is_missing() {
    let labels = json!({ "discovery.liqo.io/cluster-id": "milan-id" });
    let held = Held::read(&secret("liqo-identity-milan", labels, json!({ "namespace": "dA==" }))).unwrap();
    assert_eq!(held.certificate, Err("its key certificate is missing".to_owned()));
    assert_eq!(held.remote_namespace.unwrap().as_str(), "t");
}
