use std::net::IpAddr;

use proptest::prelude::*;

use super::*;

const TTL: Duration = Duration::from_secs(90);

fn neighbour(number: u32) -> Sender {
    Sender::Neighbour { interface: 2, address: IpAddr::from(number.to_be_bytes()) }
}

fn origin(sender: &Sender, record: &str) -> Origin {
    Origin { sender: sender.clone(), record: record.into() }
}

fn advert(port: u16) -> Advert {
    Advert {
        id: None,
        name: None,
        fingerprint: None,
        host: Host::Address,
        port,
        addresses: vec![[10, 0, 0, 1].into()],
        ttl: 90,
    }
}

fn answer(id: &str) -> Answer {
    Answer {
        identity: Identity { id: id.parse().unwrap(), name: "edge".parse().unwrap() },
        url: "https://10.0.0.1:1".to_owned(),
        fingerprint: Fingerprint::of_certificate(id.as_bytes()),
    }
}

fn refuse(why: Refusal) -> Result<Answer, Refused> {
    Err(Refused::new(why, "for a test"))
}

struct World {
    book: Book,
    now: Instant,
}

impl World {
    fn new() -> Self {
        let now = Instant::now();
        Self { book: Book::new(now), now }
    }

    fn see(&mut self, origin: &Origin, port: u16) -> Result<Seen, Refused> {
        self.book.see(origin.clone(), advert(port), TTL, Timestamp::UNIX_EPOCH, self.now)
    }

    fn verify(&mut self, origin: &Origin) {
        self.see(origin, 1).unwrap();
        while let Some((asked, advert)) = self.book.next(self.now) {
            self.book.answered(&asked, &advert, Ok(answer(&asked.record)), self.now);
        }
        assert!(self.book.is_verified(origin));
    }

    fn claims(&self) -> Vec<String> {
        self.book.claims(self.now).iter().map(|claim| claim.answer.identity.id.to_string()).collect()
    }
}

#[tokio::test]
async fn who_is_seen_is_asked_once_and_becomes_a_claim() {
    let mut world = World::new();
    let one = origin(&neighbour(1), "edge-7");
    assert_eq!(world.see(&one, 1), Ok(Seen::News));
    assert_eq!(world.see(&one, 1), Ok(Seen::Again));
    let (asked, advert) = world.book.next(world.now).unwrap();
    assert_eq!((&asked, world.book.next(world.now)), (&one, None));
    assert!(world.book.answered(&asked, &advert, Ok(answer("edge-7")), world.now));
    assert_eq!(world.claims(), ["edge-7"]);
    world.now += Duration::from_secs(60);
    assert_eq!(world.book.next(world.now), None, "an answer is believed for a while");
}

#[tokio::test]
async fn who_is_not_seen_again_is_forgotten() {
    let mut world = World::new();
    world.verify(&origin(&neighbour(1), "edge-7"));
    world.now += TTL;
    assert!(world.claims().is_empty());
    world.book.expire(world.now);
    assert_eq!(world.book.counts(), [(0, 0); 2]);
    assert_eq!(world.book.next_time(world.now), None);
}

#[tokio::test]
async fn who_refuses_is_asked_ever_more_seldom() {
    let mut world = World::new();
    let one = origin(&neighbour(1), "edge-7");
    let start = world.now;
    let mut times = Vec::new();
    while times.len() < 8 {
        world.see(&one, 1).unwrap();
        if let Some((asked, advert)) = world.book.next(world.now) {
            times.push((world.now - start).as_secs());
            world.book.answered(&asked, &advert, refuse(Refusal::Unreachable), world.now);
        }
        world.now += Duration::from_millis(500);
    }
    assert_eq!(times, [0, 2, 6, 14, 30, 62, 122, 182]);
}

