//! Reads the facts from a cluster. A fact that cannot be read is named, and missing.

use k8s_openapi::api::core::v1::{ConfigMap, Node, Pod, Service};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use k8s_openapi::api::networking::v1::ServiceCIDR;
use kube::api::{ApiResource, DynamicObject, GroupVersionKind, ListParams, ObjectMeta, PostParams};
use kube::{Api, Client};
use liqo_api::labels;

use super::{Facts, NodeFacts, OpenShift, Unread};
use crate::target::Target;
use crate::trouble;

const KUBE_SYSTEM: &str = "kube-system";
/// The Service of the API server, and its endpoint slice.
const KUBERNETES: &str = "kubernetes";
/// Enough to recognise a cluster and its networks; a cluster of thousands needs no more than one page.
const ENOUGH: u32 = 500;
/// Addresses of pods that are looked at: enough to see whether the network that was found is the right one.
const SAMPLE: usize = 50;
/// An address that no cluster's Services have: it is reserved for documents.
const IMPOSSIBLE_ADDRESS: &str = "192.0.2.1";

struct Reading<'a> {
    client: &'a Client,
    unread: parking_lot::Mutex<Vec<Unread>>,
}

/// Reads everything at once.
pub(crate) async fn read(target: &Target) -> Facts {
    let reading = Reading { client: &target.client, unread: parking_lot::Mutex::default() };
    let groups = reading.groups().await;
    let has = |group: &str| groups.iter().any(|one| one == group);
    let (nodes, kubeadm_config, pods, service_cidrs, service, endpoints) = futures::join!(
        reading.nodes(),
        reading.config_map("kubeadm-config", "ClusterConfiguration"),
        reading.system_pods(),
        reading.service_cidrs(),
        reading.kubernetes_service(),
        reading.endpoints(),
    );
    let (openshift, calico_pools, cilium_pools) = futures::join!(
        reading.openshift(has("config.openshift.io")),
        reading.calico(has("crd.projectcalico.org")),
        reading.cilium(has("cilium.io")),
    );
    let service_refusal = if service_cidrs.is_empty() { reading.service_refusal().await } else { None };
    Facts {
        server: target.server.clone(),
        context: target.context.clone(),
        version: target.version.clone(),
        groups,
        nodes,
        kubeadm_config,
        control_plane_arguments: pods.iter().flat_map(control_plane_arguments).collect(),
        pod_addresses: pods.iter().filter_map(own_address).take(SAMPLE).collect(),
        service_cidrs,
        service_refusal,
        kubernetes_service: service,
        kubernetes_endpoints: endpoints,
        openshift,
        calico_pools,
        cilium_pools,
        sandbox: target.sandbox.clone(),
        unread: reading.unread.into_inner(),
    }
}

