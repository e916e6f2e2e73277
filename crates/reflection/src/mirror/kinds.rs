//! The kinds that are copied, and what is translated of each.

use k8s_openapi::api::core::v1::{
    ConfigMap, PersistentVolumeClaim, PersistentVolumeClaimSpec, Secret, Service, ServiceSpec,
};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use k8s_openapi::api::networking::v1::{Ingress, IngressSpec};
use kube::ResourceExt;
use liqo_api::annotations;
use liqo_kit::Key;
use liqo_kit::write::Target;
use serde_json::{Value, json};

use super::{Around, Here, Mirrored, forge};
use crate::custom::{self, CustomKind};
use crate::route::{Route, config_map_name};

#[cfg(test)]
mod tests;

/// Secrets that are about this cluster alone: accounts' tokens, nodes that join it, what is installed in it.
const HOME_ONLY: [&str; 3] =
    ["kubernetes.io/service-account-token", "bootstrap.kubernetes.io/token", "helm.sh/release.v1"];
/// Annotations of Kubernetes' own controllers about volumes of this cluster.
const VOLUME_NOTES: [&str; 3] = ["pv.kubernetes.io/", "volume.kubernetes.io/", "volume.beta.kubernetes.io/"];
/// The Service of the API server itself.
const API_SERVER: (&str, &str) = ("default", "kubernetes");

/// Which kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Kind {
    ConfigMap,
    Secret,
    Service,
    EndpointSlice,
    Ingress,
    Claim,
    /// Custom resources that the owner of a namespace chose.
    Custom(CustomKind),
}

impl Kind {
    /// Those that everybody needs.
    pub(crate) const ALL: [Self; 6] =
        [Self::ConfigMap, Self::Secret, Self::Service, Self::EndpointSlice, Self::Ingress, Self::Claim];

    /// The object of this kind and name.
    pub(crate) fn target(self, key: Key) -> Target {
        match self {
            Self::ConfigMap => Target::of::<ConfigMap>(key),
            Self::Secret => Target::of::<Secret>(key),
            Self::Service => Target::of::<Service>(key),
            Self::EndpointSlice => Target::of::<EndpointSlice>(key),
            Self::Ingress => Target::of::<Ingress>(key),
            Self::Claim => Target::of::<PersistentVolumeClaim>(key),
            Self::Custom(kind) => Target::dynamic(kind.resource(), key),
        }
    }

    /// The copy of an original; `None` if it does not go there.
    pub(crate) fn forge(self, here: &Here, route: &Route<'_>, around: &Around<'_>) -> Option<Value> {
        match self {
            Self::ConfigMap => forge::<ConfigMap>(here, route, around),
            Self::Secret => forge::<Secret>(here, route, around),
            Self::Service => forge::<Service>(here, route, around),
            Self::EndpointSlice => forge::<EndpointSlice>(here, route, around),
            Self::Ingress => forge::<Ingress>(here, route, around),
            Self::Claim => forge::<PersistentVolumeClaim>(here, route, around),
            Self::Custom(kind) => custom::forge(kind, here, route),
        }
    }

    /// API version and kind, as events refer to it.
    pub(crate) fn names(self) -> (&'static str, &'static str) {
        match self {
            Self::ConfigMap => ("v1", "ConfigMap"),
            Self::Secret => ("v1", "Secret"),
            Self::Service => ("v1", "Service"),
            Self::EndpointSlice => ("discovery.k8s.io/v1", "EndpointSlice"),
            Self::Ingress => ("networking.k8s.io/v1", "Ingress"),
            Self::Claim => ("v1", "PersistentVolumeClaim"),
            Self::Custom(kind) => (&kind.resource().api_version, &kind.resource().kind),
        }
    }
}

impl Mirrored for ConfigMap {
    fn strip(self) -> Option<Self> {
        Some(self)
    }

    fn adapt(self, _: &Route<'_>, _: &Around<'_>) -> Option<Self> {
        Some(self)
    }

    fn remote_name(name: &str, home: &str) -> String {
        config_map_name(name, home)
    }

    fn looked_into(&self) -> Option<Value> {
        Some(json!([self.data, self.binary_data, self.immutable]))
    }

