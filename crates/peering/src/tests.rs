//! Several clusters in memory: whatever happens on the way, the end is the same, and nothing is sold twice.

use std::sync::LazyLock;

use jiff::SignedDuration;
use liqo_core::Resources;
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::testing::{Fate, World};

mod pools;

/// A cluster, by its number; the first one lends.
const NORTH: usize = 0;
const SOUTH: usize = 1;
const WEST: usize = 2;

/// What people do.
#[derive(Clone, Copy, Debug)]
enum Act {
    /// One asks another for so many cores.
    Borrow(usize, usize, &'static str),
    /// One does not want to borrow from another any more.
    Stop(usize, usize),
    /// One lends to another unasked.
    Lend(usize, usize),
    /// One does not lend to another any more.
    Refuse(usize, usize),
    /// One puts another out.
    PutOut(usize, usize),
    /// One lets another in that it had put out.
    LetIn(usize, usize),
    /// One forgets another.
    Forget(usize, usize),
    /// One shares so many hundredths.
    Share(usize, u8),
    /// One has nodes with so many cores.
    Nodes(usize, &'static [&'static str]),
}

impl Act {
    fn perform(self, world: &mut World) {
        let outgoing = |want: &str| json!({ "spec": { "outgoingPeeringEnabled": want } });
        let incoming = |want: &str| json!({ "spec": { "incomingPeeringEnabled": want } });
        match self {
            Self::Borrow(of, from, cores) => {
                let borrowing = json!({ "spec": { "borrowing": { "wanted": { "cpu": cores } } } });
                world.change(of, from, &borrowing);
                world.change(of, from, &outgoing("Yes"));
            }
            Self::Stop(of, from) => world.change(of, from, &outgoing("No")),
            Self::Lend(of, to) => world.change(of, to, &incoming("Yes")),
            Self::Refuse(of, to) => world.change(of, to, &incoming("No")),
            Self::PutOut(of, other) => world.put_out(of, other, true),
            Self::LetIn(of, other) => world.put_out(of, other, false),
            Self::Forget(of, other) => world.remove(of, other),
            Self::Share(of, percentage) => {
                world.policy(of, "share", &json!({ "share": { "percentage": percentage } }));
            }
            Self::Nodes(of, cores) => world.nodes(of, cores),
        }
    }
}

/// Who calls whom, and what people do then.
struct Story {
    calls: &'static [(usize, usize)],
    acts: &'static [Act],
}

impl Story {
    fn begin(&self) -> World {
        let mut world = World::new(&["north", "south", "west"]);
        world.nodes(NORTH, &["8", "8"]);
        world.nodes(SOUTH, &["4"]);
        world.nodes(WEST, &["4"]);
        self.calls.iter().for_each(|(caller, called)| world.meet(*caller, *called));
        world
    }

    /// How it goes when nothing goes wrong.
    fn undisturbed(&self) -> World {
        let mut world = self.begin();
        for act in self.acts {
            world.rest();
            act.perform(&mut world);
        }
        world.rest();
        world
    }

    /// How it goes when much goes wrong, by these dice.
    fn disturbed(&self, seed: u64, check: impl Fn(&World)) -> World {
        let (mut world, mut dice) = (self.begin(), Dice(seed | 1));
        let mut acts = self.acts.iter();
        for moment in 0..self.acts.len() * MOMENTS {
            if moment % MOMENTS == 0
                && let Some(act) = acts.next()
            {
                act.perform(&mut world);
            }
            self.disturb(&mut world, &mut dice);
            check(&world);
        }
        for (caller, called) in self.calls {
            world.cut(*caller, *called, false);
        }
        world.rest();
        check(&world);
        world
    }

    fn disturb(&self, world: &mut World, dice: &mut Dice) {
        let (side, which) = (dice.roll(3), dice.roll(1000));
        match dice.roll(24) {
            0..12 => drop(world.hear(side, which)),
            12..19 => drop(world.act(side, which, Fate::Made)),
            19 => drop(world.act(side, which, Fate::Unheard)),
            20 => drop(world.act(side, which, Fate::Killed)),
            21 => drop(world.act(side, which, Fate::Lost)),
            22 => {
                let (caller, called) = self.calls[dice.roll(self.calls.len())];
                world.cut(caller, called, dice.roll(2) == 0);
                world.sides[caller].notice();
            }
            _ => world.wait(SignedDuration::from_millis(50)),
        }
    }
}

/// Moments after each act in which something may go wrong.
const MOMENTS: usize = 150;

/// Numbers that look like chance and are the same for the same seed.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % sides as u64).unwrap()
    }
}

fn cpu(resources: &Resources) -> i64 {
    resources.get("cpu").map_or(0, liqo_core::Quantity::milli_value)
}

