use liqo_api::annotations::{ADMITTED_BY, PEER_PUBLIC_KEY};
use serde_json::json;

use super::*;
use crate::csr::new_key;
use crate::index::Denied;
use crate::testing::{
    Put, foreign_cluster, home, later, milan, now, own_token, request, rome, stranger, tenant,
};
use crate::tokens::Token;
use crate::wire::{Proof, key_to_base64};

fn empty() -> Index {
    let mut index = Index::default();
    index.book.own = Some(own_token());
    index
}

/// Milan is in, by the cluster's own token.
fn with_milan() -> Index {
    let mut index = empty();
    let key = key_to_base64(&milan().public_key());
    index.put_tenant(tenant(&milan().id, &[(PEER_PUBLIC_KEY, &key), (ADMITTED_BY, "own")]));
    let identity = json!({ "clusterIdentity": { "clusterID": milan().id.as_str(), "clusterName": "milan" } });
    index.put_cluster(foreign_cluster("milan", json!({}), identity));
    index
}

const TOKEN: &str = "0123456789abcdef";

/// Who is not known needs a token.
fn closed(me: &ClusterId) -> House<'_> {
    House { me, tokens_required: true }
}

/// Judged where no token is asked for.
fn open_verdict(index: &Index, request: &Request) -> Result<Grant, Reason> {
    let house = House { me: &home().id, tokens_required: false };
    judge(index, &house, request, now()).map_err(|refusal| refusal.reason)
}

fn verdict(index: &Index, request: &Request) -> Result<Grant, Reason> {
    judge(index, &closed(&home().id), request, now()).map_err(|refusal| refusal.reason)
}

#[test]
fn with_the_right_token_and_a_good_request_a_cluster_comes_in() {
    let grant = verdict(&empty(), &request(milan(), TOKEN)).unwrap();
    assert_eq!((grant.by, grant.known), (AdmittedBy::Own, false));
    assert_eq!(grant.key, Some(milan().public_key()));
    // As an old version of Liqo would call.
    let old = Request { proof: None, ..request(milan(), TOKEN) };
    assert_eq!(verdict(&empty(), &old).unwrap().key, None);
}

#[test]
fn without_the_right_token_nothing_is_told_but_that() {
    let worlds = [("empty", empty()), ("with milan", with_milan())];
    for (why, index) in &worlds {
        let mut texts = std::collections::BTreeSet::new();
        for token in ["", "wrong", "0123456789abcdee", "deadbeef.x"] {
            // Whatever else is wrong: the answer is the same.
            let bad = [
                request(rome(), token),
                Request { csr: b"nonsense".to_vec(), ..request(rome(), token) },
                Request { caller: crate::testing::names(home()), ..request(rome(), token) },
                Request { caller: crate::testing::names(milan()), ..request(rome(), token) },
            ];
            for request in &bad {
                let refusal = judge(index, &closed(&home().id), request, now()).unwrap_err();
                assert_eq!(refusal.reason, Reason::Unauthorized, "{why} {token}");
                texts.insert(refusal.text);
            }
        }
        assert_eq!(texts.len(), 1, "{texts:?}");
    }
}

#[test]
fn where_no_token_is_asked_for_whoever_proves_its_key_comes_in() {
    let grant = open_verdict(&empty(), &request(milan(), "")).unwrap();
    assert_eq!((grant.by, grant.known), (AdmittedBy::Open, false));
    assert_eq!(grant.key, Some(milan().public_key()));
    // A token counts where there is one, and a wrong one is no better than elsewhere.
    assert_eq!(open_verdict(&empty(), &request(milan(), TOKEN)).unwrap().by, AdmittedBy::Own);
    assert_eq!(open_verdict(&empty(), &request(milan(), "wrong")).unwrap_err(), Reason::Unauthorized);
    let keyless = Request { proof: None, ..request(milan(), "") };
    assert_eq!(open_verdict(&empty(), &keyless).unwrap_err(), Reason::Unauthorized);
    let stolen = Request { proof: request(rome(), "").proof, ..request(milan(), "") };
    assert_eq!(open_verdict(&empty(), &stolen).unwrap_err(), Reason::Unauthorized);
    // Known with another key.
    let claimed = Request { caller: crate::testing::names(milan()), ..request(rome(), "") };
    let of = ProofOf { called: &home().id, caller: &milan().id, csr: &claimed.csr };
    let proof = Proof { key: rome().public_key(), signature: crate::proof::prove(rome(), &of) };
    let claimed = Request { csr: claimed.csr.clone(), proof: Some(proof), ..claimed };
    assert!(open_verdict(&with_milan(), &claimed).is_err());
    assert_eq!(open_verdict(&with_milan(), &request(milan(), "")).unwrap().by, AdmittedBy::Own);
}

