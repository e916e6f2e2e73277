use std::time::Duration;

use super::*;
use crate::testing::{later, milan, now, rome};

fn made(wanted: &NewToken) -> (Book, Record, Token) {
    let (record, token) = Record::make(wanted, now()).unwrap();
    let book = Book { own: None, peers: [(record.id.clone(), record.clone())].into() };
    (book, record, token)
}

#[test]
fn the_own_token_is_as_long_as_liqos_and_admits_everyone() {
    let token = Token::new_own().unwrap();
    assert_eq!(token.reveal().len(), 128);
    assert!(token.reveal().bytes().all(|byte| byte.is_ascii_hexdigit()));
    let book = Book { own: Some(token.clone()), ..Book::default() };
    for peer in [milan(), rome()] {
        assert_eq!(book.admits(&token, &peer.id, now()), Some(AdmittedBy::Own));
        assert_eq!(book.admits(&Token::new_own().unwrap(), &peer.id, now()), None);
    }
}

#[test]
fn nothing_admits_nobody() {
    let nothing = Token::default();
    // An own token that somebody emptied opens the door for nobody.
    for own in [None, Some(Token::default())] {
        let book = Book { own, ..Book::default() };
        assert_eq!(book.admits(&nothing, &milan().id, now()), None);
        assert_eq!(book.admits(&Token::new("x"), &milan().id, now()), None);
    }
}

#[test]
fn a_peer_token_admits_one_peer_while_it_is_valid() {
    type Change = fn(&mut Record);
    let admitted: &[(&str, Change, bool)] = &[
        ("new", |_| {}, true),
        ("used by it", |record| record.used_by = Some(milan().id.clone()), true),
        ("made for it", |record| record.peer = Some(milan().id.clone()), true),
        ("used by another", |record| record.used_by = Some(rome().id.clone()), false),
        ("made for another", |record| record.peer = Some(rome().id.clone()), false),
        ("revoked", |record| record.revoked = Some(later(-1)), false),
        ("expired", |record| record.expires = Some(now()), false),
        ("expires soon", |record| record.expires = Some(later(1)), true),
    ];
    for (why, change, expected) in admitted {
        let (mut book, record, token) = made(&NewToken::default());
        change(book.peers.get_mut(&record.id).unwrap());
        let by = book.admits(&token, &milan().id, now());
        assert_eq!(by, expected.then(|| AdmittedBy::Token(record.id.clone())), "{why}");
    }
}

#[test]
fn a_token_with_one_wrong_letter_admits_nobody() {
    let (book, _, token) = made(&NewToken::default());
    for at in 0..token.len() {
        let mut text = token.reveal().as_bytes().to_vec();
        text[at] = if text[at] == b'0' { b'1' } else { b'0' };
        let wrong = Token::new(std::str::from_utf8(&text).unwrap());
        assert_eq!(book.admits(&wrong, &milan().id, now()), None, "{at}");
    }
    let id_alone = Token::new(token.id().unwrap());
    assert_eq!(book.admits(&id_alone, &milan().id, now()), None);
}

#[test]
fn what_is_kept_reads_back_and_does_not_contain_the_token() {
    let wanted = NewToken {
        lifetime: Some(Duration::from_secs(3600)),
        note: format!("for milan\n{}", "ü".repeat(300)),
        peer: Some(milan().id.clone()),
    };
    let (_, record, token) = made(&wanted);
    let record =
        Record { used_by: Some(milan().id.clone()), used_at: Some(now()), revoked: Some(later(5)), ..record };
    let secret = record.secret("liqo");
    assert_eq!(Record::read(&secret), Some(record.clone()));
    assert_eq!(record.expires, Some(later(3600)));
    assert!(record.note.len() <= 256 && !record.note.contains('\n'), "{}", record.note);
    let text = format!("{secret:?} {record:?} {token:?}");
    let secret_part = token.reveal().split_once('.').unwrap().1;
    assert!(!text.contains(secret_part));
    for value in secret.data.unwrap().values() {
        assert!(!String::from_utf8_lossy(&value.0).contains(secret_part));
    }
}

#[test]
fn equal_tokens_have_different_hashes_and_equal_digests() {
    let (_, one, token) = made(&NewToken::default());
    let (_, other, _) = made(&NewToken::default());
    assert_ne!((one.salt, one.hash.clone()), (other.salt.clone(), other.hash.clone()));
    assert_ne!(token.hash(&other.salt).to_vec(), one.hash);
    assert_eq!(token.digest(), Token::new(token.reveal()).digest());
    assert_ne!(token.digest(), Token::new("another").digest());
}

/// A time that somebody broke must not make a token valid for ever.
#[test]
fn a_record_that_cannot_be_read_is_no_token() {
    let (_, record, _) = made(&NewToken { lifetime: Some(Duration::from_secs(60)), ..NewToken::default() });
    let secret = record.secret("liqo");
    for (key, value) in
        [("expires", "tomorrow"), ("revoked", "yes"), ("peer", "No Name"), ("hash", "xyz"), ("salt", "0")]
    {
        let mut broken = secret.clone();
        let bytes = k8s_openapi::ByteString(value.as_bytes().to_vec());
        broken.data.as_mut().unwrap().insert(key.to_owned(), bytes);
        assert_eq!(Record::read(&broken), None, "{key}");
    }
    let mut unlabelled = secret;
    unlabelled.metadata.labels = None;
    assert_eq!(Record::read(&unlabelled), None);
}

#[test]
fn only_what_looks_like_an_id_is_one() {
    let (_, record, token) = made(&NewToken::default());
    assert_eq!(token.peer_token_id(), Some(record.id.as_str()));
    for text in ["", "x", "01234567", "0123456.x", "0123456g.x", "0123456A.x", "../../ab.x", "012345678.x"] {
        assert_eq!(Token::new(text).peer_token_id(), None, "{text}");
    }
}

#[test]
fn the_states_of_a_token() {
    let (_, record, _) = made(&NewToken { lifetime: Some(Duration::from_secs(60)), ..NewToken::default() });
    assert_eq!(record.state(now()), TokenState::Unused);
    assert_eq!(record.state(later(60)), TokenState::Expired);
    let used = Record { used_by: Some(milan().id.clone()), ..record };
    assert_eq!(used.state(now()), TokenState::Used);
    let revoked = Record { revoked: Some(now()), ..used };
    assert_eq!(revoked.state(later(60)), TokenState::Revoked);
}
