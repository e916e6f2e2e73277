use k8s_openapi::api::core::v1::ConfigMap;
use liqo_kit::Key;

use super::*;

#[test]
fn what_is_counted_has_the_names_that_dashboards_ask_for() {
    let metrics = ReflectionMetrics::default();
    let mut registry = Registry::default();
    metrics.register(&mut registry);
    let labels = Labels { cluster_id: "away".to_owned(), reflector_resource: "configmaps" };
    metrics.items.get_or_create(&labels).0.inc_by(3);
    metrics.errors.get_or_create(&labels).0.inc();
    let mut text = String::new();
    prometheus_client::encoding::text::encode(&mut text, &registry).unwrap();
    let labels = "{cluster_id=\"away\",reflector_resource=\"configmaps\"}";
    for line in [
        format!("liqo_virtual_kubelet_reflection_item_counter{labels} 3"),
        format!("liqo_virtual_kubelet_reflection_error_counter{labels} 1"),
    ] {
        assert!(text.lines().any(|it| it == line), "{line}: {text}");
    }
    assert_eq!(kind_of(&Target::of::<ConfigMap>(Key::namespaced("shop", "a"))), "configmaps");
}
