//! Reads what is in the cluster already.

use k8s_openapi::api::admissionregistration::v1::{
    MutatingWebhookConfiguration, ValidatingWebhookConfiguration, WebhookClientConfig,
};
use k8s_openapi::api::apps::v1::{DaemonSet, Deployment};
use k8s_openapi::api::core::v1::{ConfigMap, Namespace as KubeNamespace, Secret, Service};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{ListParams, ObjectMeta};
use kube::{Api, Client};
use liqo_api::cluster_config::{CLUSTER_ID_CONFIG_MAP, CLUSTER_ID_KEY, CLUSTER_NAME_KEY, IDENTITY_SECRET};
use parking_lot::Mutex;

use super::{Definition, Existing, Identity, Manager, Namespace, Port, Release, Webhook};
use crate::facts::Unread;
use crate::names::{GROUP_SUFFIX, INSTALLATION, MANAGER};
use crate::notes::Notes;
use crate::objects::{Owner, owner};
use crate::trouble;

/// A cluster with more Services or DaemonSets than this has its ports checked by the pages that were read.
const PAGE: u32 = 500;
/// Label of the Secrets in which Helm keeps its releases, with the release's name.
const HELM_OWNER: &str = "owner=helm";

/// The webhooks of a configuration: whom they call, and what happens when nobody answers.
type Hooks = Vec<(WebhookClientConfig, Option<String>)>;

struct Reading<'a> {
    client: &'a Client,
    namespace: &'a str,
    unread: Mutex<Vec<Unread>>,
}

/// Reads everything at once.
pub(crate) async fn read(client: &Client, namespace: &str) -> Existing {
    let reading = Reading { client, namespace, unread: Mutex::default() };
    let (namespace, notes, identity, definitions, managers, releases, webhooks, ports) = futures::join!(
        reading.namespace(),
        reading.notes(),
        reading.identity(),
        reading.definitions(),
        reading.managers(),
        reading.releases(),
        reading.webhooks(),
        reading.ports(),
    );
    let unread = reading.unread.into_inner();
    Existing { namespace, notes, identity, definitions, managers, releases, webhooks, ports, unread }
}