fn same_end(story: &Story, expected: &Value, seed: u64) {
    let found = story.disturbed(seed, |_| {});
    let differs = difference(expected, &found.state());
    assert!(differs.is_empty(), "{differs}\n{}", found.told());
}

/// Stories that have one end.
static STORIES: LazyLock<Vec<(Story, Value)>> = LazyLock::new(|| {
    let stories =
        [PULL, PUSH, CHANGES, LESS, UNPEER, BACK_AGAIN, LET_IN, WITHDRAW, RETURN, FORGET, BOTH_WAYS];
    stories
        .into_iter()
        .map(|story| (story.undisturbed().state(), story))
        .map(|(end, story)| (story, end))
        .collect()
});

/// In what the ends differ, cluster by cluster.
fn difference(expected: &Value, found: &Value) -> String {
    let mut differences = String::new();
    for (name, expected) in expected.as_object().unwrap() {
        let objects = |side: &Value| side["objects"].as_array().cloned().unwrap();
        let (wanted, there) = (objects(expected), objects(&found[name]));
        let missing = wanted.iter().filter(|object| !there.contains(object));
        let spare = there.iter().filter(|object| !wanted.contains(object));
        differences.extend(missing.map(|object| format!("{name} lacks {object}\n")));
        differences.extend(spare.map(|object| format!("{name} has {object}\n")));
        if wanted.len() != there.len() || expected["sold"] != found[name]["sold"] {
            let count =
                |objects: &[Value], side: &Value| format!("{} objects, sold {}", objects.len(), side["sold"]);
            let (expected, found) = (count(&wanted, expected), count(&there, &found[name]));
            differences.push_str(&format!("{name}: {found} instead of {expected}\n"));
        }
    }
    differences
}

const PULL: Story = Story { calls: &[(SOUTH, NORTH)], acts: &[Act::Borrow(SOUTH, NORTH, "3")] };

const PUSH: Story = Story {
    calls: &[(NORTH, SOUTH)],
    acts: &[
        Act::Lend(NORTH, SOUTH),
        Act::Borrow(SOUTH, NORTH, "3"),
        Act::Share(NORTH, 10),
        Act::Share(NORTH, 50),
    ],
};

const CHANGES: Story = Story {
    calls: &[(SOUTH, NORTH)],
    acts: &[
        Act::Borrow(SOUTH, NORTH, "3"),
        Act::Share(NORTH, 50),
        Act::Borrow(SOUTH, NORTH, "6"),
        Act::Nodes(NORTH, &["8", "8", "16"]),
        Act::Borrow(SOUTH, NORTH, "12"),
    ],
};

/// One wants less, and then a little more.
const LESS: Story = Story {
    calls: &[(SOUTH, NORTH)],
    acts: &[
        Act::Borrow(SOUTH, NORTH, "9"),
        Act::Borrow(SOUTH, NORTH, "3"),
        // Less by so little that the offer stays what it is.
        Act::Borrow(SOUTH, NORTH, "2950m"),
        Act::Borrow(SOUTH, NORTH, "4"),
    ],
};

const UNPEER: Story =
    Story { calls: &[(SOUTH, NORTH)], acts: &[Act::Borrow(SOUTH, NORTH, "3"), Act::Stop(SOUTH, NORTH)] };

const BACK_AGAIN: Story = Story {
    calls: &[(SOUTH, NORTH)],
    acts: &[
        Act::Borrow(SOUTH, NORTH, "3"),
        Act::Stop(SOUTH, NORTH),
        Act::Borrow(SOUTH, NORTH, "4"),
        Act::Refuse(NORTH, SOUTH),
        Act::Lend(NORTH, SOUTH),
    ],
};

const PUT_OUT: Story =
    Story { calls: &[(SOUTH, NORTH)], acts: &[Act::Borrow(SOUTH, NORTH, "3"), Act::PutOut(NORTH, SOUTH)] };

/// The same where the one that lends calls.
const PUT_OUT_THERE: Story = Story {
    calls: &[(NORTH, SOUTH)],
    acts: &[Act::Lend(NORTH, SOUTH), Act::Borrow(SOUTH, NORTH, "3"), Act::PutOut(NORTH, SOUTH)],
};

const LET_IN: Story = Story {
    calls: &[(SOUTH, NORTH)],
    acts: &[Act::Borrow(SOUTH, NORTH, "3"), Act::PutOut(NORTH, SOUTH), Act::LetIn(NORTH, SOUTH)],
};

const WITHDRAW: Story = Story {
    calls: &[(NORTH, SOUTH)],
    acts: &[Act::Lend(NORTH, SOUTH), Act::Borrow(SOUTH, NORTH, "3"), Act::Refuse(NORTH, SOUTH)],
};

