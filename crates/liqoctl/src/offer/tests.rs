use super::*;
use crate::peering::testing::{cluster, offer, telling};

fn now() -> Timestamp {
    "2026-03-01T12:00:00Z".parse().unwrap()
}

fn some() -> Vec<OfferView> {
    let clusters = [telling(cluster("milan", "north"), &[])];
    let ours = offer("south", "Pending", "");
    let mut theirs = offer("north", "ManualActionRequired", "automatic acceptance is off");
    theirs.spec.prices = [("cpu".to_owned(), serde_json::from_value(json!("20m")).unwrap())].into();
    theirs.spec.currency = Some("EUR".to_owned());
    theirs.spec.price_period = Some("Hourly".to_owned());
    theirs.spec.valid_until = Some(serde_json::from_value(json!("2026-03-01T12:30:00Z")).unwrap());
    views(&clusters, &[ours, theirs], "south")
}

#[test]
fn what_may_need_a_decision_comes_first() {
    let views = some();
    let shown: Vec<_> =
        views.iter().map(|view| (view.direction, view.peer.as_str(), view.phase.as_str())).collect();
    assert_eq!(shown, [("borrow", "milan", "ManualActionRequired"), ("lend", "milan", "Pending")]);
}

#[test]
fn the_table_tells_amounts_prices_and_time() {
    let text = table(&some(), false, now());
    for part in ["PEER", "3500m", "6Gi", "EUR Hourly: cpu 20m", "30m", "free"] {
        assert!(text.contains(part), "{part:?} is missing in:\n{text}");
    }
    assert!(table(&some(), true, now()).contains("automatic acceptance is off"));
}

#[test]
fn pools_are_listed_by_name_and_shown_with_what_fits_into_them() {
    let mut theirs = offer("north", "Accepted", "");
    theirs.spec.pools = serde_json::from_value(json!([
        {"name": "gpu", "resources": {"cpu": "2"}, "labels": {"tier": "fast"}, "largestPod": {"onOneNode": {"cpu": "1"}}},
        {"name": "plain", "resources": {"cpu": "1500m"}},
    ]))
    .unwrap();
    let views = views(&[telling(cluster("milan", "north"), &[])], &[theirs], "south");
    assert!(table(&views, false, now()).contains("gpu,plain"));
    let shown = text(&views[0], now());
    for line in
        ["Offered by:    milan", "gpu: cpu 2; labels tier=fast; largest pod cpu 1", "plain: cpu 1500m\n"]
    {
        assert!(shown.contains(line), "{line:?} is missing in:\n{shown}");
    }
}

#[test]
fn an_offer_of_nobody_known_is_listed_by_its_namespace() {
    assert_eq!(views(&[], &[offer("north", "Pending", "")], "south")[0].peer, "liqo-tenant-x");
}

#[test]
fn what_is_over_is_told_as_over() {
    assert_eq!(left(now(), now()), "over");
    assert_eq!(left("2026-03-02T12:00:00Z".parse().unwrap(), now()), "24h");
}