impl Reading<'_> {
    fn known<T: Default>(&self, what: &str, answer: Result<T, kube::Error>) -> T {
        answer.unwrap_or_else(|error| {
            self.unread.lock().push(Unread { what: what.to_owned(), why: trouble::text(&error) });
            T::default()
        })
    }

    async fn namespace(&self) -> Option<Namespace> {
        let answer = Api::<KubeNamespace>::all(self.client.clone()).get_opt(self.namespace).await;
        let found = self.known(&format!("namespace {}", self.namespace), answer)?;
        Some(Namespace {
            owner: owner(found.metadata.labels.as_ref()),
            terminating: found.metadata.deletion_timestamp.is_some(),
        })
    }

    async fn notes(&self) -> Option<Notes> {
        let answer =
            Api::<Secret>::namespaced(self.client.clone(), self.namespace).get_opt(INSTALLATION).await;
        let secret = self.known(&format!("Secret {}/{INSTALLATION}", self.namespace), answer)?;
        Some(Notes::of(&secret))
    }

    async fn identity(&self) -> Option<Identity> {
        let map = Api::<ConfigMap>::namespaced(self.client.clone(), self.namespace)
            .get_opt(CLUSTER_ID_CONFIG_MAP)
            .await;
        if let Some(map) = self.known(&format!("ConfigMap {}/{CLUSTER_ID_CONFIG_MAP}", self.namespace), map) {
            let data = map.data.unwrap_or_default();
            return Some(Identity {
                id: data.get(CLUSTER_ID_KEY).cloned(),
                name: data.get(CLUSTER_NAME_KEY).cloned(),
                source: format!("ConfigMap {}/{CLUSTER_ID_CONFIG_MAP}", self.namespace),
            });
        }
        let secret =
            Api::<Secret>::namespaced(self.client.clone(), self.namespace).get_opt(IDENTITY_SECRET).await;
        let secret = self.known(&format!("Secret {}/{IDENTITY_SECRET}", self.namespace), secret)?;
        let data = secret.data.unwrap_or_default();
        let text = |key: &str| data.get(key).and_then(|bytes| String::from_utf8(bytes.0.clone()).ok());
        Some(Identity {
            id: text("cluster-id"),
            name: text("cluster-name"),
            source: format!("Secret {}/{IDENTITY_SECRET}", self.namespace),
        })
    }

    async fn definitions(&self) -> Vec<Definition> {
        let api = Api::<CustomResourceDefinition>::all(self.client.clone());
        let list = self.known(
            "definitions of kinds",
            api.list_metadata(&ListParams::default()).await.map(|list| list.items),
        );
        let of_liqo = |name: &str| name.ends_with(&format!(".{GROUP_SUFFIX}"));
        list.into_iter()
            .filter(|one| one.metadata.name.as_deref().is_some_and(of_liqo))
            .map(|one| Definition {
                owner: owner(one.metadata.labels.as_ref()),
                terminating: one.metadata.deletion_timestamp.is_some(),
                name: one.metadata.name.unwrap_or_default(),
            })
            .collect()
    }

    async fn managers(&self) -> Vec<Manager> {
        let params = ListParams::default().fields(&format!("metadata.name={MANAGER}"));
        let everywhere = Api::<Deployment>::all(self.client.clone()).list_metadata(&params).await;
        let list = match everywhere {
            Err(error) if trouble::is_forbidden(&error) => {
                let api = Api::<Deployment>::namespaced(self.client.clone(), self.namespace);
                api.list_metadata(&params).await
            }
            answer => answer,
        };
        let manager = |metadata: ObjectMeta| Manager {
            owner: owner(metadata.labels.as_ref()),
            namespace: metadata.namespace.unwrap_or_default(),
        };
        let list = self.known("Deployments", list.map(|list| list.items));
        list.into_iter().map(|one| manager(one.metadata)).collect()
    }

    async fn releases(&self) -> Vec<Release> {
        let params = ListParams::default().labels(HELM_OWNER);
        let everywhere = Api::<Secret>::all(self.client.clone()).list_metadata(&params).await;
        let list = match everywhere {
            Err(error) if trouble::is_forbidden(&error) => {
                Api::<Secret>::namespaced(self.client.clone(), self.namespace).list_metadata(&params).await
            }
            answer => answer,
        };
        let release = |metadata: ObjectMeta| {
            let name = metadata.labels?.remove("name")?;
            let may_be_liqo = name == "liqo" || name.starts_with("liqo-");
            may_be_liqo.then(|| Release { namespace: metadata.namespace.unwrap_or_default(), name })
        };
        let list = self.known("Helm's releases", list.map(|list| list.items));
        let mut releases: Vec<Release> = list.into_iter().filter_map(|one| release(one.metadata)).collect();
        // Each revision of a release has a Secret.
        releases.dedup();
        releases
    }

    async fn webhooks(&self) -> Vec<Webhook> {
        let params = ListParams::default();
        let (mutating, validating) = futures::join!(
            async { Api::<MutatingWebhookConfiguration>::all(self.client.clone()).list(&params).await },
            async { Api::<ValidatingWebhookConfiguration>::all(self.client.clone()).list(&params).await },
        );
        let mutating = self.known("mutating webhooks", mutating.map(|list| list.items));
        let validating = self.known("validating webhooks", validating.map(|list| list.items));
        let mutating = mutating.into_iter().map(|one| {
            let hooks = one.webhooks.unwrap_or_default();
            let hooks =
                hooks.into_iter().map(|hook| (hook.client_config, hook.failure_policy)).collect::<Hooks>();
            ("MutatingWebhookConfiguration", one.metadata, hooks)
        });
        let validating = validating.into_iter().map(|one| {
            let hooks = one.webhooks.unwrap_or_default();
            let hooks =
                hooks.into_iter().map(|hook| (hook.client_config, hook.failure_policy)).collect::<Hooks>();
            ("ValidatingWebhookConfiguration", one.metadata, hooks)
        });
        let mut found = Vec::new();
        for (kind, metadata, hooks) in mutating.chain(validating) {
            if self.may_be_liqos(&metadata, &hooks) {
                found.push(self.webhook(kind, metadata, &hooks).await);
            }
        }
        found
    }

    fn may_be_liqos(&self, metadata: &ObjectMeta, hooks: &[(WebhookClientConfig, Option<String>)]) -> bool {
        let name = metadata.name.as_deref().unwrap_or_default();
        let here = |config: &WebhookClientConfig| {
            config.service.as_ref().is_some_and(|one| one.namespace == self.namespace)
        };
        owner(metadata.labels.as_ref()) != Owner::Foreign
            || name.split(['.', '-']).any(|part| part == "liqo")
            || hooks.iter().any(|(config, _)| here(config))
    }

    async fn webhook(
        &self,
        kind: &'static str,
        metadata: ObjectMeta,
        hooks: &[(WebhookClientConfig, Option<String>)],
    ) -> Webhook {
        let mut dead = Vec::new();
        for (config, _) in hooks {
            let Some(service) = &config.service else { continue };
            let name = format!("{}/{}", service.namespace, service.name);
            if !dead.contains(&name) && !self.answers(&service.namespace, &service.name).await {
                dead.push(name);
            }
        }
        Webhook {
            kind,
            owner: owner(metadata.labels.as_ref()),
            name: metadata.name.unwrap_or_default(),
            dead,
            closed: hooks.iter().any(|(_, policy)| policy.as_deref() != Some("Ignore")),
        }
    }

    /// Whether a Service has anybody behind it; yes, if that cannot be read.
    async fn answers(&self, namespace: &str, service: &str) -> bool {
        let params = ListParams::default().labels(&format!("kubernetes.io/service-name={service}"));
        let Ok(slices) = Api::<EndpointSlice>::namespaced(self.client.clone(), namespace).list(&params).await
        else {
            return true;
        };
        let mut endpoints = slices.items.iter().flat_map(|slice| &slice.endpoints);
        endpoints.any(|one| one.conditions.as_ref().and_then(|conditions| conditions.ready) != Some(false))
    }

    async fn ports(&self) -> Vec<Port> {
        let params = ListParams::default().limit(PAGE);
        let (services, daemons) =
            futures::join!(async { Api::<Service>::all(self.client.clone()).list(&params).await }, async {
                Api::<DaemonSet>::all(self.client.clone()).list(&params).await
            },);
        let services = self.known("ports of Services", services.map(|list| list.items));
        let daemons = self.known("ports of DaemonSets", daemons.map(|list| list.items));
        let mut ports: Vec<_> = services.iter().flat_map(service_ports).collect();
        ports.extend(daemons.iter().flat_map(daemon_ports));
        ports
    }
}

