//! The rooms of the manager, and what they tell each other.

use std::convert::Infallible;
use std::sync::Arc;

use liqo_api::names;
use liqo_core::policy::Percent;
use liqo_discovery::Wan;
use liqo_identity::Wanted;
use liqo_kit::clusters::{ClientConfig, Clusters};
use liqo_kit::health::Checks;
use liqo_kit::lease::Leadership;
use liqo_kit::watch::WatchMetrics;
use liqo_kit::write::WriteMetrics;
use liqo_kit::{Queue, Supervisor};
use prometheus_client::registry::Registry;
use tokio::sync::watch;

use super::Arguments;
use crate::identify::Asking;
use crate::limits::{REQUESTS_AT_PEER, WATCHES_AT_PEER};
use crate::{DISCOVERY, VERSION, process};

/// What this version can do, as other clusters are told.
const CAPABILITIES: [&str; 5] = ["identity", "authentication", "discovery", "peering", "offloading"];

/// The rooms. Clones share them.
#[derive(Clone)]
pub(super) struct Rooms {
    identity: liqo_identity::Room,
    pub(super) authentication: liqo_authentication::Room,
    discovery: liqo_discovery::Room,
    peering: liqo_peering::Room,
    providers: liqo_providers::Providers,
    pub(super) offloading: liqo_offloading::Room,
    hosting: liqo_hosting::Room,
    pub(super) virtual_node: liqo_virtual_node::Room,
    reflection: liqo_reflection::Room,
    /// Who we are, for those who need no key.
    own: watch::Sender<Option<names::Identity>>,
}

impl Rooms {
    pub(super) fn new(client: &kube::Client, arguments: &Arguments, pod: &str) -> Self {
        let identity = liqo_identity::Room::new(client.clone(), identity_settings(arguments, pod));
        let authentication = liqo_authentication::Room::new(
            client.clone(),
            authentication_settings(arguments, pod),
            identity.identity(),
        );
        let own = watch::Sender::new(None);
        let settings = discovery_settings(arguments, pod);
        let discovery =
            liqo_discovery::Room::new(client.clone(), settings, own.subscribe(), Arc::new(Asking));
        let settings = peering_settings(arguments, pod);
        // One client for each peer, whichever room talks to it.
        let clusters = Arc::new(Clusters::new(ClientConfig {
            max_watches: WATCHES_AT_PEER,
            max_requests: REQUESTS_AT_PEER,
            ..liqo_peering::Room::clients_at_peers()
        }));
        let shared = Arc::clone(&clusters);
        let peering =
            liqo_peering::Room::with_clusters(client.clone(), settings, identity.identity(), shared);
        let providers = liqo_providers::Providers::new(
            client.clone(),
            clusters,
            liqo_providers::Settings::default(),
            own.subscribe(),
        );
        let settings = liqo_offloading::Settings::new(arguments.identity.liqo_namespace.clone(), pod);
        let offloading =
            liqo_offloading::Room::new(client.clone(), settings, own.subscribe(), providers.subscribe());
        let settings = liqo_hosting::Settings::new(arguments.identity.liqo_namespace.clone(), pod);
        let hosting = liqo_hosting::Room::new(client.clone(), settings, own.subscribe());
        // What the one finds out of the providers' nodes, the other shows.
        let survey = watch::Sender::default();
        let settings =
            liqo_virtual_node::Settings { survey: survey.clone(), ..virtual_node_settings(arguments, pod) };
        let virtual_node =
            liqo_virtual_node::Room::new(client.clone(), settings, providers.clone(), own.subscribe());
        let settings = liqo_reflection::Settings { survey, ..reflection_settings(arguments, pod) };
        let reflection =
            liqo_reflection::Room::new(client.clone(), settings, own.subscribe(), providers.subscribe());
        Self {
            identity,
            authentication,
            discovery,
            peering,
            providers,
            offloading,
            hosting,
            virtual_node,
            reflection,
            own,
        }
    }

    pub(super) fn register(&self, registry: &mut Registry) {
        self.identity.metrics().register(registry);
        self.authentication.metrics().register(registry);
        self.discovery.metrics().register(registry);
        self.peering.metrics().register(registry);
        self.offloading.metrics().register(registry);
        self.hosting.metrics().register(registry);
        self.virtual_node.metrics().register(registry);
        self.reflection.metrics().register(registry);
    }

