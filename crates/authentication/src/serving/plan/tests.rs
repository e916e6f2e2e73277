use liqo_api::annotations::{ADMITTED_BY, PEER_PUBLIC_KEY};

use super::*;
use crate::csr::{check, new_key};
use crate::testing::{binding, milan, names, now, rome, tenant};
use crate::tokens::testing_record;
use crate::wire::key_to_base64;

fn grant(by: AdmittedBy) -> Grant {
    let csr = check(new_key(&milan().id).unwrap().csr.as_bytes(), &milan().id).unwrap();
    Grant { peer: names(milan()), by, key: Some(milan().public_key()), csr, known: false }
}

/// What an API server would answer to a step.
fn done(facts: &mut Facts, step: &Next, grant: &Grant) {
    let key = key_to_base64(&milan().public_key());
    match step {
        Next::CheckUser => facts.user_checked = true,
        Next::UseToken { .. } => facts.token.as_mut().unwrap().used_by = Some(grant.peer.id.clone()),
        Next::CreateTenant | Next::MarkTenant { .. } => {
            facts.tenant =
                Some(tenant(&grant.peer.id, &[(PEER_PUBLIC_KEY, &key), (ADMITTED_BY, grant.by.as_str())]));
        }
        Next::CreateCluster => {
            facts.cluster = Some(Known { name: "milan".to_owned(), uid: String::new(), deleting: false });
        }
        Next::CreateRole | Next::FixRole => facts.role = Some(PeerRole { right: true }),
        Next::CreateBinding => facts.binding = Some(binding()),
        Next::DeleteBinding { .. } => facts.binding = None,
        Next::DeleteDenied { .. } => facts.denied = None,
        Next::CreateSigning => {
            facts.signing = Some(Signing { approved: false, certificate: None, failed: None });
        }
        Next::Approve => facts.signing.as_mut().unwrap().approved = true,
        Next::AwaitCertificate => facts.signing.as_mut().unwrap().certificate = Some(b"pem".to_vec()),
        Next::KeepCertificate(_) => {
            facts.kept = true;
            facts.issued = Some(grant.csr.digest.clone());
        }
        Next::Done(_) => {}
    }
}

fn run(facts: &mut Facts, grant: &Grant) -> Result<Vec<&'static str>, Refusal> {
    let mut words = vec![];
    loop {
        let step = next(facts, grant)?;
        words.push(step.word());
        if let Next::Done(certificate) = &step {
            assert_eq!(certificate, b"pem");
            return Ok(words);
        }
        assert!(words.len() < 30, "{words:?}");
        done(facts, &step, grant);
    }
}

const ALL: [&str; 10] = [
    "check user",
    "create tenant",
    "create cluster",
    "create role",
    "create binding",
    "create signing request",
    "approve",
    "await certificate",
    "keep certificate",
    "done",
];

#[test]
fn a_new_peer_gets_all_it_needs_in_order() {
    let grant = grant(AdmittedBy::Own);
    assert_eq!(run(&mut Facts::default(), &grant).unwrap(), ALL);
}

#[test]
fn a_peer_token_is_used_up_before_anything_exists() {
    let (record, _) = testing_record(now());
    let grant = grant(AdmittedBy::Token(record.id.clone()));
    let mut facts = Facts { token: Some(record), denied: Some("uid".to_owned()), ..Facts::default() };
    let words = run(&mut facts, &grant).unwrap();
    assert_eq!(words[..3], ["check user", "use token", "create tenant"]);
    assert!(words.contains(&"lift denial"));
}

