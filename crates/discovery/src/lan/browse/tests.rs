use std::net::IpAddr;

use proptest::prelude::*;

use super::neighbour::MAX_PER_SENDER;
use super::*;
use crate::lan::SERVICE;

const LINK: LinkId = LinkId { interface: 2, is_ipv6: false };

fn name(text: &str) -> Name {
    Name::from_ascii(text).unwrap()
}

fn service() -> Name {
    name(SERVICE)
}

fn from(last: u16) -> SocketAddr {
    let [high, low] = last.to_be_bytes();
    ([10, 0, high, low], 5353).into()
}

/// The records of a cluster, as it announces them.
fn records(id: &str, ttl: u32) -> Vec<Record> {
    let instance = service().prepend_label(id).unwrap();
    let record = |name: &Name, data| Record { name: name.clone(), ttl, data };
    vec![
        record(&service(), Data::Pointer(instance.clone())),
        record(&instance, Data::Service { port: 31520, target: name("Host.local.") }),
        record(&instance, Data::Text(vec![format!("id={id}").into_bytes()])),
        record(&name("host.local."), Data::Address([10, 0, 0, 9].into())),
    ]
}

fn packet(records: Vec<Record>) -> Packet {
    Packet { is_response: true, records, ..Packet::default() }
}

struct World {
    browser: Browser,
    now: Instant,
    verified: BTreeSet<Origin>,
}

impl World {
    fn new() -> Self {
        let now = Instant::now();
        let mut browser = Browser::new(service(), now);
        browser.set_links(&BTreeSet::from([LINK]), Duration::from_millis(20), now);
        Self { browser, now, verified: BTreeSet::new() }
    }

    fn hear(&mut self, sender: u16, records: Vec<Record>) -> Vec<Heard> {
        let verified = &self.verified;
        self.browser.hear(LINK, from(sender), &packet(records), |origin| verified.contains(origin), self.now)
    }

    fn pass(&mut self, time: Duration) -> (Vec<Packet>, Vec<Heard>) {
        self.now += time;
        let verified = &self.verified;
        let (packets, heard) = self.browser.due(|origin| verified.contains(origin), self.now);
        (packets.iter().map(|packet| message::decode(&packet.bytes).unwrap()).collect(), heard)
    }

    /// Goes to each moment at which something is to be done, until nothing happens for a while.
    fn run(&mut self, until: Duration) -> Vec<(u128, Packet)> {
        let (start, mut sent) = (self.now, Vec::new());
        while let Some(next) = self.browser.next().filter(|next| *next <= start + until) {
            assert!(next > self.now || sent.is_empty(), "time stands still");
            let (packets, _) = self.pass(next.saturating_duration_since(self.now));
            sent.extend(packets.into_iter().map(|packet| ((self.now - start).as_millis(), packet)));
        }
        sent
    }
}

fn origin(sender: u16, id: &str) -> Origin {
    let sender = Sender::Neighbour { interface: LINK.interface, address: from(sender).ip() };
    Origin { sender, record: id.into() }
}

fn seen(heard: &[Heard]) -> Vec<&Advert> {
    heard
        .iter()
        .filter_map(|heard| if let Heard::Seen(_, advert) = heard { Some(advert) } else { None })
        .collect()
}

fn why(heard: &[Heard]) -> Vec<Refusal> {
    let refused = |heard: &Heard| if let Heard::Refused(refused) = heard { Some(refused.why) } else { None };
    heard.iter().filter_map(refused).collect()
}

#[tokio::test]
async fn a_cluster_is_seen_in_its_first_packet() {
    let mut world = World::new();
    let heard = world.hear(1, records("edge-7", 90));
    assert_eq!(heard.len(), 1);
    let advert = seen(&heard)[0];
    assert_eq!(advert.id.as_ref().unwrap().as_str(), "edge-7");
    assert_eq!((advert.port, advert.ttl), (31520, 90));
    assert_eq!(advert.addresses, ["10.0.0.9".parse::<IpAddr>().unwrap()]);
}

