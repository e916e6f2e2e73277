use super::*;

const FINGERPRINT: &str = "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";

fn refusal<T: std::fmt::Debug>(result: Result<T, Refused>) -> Refusal {
    let refused = result.unwrap_err();
    assert!(refused.detail.len() < 400, "{}", refused.detail.len());
    assert!(!refused.detail.chars().any(char::is_control), "{:?}", refused.detail);
    refused.why
}

#[test]
fn a_text_record_tells_id_name_and_fingerprint() {
    let fingerprint = format!("fp={FINGERPRINT}");
    let text =
        Text::parse(&["id=edge-7", "name=edge", &fingerprint, "version=0.1.0", "colour=blue"]).unwrap();
    assert_eq!(text.id.unwrap().as_str(), "edge-7");
    assert_eq!(text.name.unwrap().as_str(), "edge");
    assert_eq!(text.fingerprint.unwrap().to_string(), FINGERPRINT);
}

#[test]
fn a_text_record_of_an_older_peer_says_nothing() {
    assert_eq!(Text::parse::<&str>(&[]).unwrap(), Text::default());
    assert_eq!(Text::parse(&[""]).unwrap(), Text::default());
    assert_eq!(Text::parse(&["id", "path=/"]).unwrap(), Text::default());
}

#[test]
fn of_a_key_that_stands_twice_the_first_counts_whatever_its_case() {
    let text = Text::parse(&["ID=one", "id=two"]).unwrap();
    assert_eq!(text.id.unwrap().as_str(), "one");
}

#[test]
fn hostile_text_records_are_refused_with_a_reason() {
    let long = "x".repeat(1400);
    let cases: [(&[&[u8]], Refusal); 11] = [
        (&[b"id=\xff\xfe"], Refusal::InvalidText),
        (&[b"id="], Refusal::InvalidName),
        (&[b"id=a\0b"], Refusal::InvalidName),
        (&[b"id=../../etc"], Refusal::InvalidName),
        (&["id=größe".as_bytes()], Refusal::InvalidName),
        (&[b"id=\x1b[31mred"], Refusal::InvalidName),
        (&[b"name=Upper Case"], Refusal::InvalidName),
        (&[b"name=-1"], Refusal::InvalidName),
        (&[b"fp=sha256:00"], Refusal::InvalidFingerprint),
        (&[b"fp=-1"], Refusal::InvalidFingerprint),
        (&[long.as_bytes()], Refusal::Oversized),
    ];
    for (texts, why) in cases {
        assert_eq!(refusal(Text::parse(texts)), why, "{texts:?}");
    }
    assert_eq!(refusal(Text::parse(&[""; 17])), Refusal::Oversized);
}

#[test]
fn ports_and_lifetimes_that_cannot_be_are_refused() {
    assert_eq!(refusal(port(0)), Refusal::InvalidPort);
    assert_eq!(port(65535), Ok(65535));
    assert_eq!(refusal(ttl(u32::MAX)), Refusal::InvalidTtl);
    assert_eq!(refusal(ttl(1 << 31)), Refusal::InvalidTtl);
    assert_eq!(ttl((1 << 31) - 1), Ok(MAX_TTL));
    assert_eq!(ttl(90), Ok(90));
    assert_eq!(ttl(0), Ok(0));
}

#[test]
fn only_names_that_a_url_can_carry_are_host_names() {
    assert_eq!(host_name(b"Auth.Example.com.").unwrap().as_ref(), "auth.example.com");
    let long = [b"a".repeat(64), b".com".to_vec()].concat();
    let many = b"a.".repeat(128);
    for name in [
        b"".as_slice(),
        b".",
        b"10.0.0.1",
        b"_liqo._tcp.example.com",
        b"a..b",
        b"a\0b.com",
        b"user@evil.com",
        b"evil.com/path",
        b"\xff.com",
        "münchen.de".as_bytes(),
        b"-a.com",
        &long,
        &many,
    ] {
        assert_eq!(refusal(host_name(name)), Refusal::InvalidHost, "{name:?}");
    }
}

#[test]
fn addresses_that_cannot_be_another_clusters_are_refused() {
    for text in [
        "0.0.0.0",
        "0.1.2.3",
        "127.0.0.1",
        "224.0.0.251",
        "255.255.255.255",
        "169.254.169.254",
        "::",
        "::1",
        "ff02::fb",
        "fe80::1",
        "::ffff:127.0.0.1",
    ] {
        assert_eq!(refusal(addresses([text.parse().unwrap()])), Refusal::NoAddress, "{text}");
    }
    assert_eq!(refusal(addresses([])), Refusal::NoAddress);
    let usable = ["10.0.0.1", "fe80::1", "fd00::1", "::ffff:10.0.0.1"].map(|text| text.parse().unwrap());
    assert_eq!(
        addresses(usable).unwrap(),
        ["10.0.0.1", "fd00::1"].map(|text| text.parse::<IpAddr>().unwrap())
    );
    let many = (1..=255).map(|last| IpAddr::from([10, 0, 0, last]));
    assert_eq!(addresses(many).unwrap().len(), MAX_ADDRESSES);
}

#[test]
fn a_strangers_text_is_quoted_short_and_harmless() {
    assert_eq!(quote(b"a\x1b[2Jb\n"), r#""a\u{1b}[2Jb\n""#);
    assert!(quote(&[b'x'; 10_000]).len() < 100);
}