/// A call that is cut off after any step is completed by the next, with the same signing request or with another.
#[test]
fn wherever_it_is_cut_off_the_next_call_completes_it() {
    let (record, _) = testing_record(now());
    for by in [AdmittedBy::Own, AdmittedBy::Token(record.id.clone())] {
        let first = grant(by.clone());
        let start = Facts { token: Some(record.clone()), ..Facts::default() };
        let steps = run(&mut start.clone(), &first).unwrap().len();
        for cut in 0..steps {
            let mut facts = start.clone();
            for _ in 0..cut {
                let step = next(&facts, &first).unwrap();
                done(&mut facts, &step, &first);
            }
            let answered = facts.kept;
            // What is not kept in objects is lost.
            let left = Facts { kept: false, user_checked: false, ..facts };
            let another = Grant { csr: grant(by.clone()).csr, ..first.clone() };
            let mut again = Facts { signing: None, ..left.clone() };
            assert_eq!(run(&mut again, &another).unwrap().last(), Some(&"done"), "after {cut} steps");
            let same = run(&mut left.clone(), &first);
            if answered {
                assert_eq!(same.unwrap_err().reason, Reason::Replayed, "after {cut} steps");
            } else {
                assert_eq!(same.unwrap().last(), Some(&"done"), "after {cut} steps");
            }
        }
    }
}

#[test]
fn a_peer_that_is_in_gets_a_new_certificate_and_nothing_else() {
    let first = grant(AdmittedBy::Own);
    let mut facts = Facts::default();
    run(&mut facts, &first).unwrap();
    let renewed = Grant { known: true, ..grant(AdmittedBy::Own) };
    let mut facts = Facts { signing: None, kept: false, user_checked: false, ..facts };
    assert_eq!(run(&mut facts, &renewed).unwrap(), ALL[5..]);
}

#[test]
fn what_changed_since_the_judgement_is_noticed() {
    type Change = fn(&mut Facts);
    let cases: [(&str, Change, Reason); 7] = [
        (
            "another key was quicker",
            |facts| facts.tenant.as_mut().unwrap().key = KnownKey::Key(rome().public_key()),
            Reason::ClaimedTwice,
        ),
        (
            "the namespace is another's",
            |facts| facts.tenant.as_mut().unwrap().peer = rome().id.clone(),
            Reason::NamespaceTaken,
        ),
        ("the namespace goes", |facts| facts.tenant.as_mut().unwrap().deleting = true, Reason::GoingAway),
        ("the cluster goes", |facts| facts.cluster.as_mut().unwrap().deleting = true, Reason::GoingAway),
        (
            "the token was revoked",
            |facts| facts.token.as_mut().unwrap().revoked = Some(now()),
            Reason::Unauthorized,
        ),
        (
            "the token is another's",
            |facts| facts.token.as_mut().unwrap().used_by = Some(rome().id.clone()),
            Reason::Unauthorized,
        ),
        (
            "the signer refuses",
            |facts| facts.signing.as_mut().unwrap().failed = Some("no".to_owned()),
            Reason::Failed,
        ),
    ];
    let (record, _) = testing_record(now());
    let grant = grant(AdmittedBy::Token(record.id.clone()));
    let mut whole = Facts { token: Some(record), ..Facts::default() };
    run(&mut whole, &grant).unwrap();
    for (why, change, expected) in cases {
        let mut facts = Facts { issued: None, ..whole.clone() };
        change(&mut facts);
        assert_eq!(run(&mut facts, &grant).unwrap_err().reason, expected, "{why}");
    }
}

#[test]
fn roles_that_somebody_changed_are_put_right() {
    let grant = grant(AdmittedBy::Own);
    let mut facts = Facts::default();
    run(&mut facts, &grant).unwrap();
    let bound = PeerBinding { right_peer: false, ..binding() };
    let changed =
        Facts { role: Some(PeerRole { right: false }), binding: Some(bound), issued: None, ..facts };
    let words = run(&mut changed.clone(), &grant).unwrap();
    assert_eq!(words[..3], ["fix role", "delete binding", "create binding"]);
}

#[test]
fn an_old_peer_that_shows_a_key_now_has_it_noted() {
    let old = Facts { tenant: Some(tenant(&milan().id, &[(ADMITTED_BY, "own")])), ..Facts::default() };
    let words = run(&mut old.clone(), &grant(AdmittedBy::Own)).unwrap();
    assert_eq!(words[0], "mark tenant");
}
