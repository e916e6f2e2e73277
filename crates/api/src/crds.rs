//! The CustomResourceDefinitions as they are installed.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceDefinition, JSONSchemaProps, JSONSchemaPropsOrArray, JSONSchemaPropsOrBool,
};
use kube::CustomResourceExt;

use crate::{
    ClusterConfig, Contract, ForeignCluster, NamespaceMap, NamespaceOffloading, NetworkConfig, ResourceOffer,
    ResourceRequest, SearchDomain, ShadowPod, SharingPolicy, TunnelEndpoint, labels,
};

/// The definitions of all kinds, ready to be applied; in the order of their names.
pub fn crds() -> Vec<CustomResourceDefinition> {
    let mut crds = vec![
        ClusterConfig::crd(),
        Contract::crd(),
        ForeignCluster::crd(),
        NamespaceMap::crd(),
        NamespaceOffloading::crd(),
        NetworkConfig::crd(),
        ResourceOffer::crd(),
        ResourceRequest::crd(),
        SearchDomain::crd(),
        ShadowPod::crd(),
        SharingPolicy::crd(),
        TunnelEndpoint::crd(),
    ];
    crds.sort_by(|a, b| a.metadata.name.cmp(&b.metadata.name));
    crds.iter_mut().for_each(finish);
    crds
}

fn finish(crd: &mut CustomResourceDefinition) {
    crd.metadata
        .labels
        .get_or_insert_default()
        .insert(labels::PART_OF.to_owned(), labels::PART_OF_LIQO.to_owned());
    for version in &mut crd.spec.versions {
        let schema = version.schema.as_mut().and_then(|validation| validation.open_api_v3_schema.as_mut());
        schema.into_iter().for_each(tidy);
    }
}

/// Takes out what the derive adds and the API server is better off without.
fn tidy(schema: &mut JSONSchemaProps) {
    // The server drops a null where null is not allowed, as if the field had been left out. Allowed nulls would be
    // stored, and every rule that asks has(self.field) would have to know about them.
    schema.nullable = None;
    schema.title = None;
    schema.description = schema.description.take().map(|text| unwrap_lines(&text));
    // Formats that Kubernetes does not know (uint32 and the like) only cause warnings.
    if schema.format.as_deref().is_some_and(|format| format.starts_with("uint")) {
        schema.format = None;
    }
    schema.properties.iter_mut().flat_map(|properties| properties.values_mut()).for_each(tidy);
    match &mut schema.items {
        Some(JSONSchemaPropsOrArray::Schema(items)) => tidy(items),
        Some(JSONSchemaPropsOrArray::Schemas(items)) => items.iter_mut().for_each(tidy),
        None => {}
    }
    if let Some(JSONSchemaPropsOrBool::Schema(values)) = &mut schema.additional_properties {
        tidy(values);
    }
}

/// Joins the lines of a paragraph: where they broke depends on the source's width.
fn unwrap_lines(text: &str) -> String {
    text.split("\n\n").map(|paragraph| paragraph.replace('\n', " ")).collect::<Vec<_>>().join("\n\n")
}

#[cfg(test)]
mod tests;
