use super::*;
use crate::peering::testing::{cluster, contract, of_spec, offer, papers, telling};

const AUTH: &str = "AuthenticationStatus";
const OUT: &str = "OutgoingPeering";

/// The steps that are done, and what is waited for.
fn shown(phases: &Phases) -> (Vec<&'static str>, Option<(&'static str, String, Kind)>) {
    let done = phases.done.iter().map(|(step, _)| step.name()).collect();
    (done, phases.waiting.as_ref().map(|it| (it.step.name(), it.why.clone(), it.kind)))
}

fn look(conditions: &[(&str, &str, &str)], papers: &Papers) -> Phases {
    outgoing(&telling(cluster("north", "north"), conditions), papers)
}

#[test]
fn a_peering_goes_step_by_step() {
    let none = Papers::default();
    let unknown = of_spec("north", &serde_json::json!({"foreignAuthUrl": "https://h"}));
    let first = outgoing(&unknown, &none);
    assert_eq!(
        shown(&first),
        (vec![], Some(("identity", "the peer's name is asked for".to_owned(), Kind::Going)))
    );

    let second = look(&[(AUTH, "Pending", "asking the peer for an identity there")], &none);
    let waits = ("certificate", "asking the peer for an identity there".to_owned(), Kind::Going);
    assert_eq!(shown(&second), (vec!["identity"], Some(waits)));
    assert_eq!(second.waiting.unwrap().since, Some("2026-03-01T12:00:00Z".parse().unwrap()));

    let asked = [(AUTH, "Established", "x"), (OUT, "Pending", "waiting for an offer")];
    let waits = ("request", "waiting for an offer".to_owned(), Kind::Going);
    assert_eq!(shown(&look(&asked, &none)), (vec!["identity", "certificate"], Some(waits)));

    let offered = papers(vec![offer("north", "Pending", "")], vec![]);
    let waits = ("offer", "the offer is looked at".to_owned(), Kind::Going);
    assert_eq!(shown(&look(&asked, &offered)), (vec!["identity", "certificate", "request"], Some(waits)));

    let accepted =
        papers(vec![offer("north", "Accepted", "")], vec![contract("c-1", "north", "south", "Proposed")]);
    let waits = ("contract", "waiting for an offer".to_owned(), Kind::Going);
    assert_eq!(shown(&look(&asked, &accepted)).1, Some(waits));

    let signed =
        papers(vec![offer("north", "Accepted", "")], vec![contract("c-1", "north", "south", "Active")]);
    let done = look(&[(AUTH, "Established", "x"), (OUT, "Established", "y")], &signed);
    let names = vec!["identity", "certificate", "request", "offer", "contract"];
    assert_eq!(shown(&done), (names, None));
    assert!(done.done[4].1.contains("c-1 signed by both, until 2026-03-02"), "{:?}", done.done);
}

#[test]
fn a_refusal_is_told_in_the_words_of_whoever_refused() {
    let none = Papers::default();
    let denied = look(&[(AUTH, "Denied", "the peer does not accept the token")], &none);
    let waits = ("certificate", "the peer does not accept the token".to_owned(), Kind::Refused);
    assert_eq!(shown(&denied).1, Some(waits));

    let words = "provider refused: policy gold-only needs label tier=gold";
    let refused = look(&[(AUTH, "Established", ""), (OUT, "Denied", words)], &none);
    assert_eq!(shown(&refused).1, Some(("request", words.to_owned(), Kind::Refused)));

    let here = papers(vec![offer("north", "Refused", "too expensive")], vec![]);
    let refused = look(&[(AUTH, "Established", ""), (OUT, "Pending", "x")], &here);
    assert_eq!(shown(&refused).1, Some(("offer", "refused here: too expensive".to_owned(), Kind::Refused)));
}

#[test]
fn where_a_person_decides_it_says_how() {
    let open = papers(vec![offer("north", "ManualActionRequired", "")], vec![]);
    let (_, waits) = shown(&look(&[(AUTH, "Established", ""), (OUT, "Pending", "x")], &open));
    let (step, why, kind) = waits.unwrap();
    assert_eq!((step, kind), ("offer", Kind::Person));
    assert!(why.contains("liqoctl offer accept north"), "{why}");
}

#[test]
fn what_a_peer_offers_by_itself_needs_no_certificate_of_ours() {
    let pushed =
        papers(vec![offer("north", "Accepted", "")], vec![contract("c-1", "north", "south", "Active")]);
    let done = look(&[(OUT, "Established", "")], &pushed);
    assert_eq!(done.waiting, None);
}

#[test]
fn who_is_out_of_reach_is_waited_for() {
    let mut north =
        telling(cluster("north", "north"), &[(AUTH, "Established", ""), (OUT, "Error", "no route")]);
    let conditions = &mut north.status.as_mut().unwrap().peering_conditions;
    conditions[1].reason = "PeerUnreachable".to_owned();
    let (_, waits) = shown(&outgoing(&north, &Papers::default()));
    assert_eq!(waits, Some(("request", "no route".to_owned(), Kind::Going)));
}

#[test]
fn a_standing_offer_is_done_when_it_lies_there_or_is_signed() {
    const IN: &str = "IncomingPeering";
    let look = |conditions: &[(&str, &str, &str)]| lending(&telling(cluster("rome", "rome"), conditions));
    let first = look(&[(AUTH, "Pending", "asking the peer for an identity there")]);
    let waits = ("certificate", "asking the peer for an identity there".to_owned(), Kind::Going);
    assert_eq!(shown(&first), (vec![], Some(waits)));
    let known = (AUTH, "Established", "x");
    let waits = ("standing offer", "rome is about to be offered resources".to_owned(), Kind::Going);
    assert_eq!(shown(&look(&[known])), (vec![], Some(waits)));
    let refused = look(&[known, (IN, "Denied", "rome refused the offer: too dear")]);
    let waits = ("standing offer", "rome refused the offer: too dear".to_owned(), Kind::Refused);
    assert_eq!(shown(&refused), (vec![], Some(waits)));
    assert_eq!(shown(&look(&[known, (IN, "Established", "y")])), (vec!["standing offer"], None));
    let mut offered =
        telling(cluster("rome", "rome"), &[known, (IN, "Pending", "somebody at rome has to decide")]);
    for condition in &mut offered.status.as_mut().unwrap().peering_conditions {
        condition.reason = CONSUMER_DECIDES.to_owned();
    }
    let done = lending(&offered);
    assert_eq!(shown(&done), (vec!["standing offer"], None));
    assert_eq!(done.done[0].1, "somebody at rome has to decide");
}
