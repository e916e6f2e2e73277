use super::{ClusterId, ContractId};

#[test]
fn dns_labels_are_names() {
    for text in ["a", "0", "9f3c2b1a-0000-4000-8000-000000000001", &"a".repeat(63)] {
        assert_eq!(text.parse::<ClusterId>().unwrap().as_str(), text);
    }
}

#[test]
fn anything_else_is_refused_in_a_message_of_bounded_length() {
    for text in
        ["", "-a", "a-", "A", "ä", "a b", "a.b", "a/b", "\u{1b}[2J", &"a".repeat(64), &"x".repeat(1_000_000)]
    {
        let message = text.parse::<ContractId>().unwrap_err().to_string();
        assert!(message.contains("is not a contract ID") && message.len() < 300, "{message}");
        assert!(!message.contains('\u{1b}'), "{message:?}");
    }
}

#[test]
fn json_goes_through_the_same_door() {
    let id: ClusterId = serde_json::from_str("\"north\"").unwrap();
    assert_eq!(serde_json::to_string(&id).unwrap(), "\"north\"");
    assert!(serde_json::from_str::<ClusterId>("\"No\"").unwrap_err().to_string().contains("cluster ID"));
}
