use super::*;

fn service(priority: u16, weight: u16, port: u16, target: &str) -> Record {
    let target = Name::from_ascii(target).unwrap();
    let data = RData::SRV(SRV::new(priority, weight, port, target));
    Record::from_rdata(Name::from_ascii("x.example.com.").unwrap(), 300, data)
}

#[test]
fn of_several_services_the_preferred_is_chosen_in_any_order() {
    let mut records =
        [service(20, 5, 1, "b."), service(10, 5, 2, "b."), service(10, 9, 3, "a."), service(10, 9, 4, "b.")];
    for _ in 0..records.len() {
        records.rotate_left(1);
        assert_eq!(choose(&records).unwrap().port, 3);
    }
}

#[test]
fn a_service_that_is_not_offered_is_refused() {
    assert_eq!(choose(&[service(0, 0, 1, ".")]).unwrap_err().why, Refusal::InvalidHost);
    assert_eq!(choose(&[]).unwrap_err().why, Refusal::NotResolved);
}

#[test]
fn names_are_told_without_the_final_dot_and_escaped() {
    assert_eq!(display(&Name::from_ascii("a.example.com.").unwrap()).as_ref(), "a.example.com");
    let hostile = Name::from_labels([b"a\x1b[2J\0".as_slice(), b"com"]).unwrap();
    assert!(!display(&hostile).chars().any(char::is_control));
}