    /// Starts to watch, in every process.
    pub(super) fn start(&self, supervisor: &Supervisor, watches: &WatchMetrics) {
        self.identity.start(supervisor, watches);
        self.authentication.start(supervisor, watches);
        self.discovery.start(supervisor, watches);
        self.peering.start(supervisor, watches);
        self.providers.start(supervisor, watches);
        self.offloading.start(supervisor, watches);
        self.hosting.start(supervisor, watches);
        self.virtual_node.start(supervisor, watches);
        self.reflection.start(supervisor, watches);
        let (mut identity, own) = (self.identity.identity(), self.own.clone());
        supervisor.critical("own identity", |stop| async move {
            loop {
                let now = identity
                    .borrow_and_update()
                    .as_deref()
                    .map(|identity| names::Identity { id: identity.id.clone(), name: identity.name.clone() });
                own.send_if_modified(|known| std::mem::replace(known, now.clone()) != now);
                // The room lives as long as the process, and with it who tells of changes.
                if stop.run_until_cancelled(identity.changed()).await.is_none_or(|told| told.is_err()) {
                    stop.cancelled().await;
                    return Ok::<_, Infallible>(());
                }
            }
        });
    }

    /// Adds what each room has to say about being ready; call it after [`Rooms::start`].
    pub(super) fn add_checks(&self, checks: &Checks) {
        self.identity.add_checks(checks);
        self.authentication.add_checks(checks);
        self.discovery.add_checks(checks);
        self.peering.add_checks(checks);
        self.virtual_node.add_checks(checks);
        self.providers.add_checks(checks);
        self.offloading.add_checks(checks);
        self.hosting.add_checks(checks);
        self.reflection.add_checks(checks);
    }

    /// Leads in the room of namespaces, once it is known who lends.
    async fn offload(&self, queue: &Queue, leadership: Leadership) {
        if leadership.ended().run_until_cancelled(self.providers.complete()).await.is_some() {
            self.offloading.lead(queue, leadership).await;
        }
    }

    /// Leads in the room of reflection, once it is known who lends: until then, all of them would seem to be gone.
    async fn reflect(&self, queue: &Queue, leadership: Leadership) {
        if leadership.ended().run_until_cancelled(self.providers.complete()).await.is_some() {
            self.reflection.lead(queue, leadership).await;
        }
    }

    /// Whether the rooms lead.
    pub(super) fn are_leading(&self) -> bool {
        self.identity.is_leading()
    }

    /// Makes the rooms' queues and starts what drains them.
    pub(super) fn leaders(self, supervisor: &Supervisor, writes: &WriteMetrics) -> Leaders {
        let [identity, authentication, discovery, peering, offloading, hosting, virtual_node, reflection] = [
            ("identity", self.identity.queue(writes)),
            ("authentication", self.authentication.queue(writes)),
            ("discovery", self.discovery.queue(writes)),
            ("peering", self.peering.queue(writes)),
            ("offloading", self.offloading.queue(writes)),
            ("hosting", self.hosting.queue(writes)),
            ("virtual-node", self.virtual_node.queue(writes)),
            ("reflection", self.reflection.queue(writes)),
        ]
        .map(|(name, (queue, worker))| {
            process::drain(supervisor, name, worker);
            queue
        });
        let queues = Queues {
            identity,
            authentication,
            discovery,
            peering,
            offloading,
            hosting,
            virtual_node,
            reflection,
        };
        Leaders { rooms: self, queues }
    }
}

struct Queues {
    identity: Queue,
    authentication: Queue,
    discovery: Queue,
    peering: Queue,
    offloading: Queue,
    hosting: Queue,
    virtual_node: Queue,
    reflection: Queue,
}

/// The rooms as they lead.
pub(super) struct Leaders {
    rooms: Rooms,
    queues: Queues,
}