#[tokio::test]
async fn the_parts_of_a_record_may_come_one_by_one_and_are_asked_for() {
    let mut world = World::new();
    let parts = records("edge-7", 90);
    assert!(world.hear(1, parts[..1].to_vec()).is_empty());
    let asked = |packets: &[Packet]| {
        let questions = packets.iter().flat_map(|packet| &packet.questions);
        questions.map(|question| format!("{} {}", question.name, question.kind)).collect::<Vec<_>>()
    };
    let (packets, _) = world.pass(Duration::from_millis(60));
    let questions = asked(&packets);
    assert!(questions.contains(&"edge-7._liqo_auth._tcp.local. SRV".to_owned()), "{questions:?}");
    assert!(questions.contains(&"edge-7._liqo_auth._tcp.local. TXT".to_owned()), "{questions:?}");

    assert!(world.hear(1, parts[1..3].to_vec()).is_empty());
    let questions = asked(&world.pass(Duration::from_millis(200)).0);
    assert_eq!(questions, ["host.local. A", "host.local. AAAA"]);
    assert_eq!(seen(&world.hear(1, parts[3..].to_vec())).len(), 1);
    assert!(world.pass(Duration::from_millis(500)).0.is_empty(), "nothing is missing any more");
}

#[tokio::test]
async fn a_cluster_without_text_record_is_seen_when_none_came() {
    let mut world = World::new();
    let mut parts = records("edge-7", 90);
    parts.remove(2);
    assert!(world.hear(1, parts).is_empty());
    let heard: Vec<_> = (0..20).flat_map(|_| world.pass(Duration::from_millis(50)).1).collect();
    assert_eq!(seen(&heard).len(), 1);
    assert_eq!(seen(&heard)[0].fingerprint, None);
    // An empty text record is as good as a full one.
    let mut parts = records("edge-8", 90);
    parts[2].data = Data::Text(vec![]);
    assert_eq!(seen(&world.hear(2, parts)).len(), 1);
}

#[tokio::test]
async fn everybody_is_asked_at_once_and_then_ever_more_seldom() {
    let mut world = World::new();
    let times: Vec<_> = world.run(Duration::from_secs(200)).iter().map(|(at, _)| at / 1000).collect();
    assert_eq!(times, [0, 1, 3, 7, 15, 31, 63, 123, 183]);
}

#[tokio::test]
async fn what_is_verified_is_asked_for_before_it_runs_out_and_what_is_known_is_said() {
    let mut world = World::new();
    world.hear(1, records("edge-7", 90));
    world.verified.insert(origin(1, "edge-7"));
    let sent = world.run(Duration::from_secs(89));
    // At 63 s the record is still good for 27 s, which is less than half: it is not told as known.
    let known: Vec<_> = sent.iter().map(|(at, packet)| (at / 1000, packet.records.len())).collect();
    assert_eq!(
        known,
        [(0, 1), (1, 1), (3, 1), (7, 1), (15, 1), (31, 1), (63, 0), (72, 0), (76, 0), (81, 0), (85, 0)]
    );
    world.run(Duration::from_secs(10));
    assert_eq!(world.browser.len(), 0, "it is forgotten at the end of its lifetime");
}

#[tokio::test]
async fn a_goodbye_is_noticed_only_from_who_said_hello_and_everybody_is_asked_again() {
    let mut world = World::new();
    world.run(Duration::from_secs(70));
    world.hear(1, records("edge-7", 90));
    assert!(world.hear(2, records("edge-7", 0)).is_empty());
    assert_eq!(world.hear(1, records("edge-7", 0)), [Heard::Gone(origin(1, "edge-7"))]);
    let (packets, _) = world.pass(ASK_AFTER_GOODBYE);
    assert_eq!(packets.len(), 1);
    assert_eq!(world.browser.len(), 0);
}

#[tokio::test]
async fn two_senders_of_one_name_are_kept_apart() {
    let mut world = World::new();
    let mut other = records("edge-7", 90);
    other[1].data = Data::Service { port: 1, target: name("host.local.") };
    world.hear(1, records("edge-7", 90));
    let heard = world.hear(2, other);
    assert_eq!(seen(&heard)[0].port, 1);
    assert_eq!(seen(&world.hear(1, records("edge-7", 90)))[0].port, 31520);
}

