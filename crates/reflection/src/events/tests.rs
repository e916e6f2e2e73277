use super::*;

struct World {
    events: Events,
    standing: Option<Standing>,
}

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_second(1_000_000 + seconds).unwrap()
}

fn pod(name: &str) -> Subject {
    Subject::Pod(Key::namespaced("shop", name))
}

impl World {
    fn new() -> Self {
        let standing = Standing { uid: "u".into(), settled: false, quiet: false };
        Self { events: Events::default(), standing: Some(standing) }
    }

    fn hear(&mut self, name: &str, reason: &str, count: i32, seconds: i64) {
        let said = Said {
            warning: reason.starts_with("Failed") || reason == "BackOff",
            reason: reason.to_owned(),
            message: format!("{reason} it is"),
            component: "kubelet".to_owned(),
            count,
            first: at(0),
            last: at(seconds),
        };
        self.events.hear(pod(name), &Arc::from("away"), said, at(seconds));
    }

    fn told(&mut self, seconds: i64) -> Vec<String> {
        let standing = self.standing.clone();
        let all = self.events.due(at(seconds), |_| standing.clone());
        all.into_iter().map(|(_, _, said)| format!("{} x{}", said.reason, said.count)).collect()
    }

    fn settle(&mut self) {
        self.standing = self.standing.take().map(|it| Standing { settled: true, ..it });
    }
}

#[test]
fn a_warning_is_told_at_once_and_once() {
    let mut world = World::new();
    world.hear("p", "FailedMount", 1, 0);
    assert_eq!(world.told(0), ["FailedMount x1"]);
    world.hear("p", "FailedMount", 1, 1);
    assert!(world.told(1).is_empty());
    assert!(world.told(100).is_empty());
}

#[test]
fn what_is_said_again_and_again_is_told_now_and_then_with_its_count() {
    let mut world = World::new();
    world.hear("p", "BackOff", 1, 0);
    assert_eq!(world.told(0), ["BackOff x1"]);
    for second in 1..30 {
        world.hear("p", "BackOff", 1 + i32::try_from(second).unwrap(), second);
        assert!(world.told(second).is_empty());
    }
    assert_eq!(world.events.wake(), Some(at(30)));
    assert_eq!(world.told(30), ["BackOff x30"]);
    assert_eq!(world.events.wake(), None);
}

#[test]
fn a_pod_that_comes_to_run_says_nothing_normal() {
    let mut world = World::new();
    for reason in ["Scheduled", "Pulled", "Created", "Started"] {
        world.hear("p", reason, 1, 0);
    }
    assert!(world.told(1).is_empty());
    world.settle();
    assert!(world.told(10).is_empty());
    assert_eq!(world.events.wake(), None, "nothing is kept");
}

#[test]
fn a_pod_that_does_not_come_to_run_says_all() {
    let mut world = World::new();
    world.hear("p", "Scheduled", 1, 0);
    world.hear("p", "Pulling", 1, 1);
    assert!(world.told(9).is_empty());
    assert_eq!(world.told(10), ["Pulling x1", "Scheduled x1"]);
    // From now on it is known to be slow.
    world.hear("p", "Pulled", 1, 30);
    world.settle();
    assert!(world.told(60).is_empty());
}

#[test]
fn nobody_is_told_about_pods_that_are_gone_or_want_to_be_quiet() {
    let mut world = World::new();
    world.standing = None;
    world.hear("p", "FailedMount", 1, 0);
    assert!(world.told(0).is_empty());
    let mut world = World::new();
    world.standing.as_mut().unwrap().quiet = true;
    world.hear("p", "FailedMount", 1, 0);
    assert!(world.told(0).is_empty());
    assert_eq!(world.events.wake(), None);
}

#[test]
fn another_pod_of_the_name_is_told_about_anew() {
    let mut world = World::new();
    world.hear("p", "FailedMount", 1, 0);
    assert_eq!(world.told(0).len(), 1);
    world.standing.as_mut().unwrap().uid = "another".into();
    world.hear("p", "FailedMount", 1, 5);
    assert_eq!(world.told(5), ["FailedMount x1"]);
}

#[test]
fn one_pod_does_not_fill_the_list() {
    let mut world = World::new();
    for number in 0..100 {
        world.hear("p", &format!("Failed{number}"), 1, 0);
        world.told(0);
    }
    world.hear("q", "FailedMount", 1, 0);
    assert_eq!(world.told(0), ["FailedMount x1"]);
    assert_eq!(world.events.told[&pod("p")].what.len(), MOST_EACH);
}

#[test]
fn a_provider_where_nothing_works_is_told_about_slowly_and_fully() {
    let mut world = World::new();
    for number in 0..200 {
        world.hear(&format!("p-{number}"), "FailedMount", 1, 0);
    }
    assert_eq!(world.told(0).len(), WARNINGS.burst as usize);
    assert!(world.told(0).is_empty());
    let mut rest = 0;
    for second in 1..=10 {
        let told = world.told(second).len();
        assert!(told <= WARNINGS.each_second as usize, "{told}");
        rest += told;
    }
    assert_eq!(rest, 100);
    assert_eq!(world.events.wake(), None);
}

#[test]
fn many_slow_pods_do_not_say_much() {
    let mut world = World::new();
    for number in 0..1000 {
        world.hear(&format!("p-{number}"), "Scheduled", 1, 0);
    }
    let told: usize = (1..=40).map(|second| world.told(second).len()).sum();
    assert!((20..=50).contains(&told), "{told}");
    world.settle();
    assert!(world.told(60).is_empty());
    assert_eq!(world.events.wake(), None, "nothing is kept");
}
