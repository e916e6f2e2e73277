use super::*;

fn line(pod: &str, container: &str, text: &str) -> Told {
    let source = Source { pod: pod.into(), uid: pod.into(), container: container.into() };
    Told::Line(Line { source, time: "2026-01-01T00:00:00Z".into(), text: text.into() })
}

fn printed(lines: &[Told], timestamps: bool) -> String {
    let mut printer = Printer { out: Vec::new(), seen: BTreeSet::new(), timestamps };
    lines.iter().for_each(|line| printer.print(line).unwrap());
    String::from_utf8(printer.out).unwrap()
}

#[test]
fn the_pod_is_named_as_soon_as_there_are_several() {
    assert_eq!(printed(&[line("a", "c", "one"), line("a", "c", "two")], false), "one\ntwo\n");
    assert_eq!(printed(&[line("a", "c", "one"), line("b", "c", "two")], false), "one\n[b] two\n");
    assert_eq!(printed(&[line("a", "c", "one"), line("a", "d", "two")], false), "one\n[a/d] two\n");
}

#[test]
fn times_are_shown_on_request() {
    assert_eq!(printed(&[line("a", "c", "one")], true), "2026-01-01T00:00:00Z one\n");
}
