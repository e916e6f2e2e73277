use super::*;

const LEASE: Duration = Duration::from_secs(40);

fn names(count: usize) -> Vec<String> {
    (0..count).map(|number| format!("liqo-provider-{number}")).collect()
}

fn set(schedule: &mut Schedule, names: &[String], now: Instant) {
    schedule.set(names.iter().map(|name| (name.as_str(), "uid")), now);
}

#[tokio::test]
async fn a_thousand_nodes_are_renewed_evenly_and_each_within_its_lease() {
    let start = Instant::now();
    let mut schedule = Schedule::new(LEASE, start);
    let names = names(1000);
    set(&mut schedule, &names, start);
    assert_eq!(schedule.take(start).len(), 1000, "who is new is due at once");
    let mut last: BTreeMap<String, Instant> = names.iter().map(|name| (name.clone(), start)).collect();
    let mut busiest = 0;
    let mut renewed = 0;
    while let Some(at) = schedule.next()
        && at < start + Duration::from_secs(100)
    {
        let due = schedule.take(at);
        if at > start + Duration::from_secs(20) {
            busiest = busiest.max(due.len());
        }
        for Due { name, .. } in due {
            let before = last.insert(name, at).unwrap();
            assert!(at - before <= Duration::from_secs(15), "{:?}", at - before);
            renewed += 1;
        }
    }
    assert!((8_500..=10_000).contains(&renewed), "{renewed}");
    // 200 moments in 10 s; 5 each if it were perfectly even.
    assert!(busiest <= 20, "{busiest} at once");
}

#[tokio::test]
async fn who_is_gone_is_not_renewed_and_one_that_took_its_name_is_due_at_once() {
    let start = Instant::now();
    let mut schedule = Schedule::new(LEASE, start);
    schedule.set([("a", "1"), ("b", "1")], start);
    let first = schedule.take(start);
    assert!(first.iter().all(|due| !due.new), "who leads anew finds leases: {first:?}");
    schedule.set([("a", "2")], start);
    assert_eq!(schedule.take(start), [Due { name: "a".into(), uid: "2".into(), new: true }]);
    schedule.again("a", start);
    schedule.again("b", start);
    assert_eq!(schedule.next(), Some(start + AGAIN));
    schedule.set([], start);
    assert_eq!(schedule.next(), None);
}
