use serde_json::{Value, json};

use crate::testing::World;

const NORTH: usize = 0;
const SOUTH: usize = 1;

fn lending() -> World {
    let mut world = World::new(&["north", "south"]);
    world.nodes(NORTH, &["8"]);
    world.meet(SOUTH, NORTH);
    let want =
        json!({ "spec": { "outgoingPeeringEnabled": "Yes", "borrowing": { "wanted": { "cpu": "2" } } } });
    world.change(SOUTH, NORTH, &want);
    world
}

fn status(world: &World, policy: &str) -> Value {
    let key = liqo_kit::Key::cluster(policy);
    world.sides[NORTH].server.get("sharingpolicies", &key).unwrap()["status"].clone()
}

#[test]
fn a_policy_tells_whom_it_is_applied_to_and_what_is_sold_by_it() {
    let mut world = lending();
    world.policy(NORTH, "half", &json!({ "share": { "percentage": 50 } }));
    world.policy(NORTH, "gold", &json!({ "peers": { "matchLabels": { "tier": "gold" } } }));
    world.rest();
    let half = status(&world, "half");
    assert_eq!((&half["peers"], &half["sold"]["cpu"]), (&json!(["south"]), &json!("2")), "{half}");
    assert_eq!(half["conditions"][0]["status"], "True");
    assert_eq!(status(&world, "gold")["peers"], Value::Null);
}

#[test]
fn a_policy_that_makes_no_sense_says_so() {
    let mut world = lending();
    let windows = json!([{ "from": "20:00", "to": "06:00", "timeZone": "Europe/Nowhere" }]);
    world.policy(NORTH, "odd", &json!({ "windows": windows }));
    world.rest();
    let odd = status(&world, "odd");
    assert_eq!(odd["conditions"][0]["status"], "False", "{odd}");
    let message = odd["conditions"][0]["message"].as_str().unwrap();
    assert!(message.contains("Europe/Nowhere"), "{message}");
}

#[test]
fn what_is_signed_amended_and_ended_is_in_the_logs_of_both() {
    let mut world = lending();
    world.rest();
    world.change(SOUTH, NORTH, &json!({ "spec": { "borrowing": { "wanted": { "cpu": "4" } } } }));
    world.rest();
    world.change(SOUTH, NORTH, &json!({ "spec": { "outgoingPeeringEnabled": "No" } }));
    world.rest();
    for side in &world.sides {
        let pages: Vec<&Value> = side.server.all("configmaps").map(|(_, page)| page).collect();
        let data = pages[0]["data"].as_object().unwrap();
        let lines =
            data.iter().filter(|(key, _)| key.starts_with("entry-")).map(|(_, line)| line.as_str().unwrap());
        let events: Vec<&str> = lines
            .map(|line| {
                let words = ["signed", "amended", "ended"];
                words.into_iter().find(|word| line.to_lowercase().contains(word)).unwrap_or(line)
            })
            .collect();
        assert_eq!(events.first(), Some(&"signed"), "{events:?}");
        assert_eq!(events.last(), Some(&"ended"), "{events:?}");
        assert!(events.contains(&"amended"), "{events:?}");
    }
}
