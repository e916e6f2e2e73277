use super::*;
use crate::spec::{ClusterSpec, Spec};

fn place(name: &str) -> Place {
    let base = std::env::temp_dir().join(format!("liqo-state-{name}-{}", std::process::id()));
    Place::new(base, name).unwrap()
}

#[test]
fn a_state_is_read_back_as_it_was_written_and_half_a_state_is_none() {
    let place = place("readback");
    fs::create_dir_all(place.root()).unwrap();
    let plan = Plan::new(&place, &Spec::new([ClusterSpec::real("a", 2)]), "100.64.0.0/16".parse().unwrap());
    let faults = Faults { cuts: vec![("a".into(), "host".into())], delays: vec![] };
    let state = State { phase: Phase::Ready, owner: Some(Owner::me()), plan, faults };
    state.write(&place).unwrap();
    assert_eq!(State::read(&place), Some(state));
    fs::write(place.state_file(), "{\"phase\": \"rea").unwrap();
    assert_eq!(State::read(&place), None);
    fs::remove_dir_all(place.base()).unwrap();
}

#[test]
fn a_second_change_at_the_same_time_is_refused_and_names_the_first() {
    let place = place("lock");
    let held = Lock::of(&place).unwrap();
    let error = Lock::of(&place).unwrap_err().to_string();
    assert!(error.contains(&format!("process {}", std::process::id())), "{error}");
    drop(held);
    Lock::of(&place).unwrap();
    fs::remove_dir_all(place.base()).unwrap();
}

#[test]
fn an_owner_is_told_apart_from_another_process_with_its_number() {
    assert!(Owner::me().is_alive());
    assert!(!Owner { started: "1".into(), ..Owner::me() }.is_alive());
    assert!(!Owner { pid: u32::MAX, started: String::new() }.is_alive());
}