#[test]
fn who_was_put_out_does_not_come_back_where_no_token_is_asked_for() {
    let without = request(milan(), "");
    // By a note, whichever the own token is now.
    let mut index = empty();
    let denied = Denied { uid: String::new(), created: None, token_digest: "of an earlier one".to_owned() };
    index.denied.insert(milan().id.to_string(), denied);
    assert_eq!(open_verdict(&index, &without).unwrap_err(), Reason::Unauthorized);
    // By its token, though nothing else is left of it; until another one lets it in.
    let mut index = empty();
    let (mut revoked, _) = crate::tokens::testing_record(now());
    (revoked.used_by, revoked.revoked) = (Some(milan().id.clone()), Some(now()));
    index.book.peers.insert(revoked.id.clone(), revoked);
    assert_eq!(open_verdict(&index, &without).unwrap_err(), Reason::Unauthorized);
    let (mut another, _) = crate::tokens::testing_record(now());
    another.used_by = Some(milan().id.clone());
    index.book.peers.insert(another.id.clone(), another);
    assert_eq!(open_verdict(&index, &without).unwrap().by, AdmittedBy::Open);
    // By the note about one that came without a token and is still known.
    let mut index = with_milan();
    let key = key_to_base64(&milan().public_key());
    index.put_tenant(tenant(&milan().id, &[(PEER_PUBLIC_KEY, &key), (ADMITTED_BY, "open")]));
    assert!(open_verdict(&index, &without).unwrap().known);
    let denied = Denied { uid: String::new(), created: None, token_digest: own_token().digest() };
    index.denied.insert(milan().id.to_string(), denied);
    assert_eq!(open_verdict(&index, &without).unwrap_err(), Reason::Unauthorized);
}

#[test]
fn who_is_in_needs_no_token_but_its_key() {
    let index = with_milan();
    for token in ["", "expired"] {
        let grant = verdict(&index, &request(milan(), token)).unwrap();
        assert_eq!((grant.by, grant.known), (AdmittedBy::Own, true));
    }
    let keyless = Request { proof: None, ..request(milan(), "") };
    assert_eq!(verdict(&index, &keyless).unwrap_err(), Reason::Unauthorized);
    let stolen = Request { proof: request(rome(), "").proof, ..request(milan(), "") };
    assert_eq!(verdict(&index, &stolen).unwrap_err(), Reason::Unauthorized);
    // Somebody removed its ForeignCluster without waiting for us.
    let mut removed = with_milan();
    liqo_kit::Index::<liqo_api::ForeignCluster>::delete(&mut removed, &liqo_kit::Key::cluster("milan"));
    assert_eq!(verdict(&removed, &request(milan(), "")).unwrap_err(), Reason::Unauthorized);
    assert!(verdict(&removed, &request(milan(), TOKEN)).is_ok());
    // Known, but never let in: we called it, it did not call us.
    let mut index = empty();
    let key = key_to_base64(&milan().public_key());
    index.put_tenant(tenant(&milan().id, &[(PEER_PUBLIC_KEY, &key)]));
    assert_eq!(verdict(&index, &request(milan(), "")).unwrap_err(), Reason::Unauthorized);
}

#[test]
fn a_known_id_with_another_key_is_refused_whatever_token_it_has() {
    let index = with_milan();
    let impostor = |proof: bool| {
        // Rome's key under Milan's name, with a signature that holds.
        let csr = new_key(&milan().id).unwrap().csr.into_bytes();
        let of = ProofOf { called: &home().id, caller: &milan().id, csr: &csr };
        let signature = crate::proof::prove(rome(), &of);
        let proof = proof.then(|| Proof { key: rome().public_key(), signature });
        Request { caller: crate::testing::names(milan()), token: Token::new(TOKEN), csr, proof }
    };
    assert_eq!(verdict(&index, &impostor(true)).unwrap_err(), Reason::ClaimedTwice);
    assert_eq!(verdict(&index, &impostor(false)).unwrap_err(), Reason::ClaimedTwice);
    // A key that cannot be read is nobody's.
    let mut broken = empty();
    broken.put_tenant(tenant(&milan().id, &[(PEER_PUBLIC_KEY, "broken")]));
    assert_eq!(verdict(&broken, &request(milan(), TOKEN)).unwrap_err(), Reason::ClaimedTwice);
    // Known without a key: it may show one now.
    let mut keyless = empty();
    keyless.put_tenant(tenant(&milan().id, &[(ADMITTED_BY, "own")]));
    assert!(verdict(&keyless, &request(milan(), TOKEN)).is_ok());
}

