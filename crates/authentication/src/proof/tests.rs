use super::*;
use crate::testing::{home, milan, rome};

fn proof(of: &ProofOf<'_>) -> Proof {
    Proof { key: milan().public_key(), signature: prove(milan(), of) }
}

#[test]
fn a_proof_holds_for_what_it_was_made_for_and_for_nothing_else() {
    let (called, caller) = (&home().id, &milan().id);
    let of = ProofOf { called, caller, csr: b"csr" };
    assert!(holds(&proof(&of), &of));
    assert!(holds_for(Some(&proof(&of)), &milan().public_key(), &of));
    let others = [
        ProofOf { called: &rome().id, caller, csr: b"csr" },
        ProofOf { called, caller: &rome().id, csr: b"csr" },
        ProofOf { called: caller, caller: called, csr: b"csr" },
        ProofOf { called, caller, csr: b"another" },
    ];
    for other in &others {
        assert!(!holds(&proof(&of), other));
    }
    assert!(!holds_for(Some(&proof(&of)), &rome().public_key(), &of));
    assert!(!holds_for(None, &milan().public_key(), &of));
    let stolen = Proof { key: rome().public_key(), ..proof(&of) };
    assert!(!holds(&stolen, &of));
    for signature in [vec![], vec![0; 64], vec![0; 1000]] {
        assert!(!holds(&Proof { signature, ..proof(&of) }, &of));
    }
}

#[test]
fn the_message_is_the_documented_one() {
    let (called, caller) = ("b".parse().unwrap(), "a".parse().unwrap());
    let mut expected = b"liqo.io/authentication-proof/v1\0b\0a\0".to_vec();
    expected.extend_from_slice(&Sha256::digest(b"csr"));
    assert_eq!(message(&ProofOf { called: &called, caller: &caller, csr: b"csr" }), expected);
}
