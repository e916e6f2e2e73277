use super::*;

#[test]
fn short_names_are_completed_as_the_kubelet_does() {
    for (short, full) in [
        ("liqo:0.1.0", "docker.io/library/liqo:0.1.0"),
        ("liqo", "docker.io/library/liqo:latest"),
        ("team/liqo:1", "docker.io/team/liqo:1"),
        ("localhost/liqo:1", "localhost/liqo:1"),
        ("localhost:5000/liqo", "localhost:5000/liqo:latest"),
        ("registry.example.com/team/liqo:1", "registry.example.com/team/liqo:1"),
    ] {
        assert_eq!(ImageName::complete(short).unwrap().to_string(), full);
    }
}

#[test]
fn what_no_pod_could_ask_for_is_not_completed() {
    for name in ["", "Liqo:1", "liqo:", "liqo@sha256:00", "-/liqo:1"] {
        assert!(ImageName::complete(name).is_err(), "{name:?}");
    }
}
