use super::*;

#[test]
fn colours_are_only_where_they_were_asked_for() {
    let always = Style { colours: true, terminal: false };
    assert_eq!(always.mark(Mark::Good), "\x1b[32m✓\x1b[0m");
    assert_eq!(always.bold("check"), "\x1b[1mcheck\x1b[0m");
    let marks = [Mark::Good, Mark::Warning, Mark::Bad, Mark::Busy].map(|mark| Style::plain().mark(mark));
    assert_eq!(marks, ["✓", "!", "✗", "…"]);
    assert_eq!(Style::plain().dim("text"), "text");
}

#[test]
fn a_file_is_no_terminal() {
    let file = std::fs::File::open("/dev/null").unwrap();
    assert!(!Style::of(&file, Colour::Auto).colours);
    assert!(Style::of(&file, Colour::Always).colours);
    assert!(!Style::of(&file, Colour::Always).is_terminal());
}
