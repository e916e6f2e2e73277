use super::*;

const POLITO: &str = "32f0b45b-5c06-4cc4-84b6-03a323ffc93d";

fn identity(id: &str, name: &str) -> Identity {
    Identity { id: id.parse().unwrap(), name: name.parse().unwrap() }
}

fn namespace(name: &str) -> NamespaceName {
    name.parse().unwrap()
}

#[test]
fn the_unique_name_is_the_one_documented_for_this_cluster_id() {
    assert_eq!(identity(POLITO, "polito-labs").unique_name(), "polito-labs-79eba8");
}

#[test]
fn clusters_of_equal_name_have_different_tenant_namespaces_and_distinct_nodes() {
    let (one, other) = (identity("a", "edge"), identity("b", "edge"));
    assert_eq!(one.tenant_namespace().as_str(), format!("liqo-tenant-{}", one.unique_name()));
    assert_ne!(one.tenant_namespace(), other.tenant_namespace());
    assert_eq!(one.virtual_node(), "liqo-edge");
    assert_eq!(one.virtual_node(), other.virtual_node());
    assert_ne!(one.distinct_virtual_node(), other.distinct_virtual_node());
}

#[test]
fn the_default_remote_namespace_carries_namespace_and_home_cluster() {
    let home = identity(POLITO, "broker");
    assert_eq!(home.default_remote_namespace(&namespace("liqo")).as_str(), "liqo-broker-79eba8");
}

#[test]
fn names_formed_from_the_longest_parts_are_still_legal_labels() {
    // The '-' sits where some of the cuts fall, so a dangling one would show.
    let long = format!("{}{}", "a-".repeat(31), "z");
    let home = identity(&long, &long);
    let names = [
        home.tenant_namespace().to_string(),
        home.virtual_node(),
        home.distinct_virtual_node(),
        home.default_remote_namespace(&namespace(&long)).to_string(),
    ];
    for name in names {
        assert!(is_dns_label(&name), "{name} ({} characters)", name.len());
    }
    assert!(home.tenant_namespace().as_str().ends_with(&home.id.short_hash()));
}

#[test]
fn long_namespaces_that_differ_only_at_the_end_stay_apart_when_shortened() {
    let home = identity(POLITO, "a-cluster-with-a-rather-long-name");
    let (one, other) =
        (namespace(&format!("{}1", "n".repeat(60))), namespace(&format!("{}2", "n".repeat(60))));
    assert_ne!(home.default_remote_namespace(&one), home.default_remote_namespace(&other));
}

#[test]
fn texts_that_are_no_dns_label_are_refused_with_the_rule() {
    for text in ["", "-a", "a-", "A", "a_b", "a.b", "ä", "a b", &"a".repeat(64)] {
        let error = text.parse::<ClusterName>().unwrap_err().to_string();
        assert!(error.contains("is not a cluster name: expected 1 to 63"), "{error}");
    }
    for text in ["a", "0", "a-b", POLITO, &"a".repeat(63)] {
        assert_eq!(text.parse::<ClusterId>().unwrap().as_str(), text);
    }
}

#[test]
fn the_error_about_a_huge_name_is_short_and_escapes_control_characters() {
    let error = format!("\u{1b}[2J{}", "x".repeat(1_000_000)).parse::<ClusterId>().unwrap_err().to_string();
    assert!(error.len() < 300 && !error.contains('\u{1b}'), "{error}");
}
