use kube::core::Status;
use kube::core::response::StatusDetails;

use super::*;

fn at(milliseconds: i64) -> Timestamp {
    Timestamp::from_millisecond(1_000_000_000 + milliseconds).unwrap()
}

fn key(name: &str) -> NodeKey {
    ("away".into(), name.into())
}

fn silent() -> Answer {
    Answer::Silent("refused".to_owned())
}

fn using(nodes: &mut Nodes, names: &[&str], now: Timestamp) {
    nodes.use_only(&names.iter().map(|name| (key(name), false)).collect(), now);
}

/// Asks one node in rounds, as long as it takes `answer` milliseconds; it is dead from `dead` until `alive`. Returns when
/// it was thought to be gone, and when to be back.
fn life(answer: i64, dead: i64, alive: i64) -> (Option<i64>, Option<i64>) {
    let mut nodes = Nodes::default();
    let (mut gone, mut back) = (None, None);
    let mut under_way: Option<i64> = None;
    for now in (0..60_000).step_by(100) {
        using(&mut nodes, &["one"], at(now));
        if let Some(begun) = under_way {
            let dies = (dead..alive).contains(&begun);
            if !dies || now >= begun + answer {
                nodes.observe(&key("one"), if dies { silent() } else { Answer::Lives }, at(now));
                under_way = None;
            }
        } else if !nodes.take_due(at(now)).is_empty() {
            under_way = Some(now);
        }
        match nodes.health("away", "one") {
            Health::Unreachable { .. } => drop(gone.get_or_insert(now)),
            Health::Reachable if gone.is_some() => drop(back.get_or_insert(now)),
            Health::Reachable | Health::Unknown => {}
        }
    }
    (gone, back)
}

#[test]
fn a_dead_node_is_noticed_within_ten_seconds_whether_it_refuses_or_is_silent() {
    for answer in [0, 500, 2000] {
        for dead in (10_000..14_000).step_by(100) {
            let (gone, _) = life(answer, dead, i64::MAX);
            let took = gone.unwrap() - dead;
            assert!((6_000..=10_000).contains(&took), "{took} ms, answers take {answer}, dead at {dead}");
        }
    }
}

#[test]
fn a_blip_moves_nothing() {
    for dead in (10_000..14_000).step_by(100) {
        for answer in [0, 2000] {
            assert_eq!(life(answer, dead, dead + 5_000), (None, None), "{dead}");
        }
    }
}

#[test]
fn a_node_is_back_when_it_has_answered_for_a_while() {
    let (gone, back) = life(0, 10_000, 30_000);
    assert!(gone.is_some());
    assert!((34_000..=37_000).contains(&back.unwrap()), "{back:?}");
}

#[test]
fn one_that_never_answered_is_not_gone_and_is_asked_seldom() {
    let mut nodes = Nodes::default();
    let mut asked = 0;
    for now in (0..240_000).step_by(500) {
        using(&mut nodes, &["one"], at(now));
        for (key, _) in nodes.take_due(at(now)) {
            nodes.observe(&key, silent(), at(now));
            // In the first minute it may still be starting.
            asked += i32::from(now > 60_000);
        }
    }
    assert_eq!(nodes.health("away", "one"), Health::Unknown);
    assert!(nodes.is_mute("away", "one"));
    assert!(asked <= 3, "{asked}");
}

#[test]
fn one_that_was_said_to_be_gone_need_not_have_answered_to_who_leads_anew() {
    let mut nodes = Nodes::default();
    nodes.use_only(&[(key("one"), true)].into(), at(0));
    for now in (0..=8_000).step_by(1_000) {
        assert!(!nodes.health("away", "one").is_gone(), "{now}");
        nodes.observe(&key("one"), silent(), at(now));
    }
    assert!(nodes.health("away", "one").is_gone());
    assert_eq!(nodes.noticed("away", "one"), Some(at(8_000)));
    assert_eq!(nodes.gone("away").count(), 1);
}

/// Else nobody would notice for a minute that it dies after all.
#[test]
fn one_that_answers_late_is_soon_heard() {
    let mut nodes = Nodes::default();
    for now in (0..40_000).step_by(500) {
        using(&mut nodes, &["one"], at(now));
        for (key, _) in nodes.take_due(at(now)) {
            let answer = if now < 30_000 { silent() } else { Answer::Lives };
            nodes.observe(&key, answer, at(now));
        }
    }
    assert_eq!(nodes.health("away", "one"), Health::Reachable);
}

