use super::*;
use crate::peering::testing::{cluster, of_spec};

#[test]
fn a_cluster_is_found_by_its_name_here_its_id_or_its_own_name() {
    let mut renamed = cluster("milan", "id-1");
    renamed.metadata.name = Some("office".to_owned());
    let all = [renamed, cluster("rome", "id-2")];
    for (wanted, found) in [("office", "office"), ("id-1", "office"), ("milan", "office"), ("rome", "rome")] {
        assert_eq!(find(&all, wanted).unwrap().name_any(), found, "{wanted}");
    }
}

#[test]
fn the_name_here_counts_before_the_name_of_another() {
    let mut other = cluster("milan", "id-1");
    other.metadata.name = Some("office".to_owned());
    let all = [other, cluster("milan", "id-2")];
    assert_eq!(id_of(find(&all, "milan").unwrap()), Some("id-2"));
}

#[test]
fn nobody_is_guessed() {
    let mut one = cluster("milan", "id-1");
    one.metadata.name = Some("one".to_owned());
    let mut two = cluster("milan", "id-2");
    two.metadata.name = Some("two".to_owned());
    let error = find(&[one, two], "milan").unwrap_err().to_string();
    assert!(error.contains("one (ID id-1), two (ID id-2)"), "{error}");
    let error = find(&[cluster("rome", "id-3")], "milan").unwrap_err().to_string();
    assert!(error.contains("Known are: rome"), "{error}");
    let error = find(&[], "milan").unwrap_err().to_string();
    assert!(error.contains("generate-add-command"), "{error}");
    let many: Vec<_> = (0..12).map(|n| of_spec(&format!("c{n}"), &serde_json::json!({}))).collect();
    assert!(find(&many, "x").unwrap_err().to_string().ends_with("c9 and 2 more"));
}