#[tokio::test]
async fn a_lost_packet_does_not_make_a_cluster_silent_but_a_lie_does() {
    let one = origin(&neighbour(1), "edge-7");
    let fail = |world: &mut World, why| {
        world.see(&one, 1).unwrap();
        world.now = world.book.candidates[&one].due;
        world.see(&one, 1).unwrap();
        let (asked, advert) = world.book.next(world.now).unwrap();
        world.book.answered(&asked, &advert, refuse(why), world.now);
        world.claims().len()
    };
    let mut world = World::new();
    world.verify(&one);
    assert_eq!([0; 3].map(|_| fail(&mut world, Refusal::Unreachable)), [1, 1, 0]);
    let mut world = World::new();
    world.verify(&one);
    assert_eq!(fail(&mut world, Refusal::Impostor), 0);
}

#[tokio::test]
async fn a_changed_record_is_asked_again_and_the_answer_to_the_former_one_does_not_count() {
    let mut world = World::new();
    let one = origin(&neighbour(1), "edge-7");
    world.see(&one, 1).unwrap();
    let (asked, former) = world.book.next(world.now).unwrap();
    assert_eq!(world.see(&one, 2), Ok(Seen::News));
    assert!(!world.book.answered(&asked, &former, Ok(answer("edge-7")), world.now));
    assert!(world.claims().is_empty());
    let (_, current) = world.book.next(world.now).unwrap();
    assert_eq!(current.port, 2);
}

#[tokio::test]
async fn a_goodbye_is_kept_until_it_is_taken_back() {
    let mut world = World::new();
    let one = origin(&neighbour(1), "edge-7");
    world.verify(&one);
    world.book.withdraw(&one, world.now);
    world.now += Duration::from_secs(7);
    world.book.withdraw(&one, world.now);
    assert_eq!(world.book.claims(world.now)[0].withdrawn, Some(Duration::from_secs(7)));
    assert_eq!(world.see(&one, 1), Ok(Seen::News));
    assert_eq!(world.book.claims(world.now)[0].withdrawn, None);
}

#[tokio::test]
async fn a_sender_of_ten_thousand_records_displaces_nobody_else() {
    let mut world = World::new();
    world.verify(&origin(&neighbour(1), "verified"));
    world.see(&origin(&neighbour(2), "waiting"), 1).unwrap();
    for number in 0..10_000 {
        world.see(&origin(&neighbour(3), &format!("bogus-{number}")), 1).unwrap();
        world.see(&origin(&neighbour(1), &format!("more-{number}")), 1).unwrap();
    }
    assert_eq!(world.book.counts()[0], (2 * MAX_OF_NEIGHBOUR + 1, 1));
    assert_eq!(world.claims(), ["verified"]);
    // Each sender comes in turn, so who waits is asked among the first.
    let asked: Vec<_> =
        (0..3).filter_map(|_| world.book.next(world.now)).map(|(origin, _)| origin.sender).collect();
    assert!(asked.contains(&neighbour(2)), "{asked:?}");
}

#[tokio::test]
async fn ten_thousand_senders_are_bounded_and_the_latest_is_heard() {
    let mut world = World::new();
    world.verify(&origin(&neighbour(1), "verified"));
    for number in 2..10_002 {
        world.see(&origin(&neighbour(number), "bogus"), 1).unwrap();
    }
    assert_eq!(world.book.counts()[0], (MAX_UNVERIFIED + 1, 1));
    assert_eq!(world.claims(), ["verified"]);
    world.see(&origin(&neighbour(20_000), "late"), 1).unwrap();
    let waited = (0..).find(|_| {
        let asked = world.book.next(world.now);
        if let Some((asked, advert)) = &asked {
            world.book.answered(asked, advert, refuse(Refusal::Unreachable), world.now);
        }
        world.now += Duration::from_millis(32);
        asked.is_some_and(|(asked, _)| asked.record.as_ref() == "late")
    });
    assert!(waited.unwrap() <= MAX_UNVERIFIED, "{waited:?}");
}

