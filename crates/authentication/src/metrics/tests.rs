use super::*;
use crate::testing::{later, now};

#[test]
fn the_numbers_have_the_names_that_dashboards_use() {
    let (shift, clock) = Clock::shifted();
    shift.send_replace(now().duration_since(Timestamp::now()));
    let metrics = AuthenticationMetrics::new(clock);
    metrics.answered(Ok(()), Duration::from_millis(50));
    metrics.answered(Err(Reason::Unauthorized), Duration::from_millis(1));
    metrics.called("PeerUnreachable", Duration::from_secs(5));
    metrics.claim_refused();
    metrics.show_expiries([("milan".to_owned(), later(3600)), ("rome".to_owned(), later(-60))].into());
    metrics.show_peers(&[("established", 2)].into());
    let mut registry = Registry::default();
    metrics.register(&mut registry);
    let mut text = String::new();
    prometheus_client::encoding::text::encode(&mut text, &registry).unwrap();
    for line in [
        "liqo_authentication_requests_total{outcome=\"granted\"} 1",
        "liqo_authentication_requests_total{outcome=\"unauthorized\"} 1",
        "liqo_authentication_requests_total{outcome=\"replayed\"} 0",
        "liqo_authentication_calls_total{outcome=\"PeerUnreachable\"} 1",
        "liqo_authentication_claims_refused_total 1",
        "liqo_authentication_peers{status=\"established\"} 2",
        "liqo_authentication_request_duration_seconds_count 2",
        "liqo_authentication_certificate_expiry_seconds{peer=\"milan\"} 3",
        "liqo_authentication_certificate_expiry_seconds{peer=\"rome\"} -",
    ] {
        assert!(text.contains(line), "{line} is not in:\n{text}");
    }
}
