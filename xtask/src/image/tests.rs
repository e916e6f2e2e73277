use super::*;

#[test]
fn the_image_is_what_a_pod_calls_by_name_and_version() {
    for (name, full) in [
        ("liqo", "docker.io/library/liqo:0.1.0"),
        ("registry.example.com/team/liqo", "registry.example.com/team/liqo:0.1.0"),
        ("localhost:5000/liqo", "localhost:5000/liqo:0.1.0"),
    ] {
        assert_eq!(full_name(name, "0.1.0").unwrap().to_string(), full);
    }
}

#[test]
fn a_name_with_a_tag_or_a_digest_is_refused() {
    for name in ["liqo:1", "registry.example.com/liqo:1", "liqo@sha256:00", "", "Liqo"] {
        assert!(full_name(name, "0.1.0").is_err(), "{name:?}");
    }
}

#[test]
fn sizes_are_told_in_megabytes() {
    assert_eq!(megabytes(LARGEST), "40.0 MB");
    assert_eq!(megabytes(7_654_321), "7.6 MB");
    assert_eq!(megabytes(99_999), "0.0 MB");
}
