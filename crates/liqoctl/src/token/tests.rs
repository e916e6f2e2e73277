use super::*;

fn now() -> Timestamp {
    "2026-03-01T12:00:00Z".parse().unwrap()
}

fn token(id: &str) -> TokenView {
    TokenView {
        id: id.to_owned(),
        state: "Used".to_owned(),
        peer: None,
        used_by: vec!["5d0f".to_owned()],
        used_at: Some("2026-03-01T11:00:00Z".parse().unwrap()),
        created: Some("2026-02-28T12:00:00Z".parse().unwrap()),
        expires: Some("2026-03-02T12:00:00Z".parse().unwrap()),
        revoked: None,
        note: "Milan".to_owned(),
    }
}

#[test]
fn the_list_says_who_came_and_until_when() {
    let tokens = [own_token(vec!["a".to_owned(), "b".to_owned()]), token("0a1b2c3d")];
    let text = table(&tokens, false, now());
    let lines: Vec<Vec<&str>> = text
        .lines()
        .map(|line| line.split("  ").map(str::trim).filter(|c| !c.is_empty()).collect())
        .collect();
    assert_eq!(lines[0], ["ID", "STATE", "FOR", "USED BY", "EXPIRES", "NOTE"]);
    assert_eq!(lines[1][..5], ["own", "Used", "any", "a,b", "never"]);
    assert_eq!(lines[2], ["0a1b2c3d", "Used", "any", "5d0f", "in 24h", "Milan"]);
    assert!(table(&tokens, true, now()).contains("REVOKED"));
}

#[test]
fn what_is_over_is_told_as_over() {
    assert_eq!(expiry("2026-03-01T11:00:00Z".parse().unwrap(), now()), "60m ago");
}

#[test]
fn a_token_can_be_made_for_ever_but_only_if_somebody_says_so() {
    assert_eq!(parse_lifetime("never"), Ok(Lifetime(None)));
    assert_eq!(parse_lifetime("24h"), Ok(Lifetime(Some(Duration::from_secs(86_400)))));
    assert!(parse_lifetime("0s").is_err() && parse_lifetime("soon").is_err());
}
