use std::collections::BTreeSet;

use super::*;

fn time(text: &str) -> Timestamp {
    text.parse().unwrap()
}

fn need(audiences: &[Option<&str>]) -> TokenNeed {
    TokenNeed {
        audiences: audiences.iter().map(|it| it.map(Box::from)).collect(),
        providers: BTreeSet::from(["away".into()]),
    }
}

#[test]
fn tokens_are_asked_for_once_and_again_when_half_of_their_time_is_over() {
    let account = Key::namespaced("shop", "default");
    let needs = BTreeMap::from([(account.clone(), need(&[None, Some("vault")]))]);
    let now = time("2026-01-01T00:00:00Z");
    let mut held = Held::new();
    assert_eq!(missing(&needs, &held, now).len(), 2);
    let token = Token::new("t".to_owned(), now, time("2026-01-01T01:00:00Z"));
    held.entry(account.clone()).or_default().insert(None, token);
    assert_eq!(missing(&needs, &held, now), [(account.clone(), Some("vault".into()))]);
    assert_eq!(missing(&needs, &held, time("2026-01-01T00:29:59Z")).len(), 1);
    assert_eq!(missing(&needs, &held, time("2026-01-01T00:30:00Z")).len(), 2);
}

#[test]
fn the_secret_has_what_pods_read_and_goes_only_where_they_are() {
    let account = Key::namespaced("shop", "shopper");
    let token = |text: &str| Token { text: text.to_owned(), renew: Timestamp::MAX };
    let tokens = BTreeMap::from([(None, token("a")), (Some("old".into()), token("b"))]);
    let (key, here) = secret(&account, &need(&[None]), &tokens).unwrap();
    assert_eq!(key, Key::namespaced("shop", "liqo-token-shopper"));
    assert_eq!(here.only, Some(BTreeSet::from(["away".into()])));
    let body: Secret = serde_json::from_slice(&here.body).unwrap();
    let data = body.data.unwrap();
    assert_eq!(data.keys().collect::<Vec<_>>(), ["namespace", "token"]);
    assert_eq!((data["namespace"].0.as_slice(), data["token"].0.as_slice()), (&b"shop"[..], &b"a"[..]));
    assert!(secret(&account, &need(&[Some("new")]), &tokens).is_none(), "nothing of it is there yet");
}