const RETURN: Story = Story {
    calls: &[(NORTH, SOUTH)],
    acts: &[
        Act::Lend(NORTH, SOUTH),
        Act::Borrow(SOUTH, NORTH, "3"),
        Act::Stop(SOUTH, NORTH),
        Act::Borrow(SOUTH, NORTH, "2"),
        Act::Stop(SOUTH, NORTH),
        Act::Refuse(NORTH, SOUTH),
    ],
};

const FORGET: Story =
    Story { calls: &[(SOUTH, NORTH)], acts: &[Act::Borrow(SOUTH, NORTH, "3"), Act::Forget(SOUTH, NORTH)] };

const BOTH_WAYS: Story = Story {
    calls: &[(SOUTH, NORTH), (NORTH, SOUTH)],
    acts: &[Act::Borrow(SOUTH, NORTH, "3"), Act::Borrow(NORTH, SOUTH, "2"), Act::Stop(SOUTH, NORTH)],
};

/// Two want more than there is.
const RIVALS: Story = Story {
    calls: &[(SOUTH, NORTH), (WEST, NORTH)],
    acts: &[
        Act::Borrow(SOUTH, NORTH, "9"),
        Act::Borrow(WEST, NORTH, "9"),
        Act::Stop(SOUTH, NORTH),
        Act::Borrow(SOUTH, NORTH, "12"),
        Act::Borrow(WEST, NORTH, "14"),
    ],
};

/// The same where one of them is offered something unasked.
const RIVALS_PUSHED: Story = Story {
    calls: &[(SOUTH, NORTH), (NORTH, WEST)],
    acts: &[
        Act::Borrow(SOUTH, NORTH, "9"),
        Act::Lend(NORTH, WEST),
        Act::Borrow(WEST, NORTH, "9"),
        Act::Stop(SOUTH, NORTH),
        Act::Borrow(SOUTH, NORTH, "12"),
    ],
};

#[test]
fn a_consumer_that_asks_gets_a_contract_and_a_restart_writes_nothing() {
    for story in [PULL, PUSH, CHANGES, BOTH_WAYS, UNPEER, BACK_AGAIN, WITHDRAW, FORGET, RIVALS, RIVALS_PUSHED]
    {
        let mut world = story.undisturbed();
        let writes = world.writes.len();
        (0..3).for_each(|side| world.sides[side].restart());
        world.rest();
        assert_eq!(world.writes[writes..], [""; 0], "{:#}", world.state());
    }
    assert_eq!(cpu(&PULL.undisturbed().really_sold(NORTH)), 3000);
    assert_eq!(cpu(&PUSH.undisturbed().really_sold(NORTH)), 3000);
    assert_eq!(cpu(&CHANGES.undisturbed().really_sold(NORTH)), 12000);
}

#[test]
fn one_change_makes_one_amendment() {
    // What people do after the first contract.
    for (story, changes) in [(PULL, 0), (CHANGES, 4), (LESS, 3), (PUSH, 2)] {
        assert_eq!(amendments(&story.undisturbed()), changes);
        // The provider takes its time.
        let mut world = story.begin();
        for act in story.acts {
            world.rest();
            act.perform(&mut world);
            loop {
                while world.hear(SOUTH, 0) {}
                world.sides[SOUTH].notice();
                if !world.act(SOUTH, 0, Fate::Made) {
                    break;
                }
            }
        }
        world.rest();
        assert_eq!(amendments(&world), changes, "{}", world.told());
    }
}

fn amendments(world: &World) -> usize {
    world.writes.iter().filter(|write| write.contains("south: amend contract")).count()
}

#[test]
fn who_parts_leaves_nothing() {
    for story in [UNPEER, WITHDRAW, RETURN, FORGET] {
        let world = story.undisturbed();
        assert_eq!(cpu(&world.really_sold(NORTH)), 0);
        for side in &world.sides {
            assert_eq!(side.server.all("contracts").count(), 0, "{:#}", world.state());
            assert!(side.sold().is_empty(), "{}", side.sold());
        }
    }
    // Who came by itself and went for good is forgotten.
    assert_eq!(FORGET.undisturbed().sides[NORTH].server.all("foreignclusters").count(), 0);
}

/// Whichever of its writes is made first.
#[test]
fn who_withdraws_a_standing_offer_is_not_done_while_it_keeps_the_contract() {
    for seed in 1..5 {
        let (mut world, mut dice) = (PUSH.undisturbed(), Dice(seed));
        Act::Refuse(NORTH, SOUTH).perform(&mut world);
        for moment in 0..2 * MOMENTS {
            let side = moment % 2;
            while world.hear(side, 0) {}
            world.act(side, dice.roll(1000), Fate::Made);
            let kept = world.sides[NORTH].server.all("contracts").count();
            assert!(kept == 0 || incoming(&world)["status"] != "None", "{}", world.told());
        }
        assert_eq!(incoming(&world)["status"], "None", "{}", world.told());
    }
}