#[tokio::test]
async fn no_more_are_asked_at_once_or_per_second_than_allowed() {
    let mut world = World::new();
    for number in 0..500 {
        world.see(&origin(&neighbour(number), "bogus"), 1).unwrap();
    }
    let flying: Vec<_> = std::iter::from_fn(|| world.book.next(world.now)).collect();
    assert_eq!(flying.len(), MAX_ASKING);
    let mut asked = 0;
    for (origin, advert) in flying {
        world.book.answered(&origin, &advert, refuse(Refusal::Unreachable), world.now);
    }
    for _ in 0..1000 {
        world.now += Duration::from_millis(1);
        while let Some((origin, advert)) = world.book.next(world.now) {
            asked += 1;
            world.book.answered(&origin, &advert, refuse(Refusal::Unreachable), world.now);
        }
    }
    assert!((60..=65).contains(&asked), "{asked}");
    // One sender does not take all places.
    let mut world = World::new();
    for number in 0..16 {
        world.see(&origin(&neighbour(1), &format!("bogus-{number}")), 1).unwrap();
    }
    assert_eq!(std::iter::from_fn(|| world.book.next(world.now)).count(), MAX_ASKING_OF_SENDER);
}

#[tokio::test]
async fn a_domain_is_told_when_everybody_there_was_asked() {
    let mut world = World::new();
    let domain: Arc<str> = "example".into();
    let sender = Sender::Domain(Arc::clone(&domain));
    world.see(&origin(&sender, "a"), 1).unwrap();
    world.see(&origin(&sender, "b"), 1).unwrap();
    assert_eq!(world.book.of_domain(&domain), None);
    let (first, advert) = world.book.next(world.now).unwrap();
    world.book.answered(&first, &advert, Ok(answer("edge-7")), world.now);
    assert_eq!(world.book.of_domain(&domain), None);
    let (second, advert) = world.book.next(world.now).unwrap();
    world.book.answered(&second, &advert, refuse(Refusal::Unreachable), world.now);
    let Named { found, refused } = world.book.of_domain(&domain).unwrap();
    assert_eq!((found[0].id.as_str(), refused[0].1.why), ("edge-7", Refusal::Unreachable));
    // A record that is not there any more is no problem any more; who was found there may come back.
    world.book.keep_only(&sender, &BTreeSet::new());
    let Named { found, refused } = world.book.of_domain(&domain).unwrap();
    assert_eq!((found.len(), refused.len()), (1, 0));
    world.book.forget(&sender);
    assert_eq!(world.book.of_domain(&domain), Some(Named::default()));
}

#[test]
fn urls_name_the_host_as_urls_do() {
    let address = |text: &str| text.parse::<IpAddr>().unwrap();
    assert_eq!(advert(31520).url(address("10.0.0.1")), "https://10.0.0.1:31520");
    assert_eq!(advert(443).url(address("10.0.0.1")), "https://10.0.0.1");
    assert_eq!(advert(31520).url(address("fd00::1")), "https://[fd00::1]:31520");
}

proptest! {
    #[test]
    fn whatever_is_seen_and_answered_the_book_stays_small_and_fair(
        steps in proptest::collection::vec((0u32..6, 0u32..40, 1u16..3, 0u8..4, 0u64..3_000), 1..300),
    ) {
        let mut world = World::new();
        for (sender, record, port, outcome, millis) in steps {
            let _ = world.see(&origin(&neighbour(sender), &format!("r{record}")), port);
            if let Some((asked, advert)) = world.book.next(world.now) {
                let result = match outcome {
                    0 => Ok(answer("edge-7")),
                    1 => refuse(Refusal::Unreachable),
                    2 => refuse(Refusal::Impostor),
                    _ => continue,
                };
                world.book.answered(&asked, &advert, result, world.now);
            }
            world.now += Duration::from_millis(millis);
            world.book.expire(world.now);
            prop_assert!(world.book.candidates.len() <= 6 * MAX_OF_NEIGHBOUR);
            let asking = world.book.candidates.values().filter(|one| one.asking).count();
            prop_assert!(asking <= MAX_ASKING);
            prop_assert!(world.book.next_time(world.now).is_none_or(|next| next > world.now));
        }
    }
}
