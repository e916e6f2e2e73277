//! Everything that a check and a status look at, read once.

use http::Request;
use jiff::Timestamp;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::authentication::v1::SelfSubjectReview;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{ConfigMap, Event, Namespace, Node, Pod, Secret, Service, ServiceAccount};
use k8s_openapi::api::flowcontrol::v1::FlowSchema;
use k8s_openapi::api::networking::v1::NetworkPolicy;
use k8s_openapi::api::rbac::v1::{ClusterRole, ClusterRoleBinding, Role, RoleBinding};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{ApiResource, DynamicObject, GroupVersionKind, ListParams, PostParams};
use kube::{Api, Client};
use liqo_api::cluster_config::{CLUSTER_CONFIG, CLUSTER_ID_CONFIG_MAP, IDENTITY_SECRET};
use liqo_api::credentials::AUTH_SERVICE;
use serde_json::Value;

use crate::installation::{self, DISCOVERY, Installation, MANAGER, NETWORK_CONFIG_MAP, OURS, Unread};
use crate::webhook::{self, Webhook};

/// What was read, or why not: each part on its own.
pub(crate) type Read<T> = Result<T, Unread>;

/// What was read of an installation.
pub(crate) struct Facts {
    pub(crate) namespace_name: String,
    pub(crate) server: Server,
    pub(crate) namespace: Read<Namespace>,
    pub(crate) definitions: Read<Vec<CustomResourceDefinition>>,
    pub(crate) manager: Read<Deployment>,
    /// Namespaces with a manager, looked for when there is none where it should be.
    pub(crate) elsewhere: Vec<String>,
    pub(crate) pods: Read<Vec<Pod>>,
    pub(crate) events: Read<Vec<Event>>,
    pub(crate) lease: Read<Lease>,
    pub(crate) account: Read<ServiceAccount>,
    pub(crate) cluster_role: Read<ClusterRole>,
    pub(crate) cluster_binding: Read<ClusterRoleBinding>,
    pub(crate) role: Read<Role>,
    pub(crate) binding: Read<RoleBinding>,
    pub(crate) identity: Read<ConfigMap>,
    pub(crate) key: Read<Secret>,
    pub(crate) network: Read<ConfigMap>,
    pub(crate) config: Read<Value>,
    pub(crate) policies: Read<Vec<NetworkPolicy>>,
    pub(crate) flow_schemas: Read<Vec<FlowSchema>>,
    pub(crate) webhooks: Read<Vec<Webhook>>,
    pub(crate) peers: Read<Vec<Value>>,
    pub(crate) auth_service: Read<Service>,
    /// Some of them.
    pub(crate) nodes: Read<Vec<Node>>,
    pub(crate) discovery: Read<Deployment>,
}

/// What answered.
#[derive(Debug, Clone)]
pub struct Server {
    /// The API server's URL and where it is from, for messages.
    pub address: String,
    /// Its version, such as `v1.34.1`.
    pub version: String,
}

/// What the API server says of now and of us.
#[derive(Debug, Clone)]
pub(crate) struct Hello {
    /// Its clock, as its leases are about its time and not about this machine's.
    pub(crate) now: Timestamp,
    /// How far this machine's clock is ahead, in seconds; none if the server does not say.
    pub(crate) ahead: Option<i64>,
    /// Who it takes us for.
    pub(crate) user: Option<String>,
}

impl Installation {
    pub(crate) async fn facts(&self, server: &Server) -> Facts {
        let (namespace, definitions, manager, pods, events, lease, account) = tokio::join!(
            self.get_global(&self.namespace),
            self.definitions(),
            self.get::<Deployment>(MANAGER),
            self.list(OURS),
            self.list(""),
            self.get(MANAGER),
            self.get(MANAGER),
        );
        let (cluster_role, cluster_binding, role, binding, identity, key, network, config) = tokio::join!(
            self.get_global(MANAGER),
            self.get_global(MANAGER),
            self.get(MANAGER),
            self.get(MANAGER),
            self.get(CLUSTER_ID_CONFIG_MAP),
            self.get(IDENTITY_SECRET),
            self.get(NETWORK_CONFIG_MAP),
            self.cluster_config(),
        );
        let (peers, policies, flow_schemas, webhooks, elsewhere) = tokio::join!(
            self.peers(),
            self.list(""),
            self.list_global(OURS),
            webhook::read(self),
            self.elsewhere(&manager),
        );
        let (auth_service, nodes, discovery) =
            tokio::join!(self.get(AUTH_SERVICE), self.some_nodes(), self.get(DISCOVERY));
        Facts {
            namespace_name: self.namespace.clone(),
            server: server.clone(),
            namespace,
            definitions,
            manager,
            elsewhere,
            pods,
            events,
            lease,
            account,
            cluster_role,
            cluster_binding,
            role,
            binding,
            identity,
            key,
            network,
            config,
            policies,
            flow_schemas,
            webhooks,
            peers,
            auth_service,
            nodes,
            discovery,
        }
    }

