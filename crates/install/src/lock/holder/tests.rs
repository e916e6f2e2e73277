use super::Holder;

fn dead_child() -> Holder {
    let mut child = std::process::Command::new("true").spawn().unwrap();
    let pid = child.id();
    let started = super::start_time(pid).unwrap_or_else(|| "1".into());
    child.wait().unwrap();
    Holder { pid, started, ..Holder::me("test") }
}

#[test]
fn people_read_who_it_is() {
    let me = Holder::me("liqoctl install");
    let text = me.text();
    assert!(Holder::name_of(&text).starts_with("liqoctl install of "), "{text}");
    assert!(!Holder::name_of(&text).contains('#'));
}

#[test]
fn a_living_process_is_not_dead_and_a_dead_one_is() {
    let me = Holder::me("test");
    assert!(!me.knows_dead(&me.text()));
    assert!(me.knows_dead(&dead_child().text()));
}

#[test]
fn another_process_with_the_same_number_does_not_count() {
    let me = Holder::me("test");
    let earlier = Holder { started: "1".into(), ..me.clone() };
    assert!(me.knows_dead(&earlier.text()));
}

#[test]
fn nothing_is_known_of_other_machines_and_other_texts() {
    let me = Holder::me("test");
    let other = Holder { machine: "another/4026531836".into(), ..dead_child() };
    assert!(!me.knows_dead(&other.text()));
    assert!(!me.knows_dead("somebody"));
    assert!(!me.knows_dead("#//"));
}
