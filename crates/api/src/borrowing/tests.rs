use serde_json::json;

use super::*;

fn read(value: serde_json::Value) -> Borrowing {
    serde_json::from_value(value).unwrap()
}

#[test]
fn what_is_set_for_one_peer_takes_the_place_of_the_same_field_for_all() {
    let general = read(json!({
        "automatic": false,
        "wanted": { "cpu": "8", "memory": "16Gi" },
        "minimum": { "cpu": "1" },
        "currencies": ["EUR"],
        "maximumTotal": { "currency": "EUR", "period": "Monthly", "amount": "100" },
    }));
    let own = read(json!({ "automatic": true, "wanted": { "cpu": "2" } }));
    let expected = read(json!({
        "automatic": true,
        "wanted": { "cpu": "2" },
        "minimum": { "cpu": "1" },
        "currencies": ["EUR"],
        "maximumTotal": { "currency": "EUR", "period": "Monthly", "amount": "100" },
    }));
    assert_eq!(own.or(&general), expected);
    assert_eq!(Borrowing::default().or(&general), general);
}

#[test]
fn what_is_not_set_is_not_written() {
    assert_eq!(serde_json::to_value(Borrowing::default()).unwrap(), json!({}));
}
