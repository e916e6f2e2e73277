//! Random orders of events on the slots themselves.

use proptest::prelude::*;

use super::super::slots::{Slots, Verdict};
use super::*;

#[derive(Clone, Debug)]
enum Step {
    Put(u8),
    Start,
    /// The oldest attempt under way ends: 0 done, 1 retry, 2 give up.
    End(u8),
    Pass(u16),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        3 => (0u8..6).prop_map(Step::Put),
        3 => Just(Step::Start),
        2 => (0u8..3).prop_map(Step::End),
        1 => (0u16..20_000).prop_map(Step::Pass),
    ]
}

proptest! {
    #[test]
    fn no_object_is_under_way_twice_none_is_forgotten_and_the_bound_holds(
        steps in proptest::collection::vec(step(), 0..100),
    ) {
        let config = QueueConfig { capacity: 4, ..QueueConfig::default() };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        let _guard = runtime.enter();
        let mut now = Instant::now();
        let mut slots = Slots::new();
        let mut flying = VecDeque::new();
        let mut owed = std::collections::BTreeSet::new();
        for step in &steps {
            match step {
                Step::Put(name) => {
                    let write = write(&name.to_string(), "1");
                    let (slot, plan) = (write.slot(), write.clone());
                    if slots.put(slot.clone(), Arc::new(move || Some(plan.clone())), &config, now) != Enqueued::Full {
                        owed.insert(slot);
                    }
                }
                Step::Start => if let Some(job) = slots.next(now) {
                    prop_assert!(!flying.contains(&job.slot), "{:?} is under way already", job.slot);
                    prop_assert!(owed.remove(&job.slot), "{:?} was not asked for", job.slot);
                    flying.push_back(job.slot);
                },
                Step::End(how) => if let Some(slot) = flying.pop_front() {
                    let verdict = [Verdict::Done, Verdict::Retry(None), Verdict::GiveUp].into_iter()
                        .nth(usize::from(*how)).unwrap();
                    if *how == 1 {
                        owed.insert(slot.clone());
                    }
                    slots.finish(&slot, &verdict, &config, now);
                },
                Step::Pass(millis) => now += Duration::from_millis(u64::from(*millis)),
            }
            prop_assert!(slots.len() <= config.capacity);
        }
        // Everything still owed gets its turn, given time.
        while let Some(slot) = flying.pop_front() {
            slots.finish(&slot, &Verdict::Done, &config, now);
        }
        now += Duration::from_secs(3600);
        while let Some(job) = slots.next(now) {
            prop_assert!(owed.remove(&job.slot));
            slots.finish(&job.slot, &Verdict::Done, &config, now);
        }
        prop_assert!(owed.is_empty(), "never got a turn: {owed:?}");
        prop_assert_eq!(slots.len(), 0);
    }
}
