use super::Patterns;
use crate::field::Problems;

fn read(patterns: &[&str]) -> (Patterns, Vec<String>) {
    let patterns: Vec<String> = patterns.iter().map(ToString::to_string).collect();
    let mut problems = Problems::default();
    let read = Patterns::read(&patterns, "spec.resources", &mut problems);
    (read, problems.into_vec().iter().map(ToString::to_string).collect())
}

#[test]
fn a_star_stands_for_any_characters() {
    for (pattern, name, expected) in [
        ("cpu", "cpu", true),
        ("cpu", "cpus", false),
        ("cpu", "cp", false),
        ("*", "anything/at-all", true),
        ("*", "", true),
        ("nvidia.com/*", "nvidia.com/gpu", true),
        ("nvidia.com/*", "nvidia.com/", true),
        ("nvidia.com/*", "amd.com/gpu", false),
        ("*/gpu", "amd.com/gpu", true),
        ("*/gpu", "amd.com/gpu2", false),
        ("n*a*m/*g*", "nvidia.com/mig-1g.5gb", true),
        ("a*b*c", "a-b-b-c", true),
        ("a*b*c", "a-b-b-", false),
        ("**", "x", true),
    ] {
        assert_eq!(read(&[pattern]).0.matches(name), expected, "{pattern} on {name}");
    }
}

#[test]
fn a_hostile_pattern_costs_little() {
    let pattern = format!("{}b", "*a".repeat(200));
    assert!(!read(&[&pattern]).0.matches(&"a".repeat(20_000)));
}

#[test]
fn what_is_no_pattern_is_refused_at_its_place() {
    let (patterns, problems) = read(&["cpu", "", "a b", "ä", &"x".repeat(513)]);
    assert!(patterns.matches("cpu") && !patterns.matches("a b"));
    assert_eq!(problems.len(), 4, "{problems:?}");
    assert!(problems[0].starts_with("spec.resources[1]: \"\" is not a name or a pattern"), "{problems:?}");
    assert_eq!(read(&["x"; 65]).1, ["spec.resources: has 65 entries, at most 64 are allowed"]);
    assert!(!Patterns::nothing().matches("cpu") && Patterns::nothing().is_empty());
}
