use super::Slots;

#[test]
fn places_come_back_and_are_never_oversold() {
    let slots = Slots::new(3);
    let two = slots.take(2).unwrap();
    assert!(slots.take(2).is_none(), "only one is left");
    let one = slots.take(1).unwrap();
    assert_eq!(slots.used(), 3);
    drop(two);
    assert!(slots.take(2).is_some());
    drop(one);
    assert_eq!(slots.used(), 0);
    assert!(slots.take(usize::MAX).is_none());
}