impl Reading<'_> {
    /// What came, or nothing with a note why.
    fn known<T: Default>(&self, what: &str, answer: Result<T, kube::Error>) -> T {
        answer.unwrap_or_else(|error| {
            self.unread.lock().push(Unread { what: what.to_owned(), why: trouble::text(&error) });
            T::default()
        })
    }

    async fn groups(&self) -> Vec<String> {
        let answer = self.client.list_api_groups().await;
        self.known("API groups", answer.map(|list| list.groups.into_iter().map(|group| group.name).collect()))
    }

    async fn nodes(&self) -> Vec<NodeFacts> {
        let real = format!("{}!={}", labels::NODE_TYPE, labels::NODE_TYPE_VIRTUAL);
        let params = ListParams::default().limit(ENOUGH).labels(&real);
        let nodes = Api::<Node>::all(self.client.clone()).list(&params).await;
        self.known("nodes", nodes.map(|list| list.items.iter().map(node).collect()))
    }

    async fn config_map(&self, name: &str, key: &str) -> Option<String> {
        let api = Api::<ConfigMap>::namespaced(self.client.clone(), KUBE_SYSTEM);
        let map = self.known(&format!("ConfigMap {KUBE_SYSTEM}/{name}"), api.get_opt(name).await);
        map?.data?.remove(key)
    }

    async fn system_pods(&self) -> Vec<Pod> {
        let api = Api::<Pod>::namespaced(self.client.clone(), KUBE_SYSTEM);
        let pods = api.list(&ListParams::default().limit(ENOUGH)).await;
        self.known(&format!("pods of {KUBE_SYSTEM}"), pods.map(|list| list.items))
    }

    async fn service_cidrs(&self) -> Vec<String> {
        let answer = Api::<ServiceCIDR>::all(self.client.clone()).list(&ListParams::default()).await;
        let ranges = |list: kube::core::ObjectList<ServiceCIDR>| {
            list.items.into_iter().filter_map(|one| one.spec?.cidrs).flatten().collect()
        };
        match answer {
            // Kubernetes before 1.33 does not serve them.
            Err(kube::Error::Api(status)) if status.code == 404 => vec![],
            answer => self.known("ServiceCIDRs", answer.map(ranges)),
        }
    }

    async fn kubernetes_service(&self) -> Option<String> {
        let answer = Api::<Service>::namespaced(self.client.clone(), "default").get_opt(KUBERNETES).await;
        self.known("Service default/kubernetes", answer)?.spec?.cluster_ip
    }

    async fn endpoints(&self) -> Vec<String> {
        let api = Api::<EndpointSlice>::namespaced(self.client.clone(), "default");
        let Some(slice) = self.known("EndpointSlice default/kubernetes", api.get_opt(KUBERNETES).await)
        else {
            return vec![];
        };
        let port = slice.ports.iter().flatten().find_map(|port| port.port).unwrap_or(443);
        let addresses = slice.endpoints.iter().flat_map(|endpoint| &endpoint.addresses);
        addresses.map(|address| format!("{}:{port}", in_url(address))).collect()
    }

    /// Asks for a Service that cannot be: before Kubernetes 1.33, the refusal names the network. Nothing is made.
    async fn service_refusal(&self) -> Option<String> {
        let service: Service = serde_json::from_value(serde_json::json!({
            "metadata": {"generateName": "liqo-asks-for-the-network-"},
            "spec": {"clusterIP": IMPOSSIBLE_ADDRESS, "ports": [{"port": 443}]},
        }))
        .ok()?;
        let params = PostParams { dry_run: true, field_manager: None };
        match Api::<Service>::namespaced(self.client.clone(), "default").create(&params, &service).await {
            Err(kube::Error::Api(status)) if status.code == 422 => Some(status.message.clone()),
            Ok(_) => None,
            Err(error) => self.known("the network of Services", Err(error)),
        }
    }

    async fn object(&self, group: &str, version: &str, kind: &str, name: &str) -> Option<DynamicObject> {
        let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind));
        let api = Api::<DynamicObject>::all_with(self.client.clone(), &resource);
        self.known(&format!("{kind} {name}"), api.get_opt(name).await)
    }

    async fn openshift(&self, is_there: bool) -> Option<OpenShift> {
        if !is_there {
            return None;
        }
        let (network, infrastructure) = futures::join!(
            self.object("config.openshift.io", "v1", "Network", "cluster"),
            self.object("config.openshift.io", "v1", "Infrastructure", "cluster"),
        );
        let network = network.map(|object| object.data).unwrap_or_default();
        let texts = |list: &serde_json::Value, key: Option<&str>| -> Vec<String> {
            let one = |item: &serde_json::Value| {
                key.map_or(item.as_str(), |key| item[key].as_str()).map(str::to_owned)
            };
            list.as_array().into_iter().flatten().filter_map(one).collect()
        };
        Some(OpenShift {
            cluster_networks: texts(&network["spec"]["clusterNetwork"], Some("cidr")),
            service_networks: texts(&network["spec"]["serviceNetwork"], None),
            api_server: infrastructure
                .and_then(|one| one.data["status"]["apiServerURL"].as_str().map(str::to_owned)),
        })
    }

    async fn calico(&self, is_there: bool) -> Vec<String> {
        if !is_there {
            return vec![];
        }
        let resource = ApiResource::from_gvk(&GroupVersionKind::gvk("crd.projectcalico.org", "v1", "IPPool"));
        let answer =
            Api::<DynamicObject>::all_with(self.client.clone(), &resource).list(&ListParams::default()).await;
        let pools = self.known("Calico's IPPools", answer.map(|list| list.items));
        let enabled = pools.iter().filter(|pool| pool.data["spec"]["disabled"].as_bool() != Some(true));
        enabled.filter_map(|pool| pool.data["spec"]["cidr"].as_str().map(str::to_owned)).collect()
    }

    async fn cilium(&self, is_there: bool) -> Vec<String> {
        if !is_there {
            return vec![];
        }
        let (mode, pool) = futures::join!(
            self.config_map("cilium-config", "ipam"),
            self.config_map("cilium-config", "cluster-pool-ipv4-cidr"),
        );
        // In its other modes the pool is a default that nobody uses.
        if mode.as_deref() != Some("cluster-pool") {
            return vec![];
        }
        pool.iter().flat_map(|text| text.split_whitespace()).map(str::to_owned).collect()
    }
}

