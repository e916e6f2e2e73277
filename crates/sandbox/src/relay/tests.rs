use super::*;

const NEAR: [u8; 6] = [2, 0, 0, 0, 0, 1];
const FAR: [u8; 6] = [2, 0, 0, 0, 0, 2];

fn frame(to: [u8; 6], from: [u8; 6]) -> Vec<u8> {
    [&to[..], &from[..], &[8, 0, 1, 2, 3]].concat()
}

#[test]
fn only_frames_to_and_from_the_other_end_wait() {
    let mut plan = RelayPlan::default();
    plan.add("c0n1", FAR, Duration::from_millis(50));
    let link = &plan.links[0];
    let wait = Some(Duration::from_millis(50));
    assert_eq!(link.wait_of(&frame(FAR, NEAR), Towards::Internet), wait);
    assert_eq!(link.wait_of(&frame(NEAR, FAR), Towards::Machine), wait);
    assert_eq!(link.wait_of(&frame([0xff; 6], NEAR), Towards::Internet), None, "broadcast");
    assert_eq!(link.wait_of(&[1, 2, 3], Towards::Internet), None, "a runt");
}

#[test]
fn a_plan_survives_its_file() {
    let mut plan = RelayPlan::default();
    plan.add("c0n1", FAR, Duration::from_millis(50));
    plan.add("c0n1", NEAR, Duration::from_millis(5));
    let path = std::env::temp_dir().join(format!("liqo-relay-{}", std::process::id()));
    plan.write(&path).unwrap();
    assert_eq!(RelayPlan::read(&path).unwrap(), plan);
    fs::remove_file(path).unwrap();
}
