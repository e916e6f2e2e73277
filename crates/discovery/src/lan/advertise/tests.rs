use super::*;

const LINK: LinkId = LinkId { interface: 2, is_ipv6: false };

pub(crate) fn advertisement(id: &str) -> Advertisement {
    Advertisement {
        identity: Identity { id: id.parse().unwrap(), name: "edge".parse().unwrap() },
        port: 31520,
        addresses: Vec::new(),
        fingerprint: Some(Fingerprint::of_certificate(b"certificate")),
        version: "0.1.0".to_owned(),
        ttl: 90,
    }
}

fn links() -> BTreeMap<LinkId, Vec<IpAddr>> {
    BTreeMap::from([(LINK, vec!["10.0.0.1".parse().unwrap()])])
}

fn advertiser(now: Instant) -> Advertiser {
    let mut advertiser = Advertiser::default();
    advertiser.set_links(links(), now);
    assert!(advertiser.advertise(Some(advertisement("edge-7")), now).is_empty());
    advertiser
}

fn records(outgoing: &Outgoing) -> Vec<String> {
    let packet = message::decode(&outgoing.bytes).unwrap();
    packet.records.iter().map(|record| format!("{} {} {:?}", record.name, record.ttl, record.data)).collect()
}

fn browse(unicast: bool) -> Question {
    Question { name: Name::from_ascii(SERVICE).unwrap(), kind: RecordType::PTR, unicast }
}

fn ask(questions: Vec<Question>, known: &[Record]) -> Packet {
    message::decode(&message::query(questions, known).unwrap()).unwrap()
}

fn from(port: u16) -> SocketAddr {
    ([10, 0, 0, 2], port).into()
}

const DELAY: Duration = Duration::from_millis(70);

#[tokio::test]
async fn a_cluster_announces_itself_three_times_and_then_twice_per_lifetime() {
    let start = Instant::now();
    let mut advertiser = advertiser(start);
    let mut times = Vec::new();
    while times.len() < 6 {
        let now = advertiser.next().unwrap();
        assert_eq!(advertiser.due(now).len(), 1);
        assert!(advertiser.due(now).is_empty(), "once is enough");
        times.push((now - start).as_secs());
    }
    assert_eq!(times, [0, 1, 3, 48, 93, 138]);
}

#[tokio::test]
async fn one_packet_has_all_that_is_needed() {
    let now = Instant::now();
    let packet = advertiser(now).due(now).remove(0);
    assert_eq!((packet.link, packet.to), (LINK, None));
    let records = records(&packet);
    let instance = "edge-7._liqo_auth._tcp.local.";
    assert!(records[0].starts_with("_liqo_auth._tcp.local. 90 Pointer(") && records[0].contains(instance));
    assert!(records[1].starts_with(instance) && records[1].contains("31520"), "{records:?}");
    assert!(records[2].starts_with(instance), "{records:?}");
    assert_eq!(records[3], "edge-7.local. 90 Address(10.0.0.1)");
    assert_eq!(records.len(), 4);
}

#[tokio::test]
async fn the_addresses_of_a_load_balancer_replace_those_of_the_interface() {
    let now = Instant::now();
    let mut advertiser = Advertiser::default();
    advertiser.set_links(links(), now);
    let addresses = vec!["203.0.113.7".parse().unwrap()];
    advertiser.advertise(Some(Advertisement { addresses, ..advertisement("edge-7") }), now);
    let records = records(&advertiser.due(now)[0]);
    assert_eq!(records[3..], ["edge-7.local. 90 Address(203.0.113.7)"]);
}

#[tokio::test]
async fn a_question_is_answered_soon_and_not_more_than_once_a_second() {
    let start = Instant::now();
    let mut advertiser = advertiser(start);
    for second in [0, 1, 3] {
        advertiser.due(start + Duration::from_secs(second));
    }
    let late = start + Duration::from_secs(10);
    for millis in [2_000, 2_010, 2_020] {
        let now = late + Duration::from_millis(millis);
        assert!(advertiser.hear(LINK, from(5353), &ask(vec![browse(false)], &[]), DELAY, now).is_none());
    }
    let answered = advertiser.next().unwrap();
    assert_eq!(answered - late, Duration::from_millis(2_070));
    assert_eq!(advertiser.due(answered).len(), 1);
    advertiser.hear(LINK, from(5353), &ask(vec![browse(false)], &[]), DELAY, answered);
    assert_eq!(advertiser.next().unwrap() - answered, RATE_LIMIT);
}

#[tokio::test]
async fn who_knows_us_already_is_not_told_again() {
    let start = Instant::now();
    let mut advertiser = advertiser(start);
    advertiser.due(start);
    let instance = Name::from_ascii("edge-7._liqo_auth._tcp.local.").unwrap();
    let known = |ttl| Record { name: browse(false).name, ttl, data: Data::Pointer(instance.clone()) };
    let now = start + Duration::from_millis(10);
    let next = advertiser.next();
    advertiser.hear(LINK, from(5353), &ask(vec![browse(false)], &[known(50)]), DELAY, now);
    assert_eq!(advertiser.next(), next, "nothing to answer");
    advertiser.hear(LINK, from(5353), &ask(vec![browse(false)], &[known(40)]), DELAY, now);
    assert!(advertiser.links[&LINK].answer.is_some(), "what it knows is about to run out");
}

