use super::*;

fn statement(uid: &str, message: &str) -> Statement {
    Statement {
        name: "edge-7".to_owned(),
        uid: uid.to_owned(),
        reason: "ClusterIDTaken",
        message: message.to_owned(),
        is_warning: true,
    }
}

#[tokio::test]
async fn the_same_is_told_once_and_again_after_a_while() {
    let now = Instant::now();
    let mut told = Told::new(now);
    assert_eq!(told.tell(&statement("1", "a"), now), Telling::Tell);
    assert_eq!(told.tell(&statement("1", "a"), now), Telling::Told);
    assert_eq!(told.tell(&statement("1", "b"), now), Telling::Tell);
    assert_eq!(told.tell(&statement("2", "a"), now), Telling::Tell, "another object has taken the name");
    assert_eq!(told.tell(&statement("1", "a"), now + TOLD), Telling::Tell);
}

#[tokio::test]
async fn a_flood_of_statements_is_withheld_and_told_when_it_is_over() {
    let mut now = Instant::now();
    let mut told = Told::new(now);
    let mut count = |now| {
        let tell = |number: usize| told.tell(&statement("1", &number.to_string()), now);
        (0..10_000).map(tell).filter(|telling| *telling == Telling::Tell).count()
    };
    assert_eq!(count(now), 30);
    now += Duration::from_secs(60);
    assert_eq!(count(now), 10);
    assert!(told.told.len() <= MAX_TOLD);
}

#[test]
fn names_are_legal_and_the_same_for_the_same() {
    assert_eq!(statement("1", "a").event_name(), statement("1", "a").event_name());
    assert_ne!(statement("1", "ab").event_name(), statement("1a", "b").event_name());
    let long = Statement { name: format!("{}.{}", "a".repeat(199), "b".repeat(50)), ..statement("1", "a") };
    assert_eq!(long.event_name().len(), 199 + 1 + 16);
}

#[test]
fn long_notes_are_cut_between_characters() {
    let text = "ä".repeat(1000);
    let note = cut(&text);
    assert!(note.len() <= MAX_NOTE && note.ends_with('…'));
    assert_eq!(cut("short"), "short");
}
