use super::{Finding, Outcome, worst};

#[test]
fn a_line_says_what_why_and_what_to_do() {
    let finding = Finding::failed("Kubernetes is 1.32 or later", "this one is 1.29")
        .hint("upgrade the cluster\nor choose another")
        .docs("kubernetes-version");
    assert_eq!(
        finding.to_string(),
        "✗ Kubernetes is 1.32 or later: this one is 1.29\n    upgrade the cluster\n    or choose another\n    \
         see docs/troubleshooting.md#kubernetes-version"
    );
}

#[test]
fn what_is_well_needs_no_link() {
    assert_eq!(
        Finding::ok("the API server answers", "").docs("api-server").to_string(),
        "✓ the API server answers"
    );
}

#[test]
fn the_worst_of_all_decides() {
    let (fine, doubt, bad) = (Finding::ok("a", ""), Finding::warning("b", ""), Finding::failed("c", ""));
    assert_eq!(worst([]), Outcome::Ok);
    assert_eq!(worst([&fine, &doubt]), Outcome::Warning);
    assert_eq!(worst([&doubt, &bad, &fine]), Outcome::Failed);
}

#[test]
fn programs_read_it_as_camel_case() {
    let text = serde_json::to_string(&Finding::warning("a", "b").docs("c")).unwrap();
    assert_eq!(text, r#"{"name":"a","result":"warning","why":"b","hint":"","docsAnchor":"c"}"#);
}