#[tokio::test]
async fn hostile_records_are_refused_and_nothing_is_kept_of_them() {
    let instance = |label: &[u8]| service().prepend_label(label).unwrap();
    let pointer = |label: &[u8]| Record { name: service(), ttl: 90, data: Data::Pointer(instance(label)) };
    let deep = Record { name: service(), ttl: 90, data: Data::Pointer(name("a.b._liqo_auth._tcp.local.")) };
    let elsewhere = Record { name: service(), ttl: 90, data: Data::Pointer(name("edge._http._tcp.local.")) };
    let negative = Record { ttl: u32::MAX, ..pointer(b"edge") };
    let port = Record {
        name: instance(b"edge"),
        ttl: 90,
        data: Data::Service { port: 0, target: name("host.local.") },
    };
    let text =
        |text: &[u8]| Record { name: instance(b"edge"), ttl: 90, data: Data::Text(vec![text.to_vec()]) };
    for (record, expected) in [
        (pointer("größe".as_bytes()), Refusal::InvalidName),
        (pointer(b"\xff\xfe"), Refusal::InvalidName),
        (pointer(b"a\0b"), Refusal::InvalidName),
        (pointer(b"Edge 7"), Refusal::InvalidName),
        (deep, Refusal::InvalidName),
        (elsewhere, Refusal::InvalidName),
        (negative, Refusal::InvalidTtl),
        (port, Refusal::InvalidPort),
        (text(b"id=other"), Refusal::Contradiction),
        (text(b"fp=none"), Refusal::InvalidFingerprint),
        (text(b"name=\xff"), Refusal::InvalidText),
    ] {
        let mut world = World::new();
        assert_eq!(why(&world.hear(1, vec![record.clone()])), [expected], "{record:?}");
        assert_eq!(world.browser.len(), 0, "{record:?}");
    }
    let mut world = World::new();
    let mut loopback = records("edge", 90);
    loopback[3].data = Data::Address([127, 0, 0, 1].into());
    assert_eq!(why(&world.hear(1, loopback)), [Refusal::NoAddress]);
}

#[tokio::test]
async fn ten_thousand_records_of_one_sender_displace_only_each_other() {
    let mut world = World::new();
    world.hear(1, records("real", 90));
    world.verified.insert(origin(1, "real"));
    world.hear(2, records("other", 90));
    for number in 0..10_000 {
        world.hear(3, records(&format!("bogus-{number}"), 4500));
        world.hear(1, records(&format!("more-{number}"), 4500));
    }
    assert!(world.browser.len() <= 3 * MAX_PER_SENDER, "{}", world.browser.len());
    assert!(world.browser.neighbours[&origin(1, "real").sender].instances.contains_key("real"));
    assert!(world.browser.neighbours.contains_key(&origin(2, "other").sender));
    // What is asked in return is bounded, too.
    let (packets, _) = world.pass(Duration::from_millis(100));
    assert!(packets.len() <= 2, "{}", packets.len());
}

#[tokio::test]
async fn ten_thousand_senders_do_not_displace_who_is_verified() {
    let mut world = World::new();
    world.hear(1, records("real", 90));
    world.verified.insert(origin(1, "real"));
    for sender in 2..10_002 {
        world.hear(sender, records(&format!("bogus-{sender}"), 4500));
    }
    assert!(world.browser.neighbours.len() <= MAX_SENDERS);
    assert!(world.browser.neighbours.contains_key(&origin(1, "real").sender));
    assert_eq!(seen(&world.hear(20_000, records("late", 90))).len(), 1, "who comes late is heard");
}

proptest! {
    #[test]
    fn whatever_comes_in_whatever_order_is_bounded_and_time_goes_on(
        packets in proptest::collection::vec((0u16..5, 0usize..20, 0usize..16, 0u32..200, 0u64..5_000), 1..200),
    ) {
        let mut world = World::new();
        for (sender, id, parts, ttl, millis) in packets {
            let all = records(&format!("edge-{id}"), ttl);
            let chosen = all.into_iter().enumerate().filter(|(index, _)| parts >> index & 1 == 1);
            world.hear(sender, chosen.map(|(_, record)| record).collect());
            if id % 3 == 0 {
                world.verified.insert(origin(sender, &format!("edge-{id}")));
            }
            world.pass(Duration::from_millis(millis));
            prop_assert!(world.browser.len() <= 5 * 2 * MAX_PER_SENDER);
            prop_assert!(world.browser.next().unwrap() > world.now, "something stays due for ever");
        }
        world.pass(Duration::from_secs(4000));
        prop_assert_eq!(world.browser.len(), 0);
    }
}
