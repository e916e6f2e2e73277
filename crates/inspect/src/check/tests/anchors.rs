//! Findings and the document that explains them.

/// The names by which headings are linked to: lower case, without punctuation, spaces as hyphens.
fn anchor(heading: &str) -> String {
    let text = heading.trim_start_matches('#').trim().to_lowercase();
    let kept = text.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
    kept.map(|c| if c == ' ' { '-' } else { c }).collect()
}

/// The values of constants like `const NAME: &str = "an-anchor";`.
fn constants(source: &str) -> Vec<String> {
    let lines = source.lines().filter(|line| line.contains("const ") && line.contains(": &str = \""));
    lines.filter_map(|line| line.split('"').nth(1)).map(str::to_owned).collect()
}

#[test]
fn every_heading_that_a_finding_points_to_is_in_the_document() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let read = |path: &str| {
        std::fs::read_to_string(root.join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
    };
    let document = read("docs/troubleshooting.md");
    let known: Vec<String> = document.lines().filter(|line| line.starts_with('#')).map(anchor).collect();
    let ours = constants(&read("crates/inspect/src/check/docs.rs"));
    let preflight = read("crates/install/src/preflight.rs");
    let (_, after) = preflight.split_once("mod anchor {").unwrap();
    let theirs = constants(after.split_once("\n}").unwrap().0);
    assert!(ours.len() > 20 && theirs.len() > 5, "{ours:?} {theirs:?}");
    let missing: Vec<&String> = ours.iter().chain(&theirs).filter(|wanted| !known.contains(wanted)).collect();
    assert!(missing.is_empty(), "docs/troubleshooting.md has no heading for {missing:?}");
}
