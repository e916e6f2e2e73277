use http::HeaderValue;

use super::*;

#[test]
fn an_upgrade_is_asked_for_with_what_it_needs_and_without_who_asked() {
    let headers = [
        ("connection", "Upgrade"),
        ("upgrade", "SPDY/3.1"),
        ("x-stream-protocol-version", "v4.channel.k8s.io"),
        ("x-stream-protocol-version", "channel.k8s.io"),
        ("sec-websocket-key", "abc"),
        ("authorization", "Bearer secret"),
        ("cookie", "secret"),
        ("x-remote-user", "admin"),
        ("impersonate-user", "admin"),
        ("host", "10.0.0.7:10250"),
    ];
    let headers: HeaderMap = headers
        .into_iter()
        .map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value)))
        .collect();
    let passed = of_upgrade(&headers);
    let names: Vec<_> = passed.keys().map(HeaderName::as_str).collect();
    assert_eq!(passed.len(), 5, "{names:?}");
    assert_eq!(passed.get_all("x-stream-protocol-version").iter().count(), 2, "all that are offered");
    for name in ["authorization", "cookie", "x-remote-user", "impersonate-user", "host"] {
        assert!(!passed.contains_key(name), "{name}");
    }
}

#[test]
fn a_refusal_is_told_in_the_words_of_who_refuses() {
    let status =
        br#"{"kind":"Status","apiVersion":"v1","status":"Failure","message":"no container x","code":400}"#;
    assert_eq!(reason(status), "no container x");
    assert_eq!(reason(b"plain words"), "plain words");
    assert_eq!(reason(b"{}"), "{}");
    assert_eq!(reason(&[0xff, b'a']), "\u{fffd}a");
}

#[tokio::test(start_paused = true)]
async fn who_reads_logs_waits_for_a_place_and_who_follows_them_takes_none_from_others() {
    let places = Places::new();
    let read = "/api/v1/namespaces/shop/pods/web/log?container=main&tailLines=1";
    let follow = "/api/v1/namespaces/shop/pods/web/log?container=main&follow=true";
    let mut followed = Vec::new();
    for _ in 0..FOLLOWED {
        followed.push(places.clone().for_logs(follow).await.unwrap());
    }
    assert!(places.clone().for_logs(follow).await.is_none(), "there is an end to it");
    let mut reading = Vec::new();
    for _ in 0..READ {
        reading.push(places.clone().for_logs(read).await.unwrap());
    }
    let (next, ()) = tokio::join!(places.clone().for_logs(read), async {
        tokio::time::sleep(TURN / 2).await;
        drop(reading.pop());
    });
    assert!(next.is_some(), "one of them came to its end");
    assert!(places.clone().for_logs(read).await.is_none(), "nobody waits for ever");
    assert!(!places.are_free());
    drop((followed, reading, next));
    assert!(places.are_free());
}
