use super::*;

fn line(pod: &str, container: &str, text: &str) -> Told {
    let source = Source { pod: pod.into(), uid: pod.into(), container: container.into() };
    Told::Line(Line { source, time: "2026-01-01T00:00:00Z".into(), text: text.into() })
}

fn printed(lines: &[Told], timestamps: bool) -> String {
    formatted(lines, timestamps, None)
}

fn formatted(lines: &[Told], timestamps: bool, format: Option<DataFormat>) -> String {
    let mut printer = Printer { out: Vec::new(), seen: BTreeSet::new(), timestamps, format };
    lines.iter().for_each(|line| printer.print(line).unwrap());
    String::from_utf8(printer.out).unwrap()
}

#[test]
fn the_pod_is_named_if_there_are_several_and_the_container_if_it_has_several() {
    let source =
        |pod: &str, container: &str| Source { pod: pod.into(), uid: pod.into(), container: container.into() };
    let one = Told::Sources(vec![source("a", "c")]);
    assert_eq!(printed(&[one, line("a", "c", "one")], false), "one\n");
    let pods = || Told::Sources(vec![source("a", "c"), source("b", "c")]);
    assert_eq!(printed(&[pods(), line("a", "c", "one"), line("b", "c", "two")], false), "[a] one\n[b] two\n");
    let containers = Told::Sources(vec![source("a", "c"), source("a", "d")]);
    assert_eq!(printed(&[containers, line("a", "d", "two")], false), "[a/d] two\n");
    let later = [Told::Sources(vec![source("a", "c")]), line("a", "c", "one"), pods(), line("b", "c", "two")];
    assert_eq!(printed(&later, false), "one\n[b] two\n");
}

#[test]
fn times_are_shown_on_request() {
    assert_eq!(printed(&[line("a", "c", "one")], true), "2026-01-01T00:00:00Z one\n");
}

#[test]
fn for_programs_each_line_is_an_object() {
    let line = [line("a", "c", "one")];
    let json = formatted(&line, false, Some(DataFormat::Json));
    assert_eq!(
        json,
        "{\"pod\":\"a\",\"container\":\"c\",\"time\":\"2026-01-01T00:00:00Z\",\"text\":\"one\"}\n"
    );
    let yaml = formatted(&line, false, Some(DataFormat::Yaml));
    assert!(yaml.starts_with("---\npod: a\ncontainer: c\n"), "{yaml}");
}