fn place(metadata: &ObjectMeta) -> String {
    let text = |text: &Option<String>| text.clone().unwrap_or_default();
    format!("{}/{}", text(&metadata.namespace), text(&metadata.name))
}

fn service_ports(service: &Service) -> Vec<Port> {
    if owner(service.metadata.labels.as_ref()) != Owner::Foreign {
        return vec![];
    }
    let by = format!("Service {}", place(&service.metadata));
    let ports = service.spec.iter().flat_map(|spec| spec.ports.iter().flatten());
    ports.filter_map(|port| Port::of(port.node_port?, port.protocol.as_deref(), &by)).collect()
}

fn daemon_ports(daemon: &DaemonSet) -> Vec<Port> {
    if owner(daemon.metadata.labels.as_ref()) != Owner::Foreign {
        return vec![];
    }
    let Some(pod) = daemon.spec.as_ref().and_then(|spec| spec.template.spec.as_ref()) else { return vec![] };
    let on_host = pod.host_network == Some(true);
    let by = format!("DaemonSet {}", place(&daemon.metadata));
    let ports = pod.containers.iter().flat_map(|container| container.ports.iter().flatten());
    ports
        .filter_map(|port| {
            let number = if on_host { Some(port.container_port) } else { port.host_port };
            Port::of(number?, port.protocol.as_deref(), &by)
        })
        .collect()
}
