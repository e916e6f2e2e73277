use super::*;

const SECOND: Duration = Duration::from_secs(1);

fn ip(last: u8) -> IpAddr {
    [192, 0, 2, last].into()
}

#[tokio::test(start_paused = true)]
async fn who_fails_too_often_waits_and_nobody_else_does() {
    let mut attempts = Attempts::new((3, SECOND), (100, SECOND), Instant::now());
    for _ in 0..3 {
        assert_eq!(attempts.wait(ip(1), Instant::now()), None);
        attempts.failed(ip(1), Instant::now());
    }
    assert!(attempts.wait(ip(1), Instant::now()).is_some());
    assert_eq!(attempts.wait(ip(2), Instant::now()), None);
    tokio::time::advance(SECOND).await;
    assert_eq!(attempts.wait(ip(1), Instant::now()), None);
    attempts.failed(ip(1), Instant::now());
    assert!(attempts.wait(ip(1), Instant::now()).is_some());
}

#[tokio::test(start_paused = true)]
async fn when_all_together_fail_too_often_those_wait_that_failed() {
    let mut attempts = Attempts::new((100, SECOND), (10, SECOND), Instant::now());
    for last in 0..10 {
        attempts.failed(ip(last), Instant::now());
    }
    assert!(attempts.wait(ip(1), Instant::now()).is_some());
    assert_eq!(attempts.wait(ip(200), Instant::now()), None);
}

#[tokio::test(start_paused = true)]
async fn the_memory_is_bounded() {
    let mut attempts = Attempts::new((3, SECOND), (1000, SECOND), Instant::now());
    for number in 0..20_000_u32 {
        attempts.failed(IpAddr::from(number.to_be_bytes()), Instant::now());
        tokio::time::advance(Duration::from_micros(10)).await;
    }
    assert!(attempts.sources.len() <= MAX_SOURCES, "{}", attempts.sources.len());
    // The last ones are remembered.
    assert!(attempts.sources.contains_key(&IpAddr::from(19_999_u32.to_be_bytes())));
}
