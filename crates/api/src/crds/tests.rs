use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::*;

/// A schema's node with its path, for messages.
fn walk(path: &str, schema: &JSONSchemaProps, visit: &mut dyn FnMut(&str, &JSONSchemaProps)) {
    visit(path, schema);
    for (name, property) in schema.properties.iter().flatten() {
        walk(&format!("{path}.{name}"), property, visit);
    }
    if let Some(JSONSchemaPropsOrArray::Schema(items)) = &schema.items {
        walk(&format!("{path}[]"), items, visit);
    }
    if let Some(JSONSchemaPropsOrBool::Schema(values)) = &schema.additional_properties {
        walk(&format!("{path}{{}}"), values, visit);
    }
}

fn schema(crd: &CustomResourceDefinition) -> &JSONSchemaProps {
    crd.spec.versions[0].schema.as_ref().unwrap().open_api_v3_schema.as_ref().unwrap()
}

/// Everything in all schemas for which `complaint` has something to say.
fn complaints(complaint: impl Fn(&JSONSchemaProps) -> Option<String>) -> Vec<String> {
    let mut found = Vec::new();
    for crd in crds() {
        walk(&crd.spec.names.kind, schema(&crd), &mut |path, schema| {
            found.extend(complaint(schema).map(|complaint| format!("{path}: {complaint}")));
        });
    }
    found
}

fn assert_none(complaints: &[String]) {
    assert!(complaints.is_empty(), "{}", complaints.join("\n"));
}

/// The part of a kind's schema at a path such as `spec.ttl`.
fn at(kind: &str, path: &str) -> JSONSchemaProps {
    let crd = crds().into_iter().find(|crd| crd.spec.names.kind == kind).unwrap();
    path.split('.').fold(schema(&crd).clone(), |schema, name| {
        schema.properties.unwrap().remove(name).unwrap_or_else(|| panic!("{kind} has no {path}"))
    })
}

#[test]
fn every_kind_has_category_short_name_status_and_age_column() {
    for crd in crds() {
        let kind = &crd.spec.names.kind;
        assert_eq!(crd.spec.names.categories.as_deref(), Some(&["liqo".to_owned()][..]), "{kind}");
        assert_eq!(crd.spec.names.short_names.as_ref().map(Vec::len), Some(1), "{kind}");
        let version = &crd.spec.versions[0];
        assert!(
            version.subresources.as_ref().is_some_and(|sub| sub.status.is_some()),
            "{kind} has no status"
        );
        let columns = version.additional_printer_columns.as_ref().unwrap();
        assert!(columns.len() > 1, "{kind} has no column of its own");
        assert_eq!(columns.last().unwrap().name, "Age", "{kind}");
    }
}

#[test]
fn short_names_clash_neither_with_each_other_nor_with_kubernetes() {
    let kubernetes = [
        "cj", "cm", "crd", "crds", "cs", "csr", "deploy", "ds", "ep", "ev", "hpa", "ing", "limits", "netpol",
        "no", "ns", "pc", "pdb", "po", "psp", "pv", "pvc", "quota", "rc", "rs", "sa", "sc", "sts", "svc",
    ];
    let mut taken: BTreeSet<String> = kubernetes.map(str::to_owned).into();
    for crd in crds() {
        let names = crd.spec.names;
        for name in names.short_names.into_iter().flatten().chain([names.plural]).chain(names.singular) {
            assert!(taken.insert(name.clone()), "{name} of {} is taken", names.kind);
        }
    }
}

#[test]
fn the_schemas_are_structural() {
    assert_none(&complaints(|schema| {
        let typed = schema.type_.is_some() || schema.x_kubernetes_int_or_string == Some(true);
        (!typed).then(|| "has no type".to_owned())
    }));
    assert_none(&complaints(|schema| {
        let logic = schema.any_of.is_some() || schema.one_of.is_some() || schema.not.is_some();
        (schema.nullable.is_some() || schema.ref_path.is_some() || logic).then(|| "is not plain".to_owned())
    }));
}

#[test]
fn no_text_list_or_map_is_without_bound() {
    assert_none(&complaints(|schema| {
        let int_or_string = schema.x_kubernetes_int_or_string == Some(true);
        let (what, bounded) = match schema.type_.as_deref() {
            Some("string") => ("text", schema.max_length.is_some() || schema.enum_.is_some()),
            Some("array") => ("list", schema.max_items.is_some()),
            Some("object") if schema.additional_properties.is_some() => {
                ("map", schema.max_properties.is_some())
            }
            None if int_or_string => ("amount", schema.max_length.is_some()),
            _ => return None,
        };
        (!bounded).then(|| format!("{what} without bound"))
    }));
}