#[test]
fn what_nobody_can_tell_condemns_nobody() {
    let mut nodes = Nodes::default();
    using(&mut nodes, &["one"], at(0));
    nodes.observe(&key("one"), Answer::Lives, at(0));
    for now in (1..100).map(|second| second * 1_000) {
        nodes.observe(&key("one"), Answer::Unclear, at(now));
    }
    assert_eq!(nodes.health("away", "one"), Health::Reachable);
    // The API server is back, and has just not found the node yet.
    for now in [100_000, 101_000, 103_000, 106_000] {
        assert!(!nodes.observe(&key("one"), silent(), at(now)), "{now}");
    }
    assert!(nodes.observe(&key("one"), silent(), at(107_000)));
    // Nor does it bring one back.
    nodes.observe(&key("one"), Answer::Unclear, at(120_000));
    assert!(nodes.health("away", "one").is_gone());
}

#[test]
fn it_takes_three_attempts_however_long_ago_the_last_answer_was() {
    let mut nodes = Nodes::default();
    using(&mut nodes, &["one"], at(0));
    nodes.observe(&key("one"), Answer::Lives, at(0));
    assert!(!nodes.observe(&key("one"), silent(), at(100_000)));
    assert!(!nodes.observe(&key("one"), silent(), at(100_500)));
    assert!(nodes.observe(&key("one"), silent(), at(101_000)));
}

#[test]
fn where_we_may_not_ask_nobody_is_condemned_and_it_is_tried_seldom() {
    let mut nodes = Nodes::default();
    let mut asked = 0;
    for now in (0..180_000).step_by(500) {
        using(&mut nodes, &["one"], at(now));
        for (key, _) in nodes.take_due(at(now)) {
            nodes.observe(&key, Answer::Refused, at(now));
            asked += 1;
        }
    }
    assert_eq!(nodes.health("away", "one"), Health::Unknown);
    assert!(asked <= 6, "{asked}");
}

#[test]
fn one_that_nobody_can_ask_is_asked_later() {
    let mut nodes = Nodes::default();
    using(&mut nodes, &["one"], at(0));
    assert_eq!(nodes.take_due(at(0)), [(key("one"), 0)]);
    assert_eq!(nodes.take_due(at(5_000)), [], "it is being asked");
    nodes.postpone(&key("one"), at(5_000));
    assert_eq!(nodes.take_due(at(5_250)), []);
    assert_eq!(nodes.take_due(at(5_500)), [(key("one"), 0)]);
}