    /// The definitions of our kinds. Names come first: a cluster may have megabytes of definitions that are not ours.
    pub(crate) async fn definitions(&self) -> Read<Vec<CustomResourceDefinition>> {
        let api: Api<CustomResourceDefinition> = Api::all(self.client.clone());
        let unread = |error: &kube::Error| Unread::new("customresourcedefinitions", error);
        let all = api.list_metadata(&ListParams::default()).await.map_err(|error| unread(&error))?;
        let names = all.items.into_iter().filter_map(|definition| definition.metadata.name);
        let ours = names.filter(|name| name.split_once('.').is_some_and(|(_, group)| is_ours(group)));
        let found = futures::future::join_all(ours.map(|name| {
            let api = api.clone();
            async move { api.get_opt(&name).await }
        }));
        let found = found.await.into_iter().collect::<Result<Vec<_>, _>>().map_err(|error| unread(&error))?;
        Ok(found.into_iter().flatten().collect())
    }

    /// Read as it is: an installation of another version may have fields that this one does not know.
    pub(crate) async fn cluster_config(&self) -> Read<Value> {
        let api = self.kind("config.liqo.io", "ClusterConfig", "clusterconfigs");
        let what = format!("ClusterConfig {CLUSTER_CONFIG}");
        let object = api.get(CLUSTER_CONFIG).await.map_err(|error| Unread::new(what, &error))?;
        Ok(object.data)
    }

    async fn peers(&self) -> Read<Vec<Value>> {
        let api = self.kind("discovery.liqo.io", "ForeignCluster", "foreignclusters");
        let objects = installation::list(&api, &ListParams::default(), "foreignclusters").await?;
        Ok(objects.into_iter().filter_map(|object| serde_json::to_value(object).ok()).collect())
    }

    fn kind(&self, group: &str, kind: &str, plural: &str) -> Api<DynamicObject> {
        let kind = GroupVersionKind::gvk(group, "v1alpha1", kind);
        Api::all_with(self.client.clone(), &ApiResource::from_gvk_with_plural(&kind, plural))
    }

    async fn elsewhere(&self, manager: &Read<Deployment>) -> Vec<String> {
        if !manager.as_ref().is_err_and(Unread::is_absent) {
            return vec![];
        }
        let api: Api<Deployment> = Api::all(self.client.clone());
        let parameters = ListParams::default().fields(&format!("metadata.name={MANAGER}"));
        // Only a better hint hangs on it; who may not look gets the plain one.
        let found = installation::list(&api, &parameters, "deployments").await.unwrap_or_default();
        found.into_iter().filter_map(|deployment| deployment.metadata.namespace).collect()
    }

    /// Asks the API server for the time and for our name.
    pub(crate) async fn hello(&self) -> Hello {
        let (date, user) = tokio::join!(date(&self.client), self.user());
        let mine = Timestamp::now();
        let ahead = date.map(|theirs| mine.as_second() - theirs.as_second());
        Hello { now: date.unwrap_or(mine), ahead, user }
    }

    async fn user(&self) -> Option<String> {
        let api: Api<SelfSubjectReview> = Api::all(self.client.clone());
        let review = api.create(&PostParams::default(), &SelfSubjectReview::default()).await.ok()?;
        review.status?.user_info?.username
    }
}

/// The time of day as the API server's answer carries it.
async fn date(client: &Client) -> Option<Timestamp> {
    let request = Request::get("/version").body(kube::client::Body::empty()).ok()?;
    let response = client.send(request).await.ok()?;
    let date = response.headers().get(http::header::DATE)?.to_str().ok()?;
    jiff::fmt::rfc2822::parse(date).ok().map(|time| time.timestamp())
}

pub(crate) fn is_ours(group: &str) -> bool {
    group == "liqo.io" || group.ends_with(".liqo.io")
}