impl Leaders {
    /// Leads in all rooms until the leadership ends.
    pub(super) async fn lead(&self, leadership: Leadership) {
        let (rooms, queues) = (&self.rooms, &self.queues);
        let gate = {
            let leadership = leadership.clone();
            Arc::new(move || leadership.is_valid())
        };
        let writing = async {
            tokio::join!(
                rooms.identity.lead(&queues.identity, leadership.clone()),
                rooms.authentication.lead(&queues.authentication, leadership.clone()),
                rooms.peering.lead(&queues.peering, leadership.clone()),
                rooms.providers.measure(leadership.ended()),
                Box::pin(rooms.virtual_node.lead(&queues.virtual_node, leadership.clone())),
                rooms.offload(&queues.offloading, leadership.clone()),
                Box::pin(rooms.hosting.lead(&queues.hosting, leadership.clone())),
                Box::pin(rooms.reflect(&queues.reflection, leadership.clone())),
            );
        };
        let finding = rooms.discovery.run(&queues.discovery, gate, leadership.ended().clone());
        let (mut writing, mut finding) = (std::pin::pin!(writing), std::pin::pin!(finding));
        tokio::select! {
            () = &mut writing => finding.await,
            // Half of the rooms are worse than none: whoever leads next begins anew with all of them.
            () = &mut finding => if leadership.ended().is_cancelled() {
                writing.await;
            },
        }
    }
}

fn identity_settings(arguments: &Arguments, pod: &str) -> liqo_identity::Settings {
    let identity = &arguments.identity;
    liqo_identity::Settings {
        namespace: identity.liqo_namespace.clone(),
        wanted: Wanted { id: identity.cluster_id.0.clone(), name: identity.cluster_name.0.clone() },
        version: VERSION.to_owned(),
        capabilities: CAPABILITIES.map(str::to_owned).to_vec(),
        pod: pod.to_owned(),
    }
}

fn authentication_settings(arguments: &Arguments, pod: &str) -> liqo_authentication::Settings {
    liqo_authentication::Settings {
        public_api_server: arguments.peering.api_server_trusted_ca,
        tokens_required: arguments.peering.enable_authentication,
        autojoin: arguments.peering.auto_join_discovered_clusters,
        ..liqo_authentication::Settings::new(arguments.identity.liqo_namespace.clone(), pod)
    }
}

fn discovery_settings(arguments: &Arguments, pod: &str) -> liqo_discovery::Settings {
    liqo_discovery::Settings {
        // The local network is for `liqo discovery`, which has the network of a node.
        lan: None,
        wan: Some(Wan { name_servers: arguments.peering.name_servers.clone() }),
        controller: DISCOVERY.to_owned(),
        pod: pod.to_owned(),
    }
}

fn peering_settings(arguments: &Arguments, pod: &str) -> liqo_peering::Settings {
    let (sharing, peering) = (&arguments.sharing, &arguments.peering);
    let usual = liqo_peering::Settings::new(arguments.identity.liqo_namespace.clone(), pod);
    let labels = sharing.cluster_labels.iter().flat_map(|labels| labels.0.clone());
    liqo_peering::Settings {
        autojoin: peering.auto_join_discovered_clusters,
        incoming: sharing.enable_incoming_peering,
        automatic: !sharing.offer_disable_auto_accept,
        percentage: percent(sharing.resource_sharing_percentage, usual.percentage),
        threshold: percent(sharing.offer_update_threshold_percentage, usual.threshold),
        labels: labels.collect(),
        ..usual
    }
}

fn virtual_node_settings(arguments: &Arguments, pod: &str) -> liqo_virtual_node::Settings {
    let nodes = &arguments.virtual_nodes;
    liqo_virtual_node::Settings {
        address: nodes.pod_ip.0,
        port: nodes.kubelet_address.port,
        labels: nodes.node_extra_labels.iter().flat_map(|labels| labels.0.clone()).collect(),
        annotations: nodes.node_extra_annotations.iter().flat_map(|it| it.0.clone()).collect(),
        lease: nodes.node_lease_duration.0,
        ..liqo_virtual_node::Settings::new(pod, VERSION)
    }
}

/// The flag was checked where it was read; the other value is never taken.
fn percent(flag: crate::values::Percent, otherwise: Percent) -> Percent {
    Percent::new(flag.0.into()).unwrap_or(otherwise)
}

fn reflection_settings(arguments: &Arguments, pod: &str) -> liqo_reflection::Settings {
    let flags = &arguments.storage;
    let storage = flags.enable_storage.then(|| liqo_reflection::Storage {
        class: flags.virtual_storage_class_name.0.clone(),
        real_class: flags.real_storage_class_name.0.as_ref().map(|class| class.0.clone()),
        namespace: flags.storage_namespace.to_string(),
    });
    let mut policies = liqo_reflection::Policies::default();
    policies.extend(arguments.offloading.reflection.iter().cloned());
    let namespace = Some(arguments.identity.liqo_namespace.to_string().into());
    liqo_reflection::Settings { namespace, storage, policies, ..liqo_reflection::Settings::new(pod) }
}
