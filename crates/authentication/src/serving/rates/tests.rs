use std::net::IpAddr;

use super::*;

const SECOND: Duration = Duration::from_secs(1);

fn ip(last: u8) -> IpAddr {
    [192, 0, 2, last].into()
}

#[tokio::test(start_paused = true)]
async fn who_does_it_too_often_waits_and_nobody_else_does() {
    let mut rates = Rates::new((3, SECOND), Some((100, SECOND)), Instant::now());
    for _ in 0..3 {
        assert_eq!(rates.take(&ip(1), Instant::now()), None);
    }
    assert!(rates.take(&ip(1), Instant::now()).is_some());
    assert_eq!(rates.wait(&ip(2), Instant::now()), None);
    tokio::time::advance(SECOND).await;
    assert_eq!(rates.take(&ip(1), Instant::now()), None);
    assert!(rates.wait(&ip(1), Instant::now()).is_some());
}

#[tokio::test(start_paused = true)]
async fn when_all_together_do_it_too_often_those_wait_that_did() {
    let mut rates = Rates::new((100, SECOND), Some((10, SECOND)), Instant::now());
    for last in 0..10 {
        rates.count(ip(last), Instant::now());
    }
    assert!(rates.wait(&ip(1), Instant::now()).is_some());
    assert_eq!(rates.wait(&ip(200), Instant::now()), None);
}

#[tokio::test(start_paused = true)]
async fn the_memory_is_bounded() {
    let mut rates = Rates::new((3, SECOND), Some((1000, SECOND)), Instant::now());
    for number in 0..20_000_u32 {
        rates.count(IpAddr::from(number.to_be_bytes()), Instant::now());
        tokio::time::advance(Duration::from_micros(10)).await;
    }
    assert!(rates.buckets.len() <= MAX_REMEMBERED, "{}", rates.buckets.len());
    // The last ones are remembered.
    assert!(rates.buckets.contains_key(&IpAddr::from(19_999_u32.to_be_bytes())));
}