#[test]
fn what_is_asked_for_must_be_the_callers_own() {
    let index = empty();
    let good = request(milan(), TOKEN);
    let cases = [
        (
            "a signing request for another name",
            Request { csr: request(rome(), "").csr, proof: None, ..good.clone() },
            Reason::SigningRequest,
        ),
        ("no signing request", Request { csr: vec![], proof: None, ..good.clone() }, Reason::Malformed),
        (
            "a proof for another request",
            Request { csr: request(milan(), "").csr, ..good.clone() },
            Reason::WrongProof,
        ),
        ("our own name", request(home(), TOKEN), Reason::OwnIdentity),
    ];
    for (why, request, expected) in cases {
        assert_eq!(verdict(&index, &request).unwrap_err(), expected, "{why}");
    }
}

#[test]
fn a_proof_for_another_cluster_does_not_count_here() {
    let elsewhere = request(milan(), TOKEN);
    let refusal = judge(&empty(), &closed(&stranger().id), &elsewhere, now()).unwrap_err();
    assert_eq!(refusal.reason, Reason::WrongProof);
}

#[test]
fn who_was_put_out_stays_out() {
    let mut index = with_milan();
    let digest = own_token().digest();
    let denied = Denied { uid: String::new(), created: None, token_digest: digest };
    index.denied.insert(milan().id.to_string(), denied);
    assert_eq!(verdict(&index, &request(milan(), TOKEN)).unwrap_err(), Reason::PutOut);
    assert_eq!(verdict(&index, &request(milan(), "")).unwrap_err(), Reason::Unauthorized);
    assert!(verdict(&index, &request(rome(), TOKEN)).is_ok());
    // The token was replaced: the note is about another one.
    index.book.own = Some(Token::new("fedcba9876543210"));
    assert!(verdict(&index, &request(milan(), "fedcba9876543210")).is_ok());
}

#[test]
fn who_came_by_a_token_that_was_revoked_is_not_known_any_more() {
    let mut index = with_milan();
    let (record, _) = crate::tokens::testing_record(now());
    let key = key_to_base64(&milan().public_key());
    index.put_tenant(tenant(&milan().id, &[(PEER_PUBLIC_KEY, &key), (ADMITTED_BY, &record.id)]));
    index.book.peers.insert(record.id.clone(), record.clone());
    assert!(verdict(&index, &request(milan(), "")).is_ok());
    // It expired: who is in stays.
    index.book.peers.get_mut(&record.id).unwrap().expires = Some(later(-1));
    assert!(verdict(&index, &request(milan(), "")).is_ok());
    index.book.peers.get_mut(&record.id).unwrap().revoked = Some(later(-1));
    assert_eq!(verdict(&index, &request(milan(), "")).unwrap_err(), Reason::Unauthorized);
    // Somebody removed the Secret: then nobody comes in by it, and who is in stays.
    index.book.peers.clear();
    assert!(verdict(&index, &request(milan(), "")).is_ok());
}

#[test]
fn while_an_earlier_peering_is_removed_a_caller_has_to_wait() {
    let mut index = empty();
    let mut leaving = tenant(&milan().id, &[]);
    leaving.deleting = true;
    index.put_tenant(leaving);
    assert_eq!(verdict(&index, &request(milan(), TOKEN)).unwrap_err(), Reason::GoingAway);
    let mut index = empty();
    index.put_cluster(foreign_cluster(
        "milan",
        json!({ "deletionTimestamp": now() }),
        json!({ "clusterIdentity": { "clusterID": milan().id.as_str(), "clusterName": "milan" } }),
    ));
    assert_eq!(verdict(&index, &request(milan(), TOKEN)).unwrap_err(), Reason::GoingAway);
}

#[test]
fn statuses_are_liqos() {
    for reason in Reason::ALL {
        assert!([400, 401, 403, 429, 500, 503].contains(&reason.status()), "{reason:?}");
    }
    assert_eq!(Reason::Replayed.status(), 403);
}