/// An address as it stands in a URL.
pub(crate) fn in_url(address: &str) -> String {
    if address.contains(':') { format!("[{address}]") } else { address.to_owned() }
}

fn node(node: &Node) -> NodeFacts {
    let ObjectMeta { name, labels, .. } = node.metadata.clone();
    let spec = node.spec.clone().unwrap_or_default();
    let status = node.status.clone().unwrap_or_default();
    let conditions = status.conditions.unwrap_or_default();
    let is_true = |kind: &str| conditions.iter().any(|one| one.type_ == kind && one.status == "True");
    let address = |kind: &str| {
        let addresses = status.addresses.iter().flatten();
        addresses.filter(|one| one.type_ == kind).map(|one| one.address.clone()).next()
    };
    let tainted = spec.taints.iter().flatten().any(|taint| taint.effect != "PreferNoSchedule");
    NodeFacts {
        name: name.unwrap_or_default(),
        labels: labels.unwrap_or_default(),
        provider_id: spec.provider_id.unwrap_or_default(),
        kubelet_version: status.node_info.map(|info| info.kubelet_version).unwrap_or_default(),
        pod_cidrs: spec.pod_cidrs.or(spec.pod_cidr.map(|one| vec![one])).unwrap_or_default(),
        internal_address: address("InternalIP"),
        external_address: address("ExternalIP"),
        ready: is_true("Ready"),
        schedulable: spec.unschedulable != Some(true) && !tainted,
        pressures: ["DiskPressure", "MemoryPressure", "PIDPressure"]
            .into_iter()
            .filter(|kind| is_true(kind))
            .map(str::to_owned)
            .collect(),
    }
}

/// The command lines of the API server and the controller manager, where they run as pods.
fn control_plane_arguments(pod: &Pod) -> Vec<String> {
    let component = pod.metadata.labels.as_ref().and_then(|labels| labels.get("component"));
    if !component.is_some_and(|name| name == "kube-apiserver" || name == "kube-controller-manager") {
        return vec![];
    }
    let containers = pod.spec.iter().flat_map(|spec| &spec.containers);
    containers.flat_map(|one| one.command.iter().chain(&one.args).flatten()).cloned().collect()
}

fn own_address(pod: &Pod) -> Option<String> {
    if pod.spec.as_ref()?.host_network == Some(true) {
        return None;
    }
    pod.status.as_ref()?.pod_ip.clone().filter(|address| !address.is_empty())
}
