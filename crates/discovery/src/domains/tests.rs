use super::*;
use crate::advert::{Advert, Host, Refusal};

fn domain(name: &str, searched: &str) -> Domain {
    Domain {
        name: name.into(),
        uid: "uid".to_owned(),
        resource_version: "1".to_owned(),
        generation: Some(1),
        domain: searched.to_owned(),
        status: SearchDomainStatus::default(),
        deleting: false,
    }
}

fn found(ttl: u32, broken: bool) -> Result<Findings, Trouble> {
    let advert = Advert {
        id: None,
        name: None,
        fingerprint: None,
        host: Host::Address,
        port: 1,
        addresses: vec![],
        ttl,
    };
    let mut records = vec![("good".into(), Ok(advert))];
    if broken {
        records.push(("bad".into(), Err(Refused::new(Refusal::NotResolved, "no SRV record"))));
    }
    Ok(Findings { records, ttl })
}

struct World {
    domains: Domains,
    now: Instant,
}

impl World {
    fn new() -> Self {
        let mut world = Self { domains: Domains::default(), now: Instant::now() };
        world.apply(domain("example", "liqo.example.com"));
        world.domains.synced();
        world.now = Instant::now();
        world
    }

    fn apply(&mut self, domain: Domain) {
        self.domains.apply(&Key::cluster(&domain.name.clone()), domain);
    }

    /// Searches and returns after how many seconds the next search is due, and how long what was found lives.
    fn search(&mut self, result: &Result<Findings, Trouble>) -> (u64, Option<u32>) {
        let (name, searched) = self.domains.next(self.now).unwrap();
        assert_eq!(self.domains.next(self.now), None, "it is being searched");
        let life = self.domains.searched(&name, &searched, result, Timestamp::UNIX_EPOCH, self.now);
        let next = self.domains.next_time().unwrap();
        let pause = (next - self.now).as_secs();
        self.now = next;
        (pause, life)
    }
}

#[tokio::test]
async fn lifetimes_bound_the_time_until_the_next_search() {
    let mut world = World::new();
    for (ttl, pause, life) in
        [(0, 5, 30), (4, 5, 30), (5, 5, 30), (15, 15, 30), (300, 300, 600), (3600, 3600, 7200)]
    {
        assert_eq!(world.search(&found(ttl, false)), (pause, Some(life)), "{ttl}");
    }
    assert_eq!(world.search(&found(u32::MAX, false)), (3600, Some(7200)));
}

#[tokio::test]
async fn trouble_is_looked_at_again_soon() {
    let mut world = World::new();
    assert_eq!(world.search(&found(300, true)), (60, Some(600)));
    assert_eq!(world.search(&found(10, true)), (10, Some(30)));
    assert_eq!(world.search(&Err(Trouble::Failed("refused".into()))), (15, None));
    let search = world.domains.search("example").unwrap();
    assert_eq!(search.broken.len(), 1, "what was known is not forgotten because the server is away");
    for (ttl, pause) in [(None, 60), (Some(10), 10), (Some(0), 5), (Some(3600), 60)] {
        assert_eq!(world.search(&Err(Trouble::NoRecords("none".into(), ttl))), (pause, None), "{ttl:?}");
    }
}

#[tokio::test]
async fn another_domain_is_searched_at_once_and_the_clusters_of_the_former_are_left() {
    let mut world = World::new();
    world.search(&found(300, false));
    assert!(world.domains.is_warm());
    world.apply(domain("example", "liqo.example.com"));
    assert!(world.domains.take_left().is_empty(), "only the status changed");
    world.apply(domain("example", "other.example.com"));
    assert!(!world.domains.is_warm());
    assert_eq!(world.domains.take_left().len(), 1);
    assert_eq!(world.domains.next(Instant::now()).unwrap().1, "other.example.com");
    // An answer about the former domain that comes late does not count.
    let late = world.domains.searched(
        "example",
        "liqo.example.com",
        &found(1, false),
        Timestamp::UNIX_EPOCH,
        world.now,
    );
    assert_eq!(late, None);
    world.domains.delete(&Key::cluster("example"));
    assert_eq!((world.domains.take_left().len(), world.domains.next_time()), (1, None));
}

#[tokio::test]
async fn a_name_that_no_label_can_hold_is_not_searched() {
    let mut world = World::new();
    world.search(&found(300, false));
    world.apply(domain(&"a".repeat(64), "liqo.example.com"));
    assert_eq!(world.domains.next(Instant::now()), None);
    assert!(world.domains.is_warm());
}