/// What the one that lends tells of it.
fn incoming(world: &World) -> Value {
    let (_, cluster) = world.sides[NORTH].server.all("foreignclusters").next().unwrap();
    let told = cluster["status"]["peeringConditions"].as_array().unwrap();
    told.iter().find(|it| it["type"] == "IncomingPeering").unwrap().clone()
}

#[test]
fn who_is_put_out_is_lent_nothing_until_it_is_let_in() {
    for story in [PUT_OUT, PUT_OUT_THERE] {
        let world = story.undisturbed();
        assert_eq!(cpu(&world.really_sold(NORTH)), 0, "{:#}", world.state());
        assert_eq!(names(&world), [""; 0]);
        let side = &world.sides[NORTH];
        assert!(side.sold().is_empty(), "{}", side.sold());
        assert_eq!(side.server.all("resourceoffers").count(), 0, "{:#}", world.state());
        let incoming = incoming(&world);
        assert_eq!((&incoming["status"], &incoming["reason"]), (&json!("Denied"), &json!("PeerPutOut")));
        assert!(incoming["message"].as_str().unwrap().contains("needs a new token"), "{incoming}");
    }
    let ended = PUT_OUT.undisturbed();
    let (_, contract) = ended.sides[NORTH].server.all("contracts").next().unwrap();
    let conditions = contract["status"]["conditions"].as_array().unwrap();
    let ended = conditions.iter().find(|it| it["type"] == "Ended").unwrap();
    assert_eq!(ended["reason"], "PeerPutOut", "{contract:#}");
    assert_eq!(cpu(&LET_IN.undisturbed().really_sold(NORTH)), 3000);
}

#[test]
fn what_was_over_when_nobody_could_be_told_is_not_taken_up_again() {
    for (story, again) in [(PULL, Act::Borrow(SOUTH, NORTH, "3")), (PUSH, Act::Lend(NORTH, SOUTH))] {
        let (stop, (caller, called)) = match again {
            Act::Lend(..) => (Act::Refuse(NORTH, SOUTH), (NORTH, SOUTH)),
            _ => (Act::Stop(SOUTH, NORTH), (SOUTH, NORTH)),
        };
        let mut world = story.undisturbed();
        let before = names(&world);
        world.cut(caller, called, true);
        world.sides[caller].notice();
        stop.perform(&mut world);
        world.rest();
        // For longer than anybody is waited for.
        world.wait(SignedDuration::from_secs(90));
        world.rest();
        again.perform(&mut world);
        world.cut(caller, called, false);
        world.rest();
        assert_eq!(cpu(&world.really_sold(NORTH)), 3000, "{:#}\n{}", world.state(), world.told());
        let after = names(&world);
        assert!(after.iter().all(|name| !before.contains(name)), "{before:?} {after:?}\n{}", world.told());
    }
}

/// The contracts that are in force, wherever they lie.
fn names(world: &World) -> Vec<String> {
    let contracts = world.sides.iter().flat_map(|side| side.server.all("contracts"));
    let active = contracts.filter(|(_, contract)| contract["status"]["phase"] == json!("Active"));
    active.map(|(key, _)| key.name().to_owned()).collect()
}

#[test]
fn killed_after_each_single_write_the_end_is_the_same() {
    for (story, expected) in &*STORIES {
        for fate in [Fate::Killed, Fate::Unheard] {
            for side in [NORTH, SOUTH] {
                let mut world = story.begin();
                for act in story.acts {
                    act.perform(&mut world);
                    // Every write of this side is its last one.
                    world.rest_with(|by| if by == side { fate } else { Fate::Made });
                }
                world.rest();
                let differs = difference(expected, &world.state());
                assert!(differs.is_empty(), "{fate:?} {side}\n{differs}\n{}", world.told());
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, max_shrink_iters: 0, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn whatever_happens_on_the_way_the_end_is_the_same(seed: u64) {
        for (story, end) in &*STORIES {
            same_end(story, end, seed);
        }
    }

    #[test]
    fn nothing_is_sold_twice(seed: u64) {
        // 90 % of 16 cores.
        let check = |world: &World| {
            let sold = cpu(&world.really_sold(NORTH));
            assert!(sold <= 14_400, "{sold}\n{}", world.told());
        };
        for story in [RIVALS, RIVALS_PUSHED] {
            let world = story.disturbed(seed, check);
            let sold = cpu(&world.really_sold(NORTH));
            prop_assert_eq!(cpu(&world.sides[NORTH].sold()), sold, "{}", world.told());
            prop_assert_eq!(sold, 14_400, "{:#}\n{}", world.state(), world.told());
        }
    }
}