#[tokio::test]
async fn questions_about_others_are_not_answered() {
    let start = Instant::now();
    let mut advertiser = advertiser(start);
    advertiser.due(start);
    let next = advertiser.next();
    for (name, kind) in [
        ("_http._tcp.local.", RecordType::PTR),
        ("other._liqo_auth._tcp.local.", RecordType::SRV),
        ("other.local.", RecordType::A),
        ("_liqo_auth._tcp.local.", RecordType::SRV),
        ("edge-7.local.", RecordType::TXT),
    ] {
        let question = Question { name: Name::from_ascii(name).unwrap(), kind, unicast: false };
        assert!(advertiser.hear(LINK, from(5353), &ask(vec![question], &[]), DELAY, start).is_none());
        assert_eq!(advertiser.next(), next, "{name} {kind}");
    }
}

#[tokio::test]
async fn who_asks_for_itself_or_from_another_port_gets_an_answer_of_its_own() {
    let now = Instant::now();
    let mut advertiser = advertiser(now);
    let answer = advertiser.hear(LINK, from(5353), &ask(vec![browse(true)], &[]), DELAY, now).unwrap();
    assert_eq!(answer.to, Some(from(5353)));
    assert!(records(&answer)[1].contains(" 90 "));

    let mut query = ask(vec![browse(false)], &[]);
    query.id = 4711;
    let answer = advertiser.hear(LINK, from(40000), &query, DELAY, now).unwrap();
    let packet = message::decode(&answer.bytes).unwrap();
    assert_eq!((packet.id, packet.questions.len()), (4711, 1));
    assert!(packet.records.iter().all(|record| record.ttl == MAX_LEGACY_TTL));
}

#[tokio::test]
async fn answers_of_their_own_are_not_an_amplifier() {
    let now = Instant::now();
    let mut advertiser = advertiser(now);
    let mut answers = |now| {
        let mut hear = || advertiser.hear(LINK, from(40000), &ask(vec![browse(false)], &[]), DELAY, now);
        (0..1000).filter_map(|_| hear()).count()
    };
    assert_eq!(answers(now), 10);
    assert_eq!(answers(now + Duration::from_millis(500)), 0);
    assert_eq!(answers(now + Duration::from_millis(1001)), 10);
}

#[tokio::test]
async fn the_kinds_of_services_are_told_to_who_asks() {
    let start = Instant::now();
    let mut advertiser = advertiser(start);
    advertiser.due(start);
    let question =
        Question { name: Name::from_ascii(SERVICES).unwrap(), kind: RecordType::PTR, unicast: false };
    advertiser.hear(LINK, from(5353), &ask(vec![question], &[]), DELAY, start + Duration::from_millis(1));
    let packet = &advertiser.due(start + Duration::from_secs(2))[0];
    assert!(records(packet).iter().any(|record| record.starts_with(SERVICES)), "{:?}", records(packet));
}

#[tokio::test]
async fn a_goodbye_has_the_lifetime_zero_and_is_said_only_by_who_announced() {
    let now = Instant::now();
    let mut advertiser = advertiser(now);
    assert!(advertiser.goodbyes().is_empty());
    advertiser.due(now);
    let goodbyes = advertiser.goodbyes();
    assert!(records(&goodbyes[0]).iter().all(|record| record.contains(" 0 ")), "{:?}", records(&goodbyes[0]));
    assert_eq!(advertiser.advertise(None, now).len(), 1);
    assert_eq!((advertiser.next(), advertiser.due(now).len()), (None, 0));
}

#[tokio::test]
async fn a_change_is_announced_at_once_and_another_identity_says_goodbye_to_the_former() {
    let start = Instant::now();
    let mut advertiser = advertiser(start);
    advertiser.due(start);
    let now = start + Duration::from_secs(30);
    let changed = Advertisement { port: 443, ..advertisement("edge-7") };
    assert!(advertiser.advertise(Some(changed.clone()), now).is_empty());
    assert_eq!(advertiser.next(), Some(now));
    assert!(records(&advertiser.due(now)[0])[1].contains("443"));
    assert!(advertiser.advertise(Some(changed), now).is_empty());
    assert_ne!(advertiser.next(), Some(now), "the same again is no news");
    assert_eq!(advertiser.advertise(Some(advertisement("edge-8")), now).len(), 1);
}

#[tokio::test]
async fn a_new_address_is_announced() {
    let start = Instant::now();
    let mut advertiser = advertiser(start);
    advertiser.due(start);
    let now = start + Duration::from_secs(20);
    advertiser.set_links(links(), now);
    assert_ne!(advertiser.next(), Some(now));
    advertiser.set_links(BTreeMap::from([(LINK, vec!["10.0.0.9".parse().unwrap()])]), now);
    assert!(records(&advertiser.due(now)[0])[3].contains("10.0.0.9"));
}
