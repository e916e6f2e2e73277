use serde_json::json;

use super::*;

#[test]
fn amounts_written_as_numbers_and_as_texts_read_alike() {
    let quota: OfferedQuota =
        serde_json::from_value(json!({ "hard": { "cpu": 4, "memory": "6Gi" } })).unwrap();
    assert_eq!(quota.hard["cpu"], Quantity("4".to_owned()));
    assert_eq!(quota.hard["memory"], Quantity("6Gi".to_owned()));
}

#[test]
fn an_offer_of_nothing_is_written_without_empty_fields() {
    let spec = ResourceOfferSpec { cluster_id: "provider".to_owned(), ..Default::default() };
    assert_eq!(serde_json::to_value(spec).unwrap(), json!({ "clusterId": "provider" }));
}