#[test]
fn many_nodes_are_asked_in_turns_and_those_in_doubt_first() {
    let mut nodes = Nodes::default();
    let names: Vec<String> = (0..100).map(|number| format!("node-{number:03}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let mut asked = BTreeMap::<NodeKey, usize>::new();
    for now in (0..20_000).step_by(250) {
        using(&mut nodes, &names, at(now));
        let due = nodes.take_due(at(now));
        assert!(due.len() <= MOST_IN_A_ROUND);
        for (node, _) in due {
            let dead = node == key("node-050") && now > 5_000;
            nodes.observe(&node, if dead { silent() } else { Answer::Lives }, at(now));
            *asked.entry(node).or_default() += 1;
        }
    }
    assert!(asked.values().all(|count| *count >= 3), "{asked:?}");
    assert!(nodes.health("away", "node-050").is_gone());
    assert_eq!(nodes.counts().collect::<Vec<_>>(), [(&Arc::from("away"), 1)]);
}

#[test]
fn a_node_without_pods_of_ours_is_forgotten_after_a_while() {
    let mut nodes = Nodes::default();
    using(&mut nodes, &["one"], at(0));
    nodes.observe(&key("one"), Answer::Lives, at(0));
    for now in [3_000, 5_000, 9_000] {
        nodes.observe(&key("one"), silent(), at(now));
    }
    using(&mut nodes, &[], at(59_000));
    assert!(nodes.health("away", "one").is_gone());
    using(&mut nodes, &[], at(60_000));
    assert_eq!(nodes.health("away", "one"), Health::Unknown);
}

fn failure(code: u16, message: &str) -> kube::Error {
    kube::Error::Api(Box::new(Status::failure(message, "").with_code(code)))
}

#[test]
fn any_word_of_a_kubelet_is_life_and_what_the_api_server_says_is_told_apart() {
    let reads = |code, message: &str| ask::read(&failure(code, message));
    let waiting = "container \"main\" in pod \"one\" is waiting to start: ContainerCreating";
    assert_eq!(reads(400, waiting), Answer::Lives);
    for cause in [
        "dial tcp 10.0.0.2:10250: connect: connection refused",
        "dial tcp 10.0.0.2:10250: connect: no route to host",
        "net/http: TLS handshake timeout",
    ] {
        let message = format!("Get \"https://10.0.0.2:10250/containerLogs/a/b/c\": {cause}");
        assert_eq!(reads(500, &message), Answer::Silent(cause.to_owned()));
        assert_eq!(reads(500, cause), Answer::Silent(cause.to_owned()));
    }
    assert_eq!(reads(500, "failed to open the log file"), Answer::Refused);
    for code in [401, 403, 404, 429, 503] {
        assert_eq!(reads(code, "no"), Answer::Refused, "{code}");
    }
    let details = StatusDetails {
        name: "one".to_owned(),
        group: String::new(),
        kind: "nodes".to_owned(),
        uid: String::new(),
        causes: vec![],
        retry_after_seconds: 0,
    };
    let removed = Status::failure("nodes \"one\" not found", "NotFound").with_code(404).with_details(details);
    assert!(matches!(ask::read(&kube::Error::Api(Box::new(removed))), Answer::Silent(_)));
}

fn gone(since: i64) -> Health {
    Health::Unreachable { since: at(since), why: "refused".into() }
}

/// What is thought of a virtual node behind which there is this, second by second.
fn bench(story: &[(i64, &[Health], bool)]) -> Vec<Health> {
    let mut bench = Bench::default();
    let mut told = vec![];
    for (second, nodes, unplaced) in story {
        let behind = Behind { nodes: nodes.to_vec(), unplaced: *unplaced };
        told.push(bench.judge(&[("liqo-away".into(), behind)].into(), at(second * 1_000)).of("liqo-away"));
    }
    told
}

#[test]
fn a_virtual_node_is_gone_when_all_nodes_behind_it_are() {
    let (fine, bad) = (Health::Reachable, gone(1));
    let told = bench(&[
        (0, &[Health::Unknown], false),
        (1, &[fine.clone(), fine.clone()], false),
        (2, &[fine.clone(), bad.clone()], false),
        (3, &[gone(2), bad.clone()], false),
        (4, &[gone(2), fine.clone()], false),
    ]);
    assert_eq!(told, [Health::Unknown, fine.clone(), fine.clone(), gone(2), fine]);
}

#[test]
fn it_is_tried_again_after_a_minute_and_benched_if_pods_are_not_placed_there() {
    let bad = [gone(1)];
    let told = bench(&[
        (0, &bad, false),
        (30, &bad, true),
        (60, &bad, false),
        (61, &bad, false),
        (70, &bad, true),
        (71, &bad, false),
        (131, &[gone(1), Health::Unknown], false),
    ]);
    let fine = Health::Reachable;
    assert_eq!(told, [gone(1), gone(1), fine.clone(), fine.clone(), gone(1), gone(1), fine]);
}

#[test]
fn without_pods_it_comes_back_after_a_minute() {
    let told = bench(&[(0, &[gone(1)], false), (59, &[], false), (60, &[], false)]);
    assert_eq!(told, [gone(1), gone(1), Health::Reachable]);
}

#[test]
fn a_survey_tells_what_changed() {
    let mut bench = Bench::default();
    let behind = |nodes: Vec<Health>| [("liqo-away".into(), Behind { nodes, unplaced: false })].into();
    let nothing = Survey::default();
    assert_eq!(nothing.of("liqo-away"), Health::Unknown);
    let first = bench.judge(&behind(vec![gone(1)]), at(0));
    assert_eq!(nothing.differing(&first), ["liqo-away".into()].into());
    let second = bench.judge(&behind(vec![gone(1)]), at(1_000));
    assert!(first.differing(&second).is_empty());
    let third = bench.judge(&behind(vec![Health::Reachable]), at(2_000));
    assert_eq!(second.differing(&third), ["liqo-away".into()].into());
}
