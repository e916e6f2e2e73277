use super::*;

fn sender(number: u32) -> IpAddr {
    number.to_be_bytes().into()
}

#[tokio::test]
async fn one_sender_uses_up_only_its_own_share() {
    let (mut budget, now) = (Budget::default(), Instant::now());
    let spent = (0..10_000).filter(|_| budget.spend(sender(1), now)).count();
    assert_eq!(spent, OF_SENDER as usize);
    assert!(budget.spend(sender(2), now));
    assert!(budget.spend(sender(1), now + Duration::from_secs(1)));
}

#[tokio::test]
async fn many_senders_are_bounded_too_and_so_is_what_is_kept_of_them() {
    let (mut budget, now) = (Budget::default(), Instant::now());
    let spent = (0..100_000).filter(|number| budget.spend(sender(*number), now)).count();
    assert_eq!(spent, OF_ALL as usize);
    assert!(budget.senders.len() <= OF_ALL as usize + 1);
}