    fn is_immutable(&self) -> bool {
        self.immutable == Some(true)
    }
}

impl Mirrored for Secret {
    fn strip(self) -> Option<Self> {
        let is_ours = self.type_.as_deref().is_some_and(|type_| HOME_ONLY.contains(&type_));
        (!is_ours).then_some(self)
    }

    fn adapt(self, _: &Route<'_>, _: &Around<'_>) -> Option<Self> {
        Some(self)
    }

    fn looked_into(&self) -> Option<Value> {
        Some(json!([self.data, self.type_, self.immutable]))
    }

    fn is_immutable(&self) -> bool {
        self.immutable == Some(true)
    }
}

impl Mirrored for Service {
    fn strip(mut self) -> Option<Self> {
        if (self.namespace().as_deref(), self.name_any().as_str()) == (Some(API_SERVER.0), API_SERVER.1) {
            return None;
        }
        self.status = None;
        let keeps_ports = self.annotations().get(annotations::FORCE_REMOTE_NODE_PORT);
        let keeps_ports = keeps_ports.is_some_and(|it| it == liqo_api::labels::TRUE);
        let spec = self.spec.as_mut()?;
        let headless = spec.cluster_ip.as_deref() == Some("None");
        // What was allocated here, and addresses of this network.
        let kept = std::mem::take(spec);
        *spec = ServiceSpec {
            cluster_ip: headless.then(|| "None".to_owned()),
            cluster_ips: None,
            external_ips: None,
            health_check_node_port: None,
            ip_families: None,
            ip_family_policy: None,
            load_balancer_class: None,
            load_balancer_ip: None,
            load_balancer_source_ranges: None,
            ..kept
        };
        if !keeps_ports {
            spec.ports.iter_mut().flatten().for_each(|port| port.node_port = None);
        }
        Some(self)
    }

    fn adapt(self, _: &Route<'_>, _: &Around<'_>) -> Option<Self> {
        Some(self)
    }
}

impl Mirrored for EndpointSlice {
    fn strip(mut self) -> Option<Self> {
        if let Some(notes) = self.metadata.annotations.as_mut() {
            notes.remove(super::slices::TRIGGER);
        }
        Some(self)
    }

    fn adapt(self, route: &Route<'_>, around: &Around<'_>) -> Option<Self> {
        super::slices::adapt(self, route, around)
    }

    fn around(&self) -> Option<Value> {
        // On which nodes stand for the provider, and how addresses are seen from there.
        serde_json::to_value(&self.endpoints).ok()
    }
}

impl Mirrored for Ingress {
    fn strip(mut self) -> Option<Self> {
        self.status = None;
        let spec = self.spec.take()?;
        // Classes are named differently everywhere; the provider's default serves.
        self.spec = Some(IngressSpec { ingress_class_name: None, ..spec });
        if let Some(notes) = self.metadata.annotations.as_mut() {
            notes.remove("kubernetes.io/ingress.class");
        }
        Some(self)
    }

    fn adapt(self, _: &Route<'_>, _: &Around<'_>) -> Option<Self> {
        Some(self)
    }
}

impl Mirrored for PersistentVolumeClaim {
    fn strip(mut self) -> Option<Self> {
        self.status = None;
        let spec = self.spec.take()?;
        // The volume here only stands for the one there.
        self.spec = Some(PersistentVolumeClaimSpec {
            access_modes: spec.access_modes,
            resources: spec.resources,
            volume_mode: spec.volume_mode,
            ..PersistentVolumeClaimSpec::default()
        });
        let uid = self.metadata.uid.clone().unwrap_or_default();
        let notes = self.metadata.annotations.get_or_insert_default();
        notes.retain(|key, _| !VOLUME_NOTES.iter().any(|ours| key.starts_with(ours)));
        // Another claim of the same name must not find what was in this one.
        notes.insert(annotations::VIRTUAL_CLAIM_UID.to_owned(), uid);
        Some(self)
    }

    fn adapt(mut self, route: &Route<'_>, _: &Around<'_>) -> Option<Self> {
        if let Some(spec) = self.spec.as_mut() {
            spec.storage_class_name = route.storage_class.map(str::to_owned);
        }
        Some(self)
    }
}