#[test]
fn only_the_pod_of_a_shadow_pod_keeps_fields_that_are_not_declared() {
    let open = complaints(|schema| schema.x_kubernetes_preserve_unknown_fields.map(|_| "open".to_owned()));
    assert_eq!(
        open,
        [
            "ShadowPod.spec.pod: open",
            "ShadowPod.spec.pod.containers[]: open",
            "ShadowPod.spec.pod.initContainers[]: open"
        ]
    );
}

#[test]
fn every_rule_tells_in_one_line_what_is_wrong() {
    assert_none(&complaints(|schema| {
        let rules = schema.x_kubernetes_validations.iter().flatten();
        let mute =
            rules.filter(|rule| rule.message.as_ref().is_none_or(|it| it.len() < 15 || it.contains('\n')));
        let mute: Vec<_> = mute.map(|rule| rule.rule.clone()).collect();
        (!mute.is_empty()).then(|| format!("no proper message for {mute:?}"))
    }));
}

#[test]
fn every_field_is_explained() {
    let mut unexplained = Vec::new();
    for crd in crds() {
        walk(&crd.spec.names.kind, schema(&crd), &mut |path, schema| {
            for (name, property) in schema.properties.iter().flatten() {
                if property.description.as_ref().is_none_or(|text| text.contains("Auto-generated")) {
                    unexplained.push(format!("{path}.{name}"));
                }
            }
        });
    }
    assert_none(&unexplained);
}

#[test]
fn every_status_has_conditions_that_say_which_generation_they_are_about() {
    for crd in crds() {
        let kind = &crd.spec.names.kind;
        let list = if kind == "ForeignCluster" { "peeringConditions" } else { "conditions" };
        let status = schema(&crd).properties.as_ref().unwrap()["status"].clone();
        let conditions =
            status.properties.unwrap().remove(list).unwrap_or_else(|| panic!("{kind} has no {list}"));
        let Some(JSONSchemaPropsOrArray::Schema(condition)) = conditions.items else { panic!("{kind}") };
        assert!(condition.properties.unwrap().contains_key("observedGeneration"), "{kind}");
        assert_eq!(conditions.x_kubernetes_list_map_keys, Some(vec!["type".to_owned()]), "{kind}");
    }
}

#[test]
fn defaults_are_liqos_except_that_tls_is_verified() {
    let default = |kind: &str, path: &str| at(kind, path).default.map_or(Value::Null, |json| json.0);
    let expected = [
        ("ForeignCluster", "spec.outgoingPeeringEnabled", json!("Auto")),
        ("ForeignCluster", "spec.incomingPeeringEnabled", json!("Auto")),
        ("ForeignCluster", "spec.networkingEnabled", json!("Yes")),
        ("ForeignCluster", "spec.insecureSkipTLSVerify", json!(false)),
        ("ForeignCluster", "spec.ttl", Value::Null),
        ("ResourceOffer", "status.phase", json!("Pending")),
        ("NamespaceOffloading", "spec.namespaceMappingStrategy", json!("DefaultName")),
        ("NamespaceOffloading", "spec.podOffloadingStrategy", json!("LocalAndRemote")),
        ("NetworkConfig", "status.processed", json!(false)),
        ("ClusterConfig", "spec.workingMode", json!("Autonomous")),
        ("TunnelEndpoint", "spec.localPodCIDR", Value::Null),
        ("TunnelEndpoint", "spec.localNATPodCIDR", json!("None")),
        ("TunnelEndpoint", "spec.localNATExternalCIDR", json!("None")),
        ("TunnelEndpoint", "spec.remoteNATPodCIDR", json!("None")),
        ("TunnelEndpoint", "spec.remoteNATExternalCIDR", json!("None")),
    ];
    for (kind, path, value) in expected {
        assert_eq!(default(kind, path), value, "{kind} {path}");
    }
}

#[test]
fn the_definitions_come_in_the_order_of_their_names() {
    let names: Vec<_> = crds().into_iter().filter_map(|crd| crd.metadata.name).collect();
    assert!(names.is_sorted() && names.len() == 12, "{names:?}");
}

#[test]
fn every_definition_is_marked_as_ours() {
    for crd in crds() {
        assert_eq!(crd.metadata.labels.unwrap()["app.kubernetes.io/part-of"], "liqo-rs");
    }
}
