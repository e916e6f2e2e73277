//! The flags. Names and defaults are those of Liqo's controller manager, so that manifests carry over.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use clap::{ArgAction, Args};
use liqo_api::names::{ClusterId, ClusterName, NamespaceName};

use crate::process::Process;
use crate::values::{
    Amount, Annotations, Endpoint, Host, Labels, Listen, Maybe, ObjectName, Percent, Port, Span, Workers,
    parse_bool,
};

/// A lease is renewed four times while it lasts, and holds whole seconds.
const SHORTEST_NODE_LEASE: Duration = Duration::from_secs(4);

/// Arguments of `liqo manager`.
///
/// A flag that is given twice counts as given last, unless it is a list.
#[derive(Debug, Args)]
#[command(args_override_self = true)]
pub struct Arguments {
    #[command(flatten)]
    pub(super) identity: Identity,
    #[command(flatten)]
    pub(super) process: Process,
    #[command(flatten)]
    pub(super) leading: Leading,
    #[command(flatten)]
    pub(super) sharing: Sharing,
    #[command(flatten)]
    pub(super) peering: Peering,
    #[command(flatten)]
    pub(super) offloading: Offloading,
    #[command(flatten)]
    pub(super) virtual_nodes: VirtualNodes,
    #[command(flatten)]
    pub(super) storage: Storage,
}

/// Who the cluster is.
#[derive(Debug, Args)]
#[command(next_help_heading = "Identity")]
pub(super) struct Identity {
    /// What identifies the cluster for good. Without it, the first start chooses a random UUID; an identity that exists is never changed
    #[arg(long, env = "LIQO_CLUSTER_ID", default_value = "", hide_default_value = true, value_name = "ID")]
    pub(super) cluster_id: Maybe<ClusterId>,

    /// What people call the cluster. Without it, the first start makes one from the ID
    #[arg(
        long,
        env = "LIQO_CLUSTER_NAME",
        default_value = "",
        hide_default_value = true,
        value_name = "NAME"
    )]
    pub(super) cluster_name: Maybe<ClusterName>,

    /// The namespace that Liqo is installed in
    #[arg(long, env = "POD_NAMESPACE", default_value = "liqo", value_name = "NAMESPACE")]
    pub(super) liqo_namespace: NamespaceName,
}

/// How one of several managers comes to lead.
#[derive(Debug, Args)]
#[command(next_help_heading = "Process")]
pub(super) struct Leading {
    /// How long others wait for a leader that is silent before one of them leads
    #[arg(long, env = "LIQO_LEASE_DURATION", default_value = "15s", value_name = "DURATION")]
    pub(super) lease_duration: Span,

    /// How long the leader leads without having renewed its lease
    #[arg(long, env = "LIQO_LEASE_RENEW_DEADLINE", default_value = "10s", value_name = "DURATION")]
    pub(super) lease_renew_deadline: Span,

    /// How often the leader renews its lease, and the others look at it
    #[arg(long, env = "LIQO_LEASE_RETRY_PERIOD", default_value = "2s", value_name = "DURATION")]
    pub(super) lease_retry_period: Span,

    /// How often everything would be looked at again
    #[arg(long, env = "LIQO_RESYNC_PERIOD", default_value = "10h", value_name = "DURATION")]
    pub(super) resync_period: Span,
}

/// What other clusters are offered.
#[derive(Debug, Args)]
#[command(next_help_heading = "Sharing")]
pub(super) struct Sharing {
    /// Labels of the cluster, as key=value,key=value; peers see them on its virtual node
    #[arg(long, env = "LIQO_CLUSTER_LABELS", action = ArgAction::Append, value_name = "LABELS")]
    pub(super) cluster_labels: Vec<Labels>,

    /// How much of what is free is offered to each peer
    #[arg(long, env = "LIQO_RESOURCE_SHARING_PERCENTAGE", default_value = "50", value_name = "PERCENT")]
    pub(super) resource_sharing_percentage: Percent,

    /// Who says what is offered, instead of this cluster's own nodes
    #[arg(
        long,
        env = "LIQO_EXTERNAL_MONITOR",
        default_value = "",
        hide_default_value = true,
        value_name = "HOST:PORT"
    )]
    pub(super) external_monitor: Maybe<Endpoint>,

    /// Offer what other clusters offer to this one
    #[arg(long, env = "LIQO_BROKER_MODE", default_value = "false", default_missing_value = "true", num_args = 0..=1, require_equals = true, value_parser = parse_bool, action = ArgAction::Set, value_name = "BOOL")]
    pub(super) broker_mode: bool,

    /// Offer resources to clusters that ask for them
    #[arg(long, env = "LIQO_ENABLE_INCOMING_PEERING", default_value = "true", default_missing_value = "true", num_args = 0..=1, require_equals = true, value_parser = parse_bool, action = ArgAction::Set, value_name = "BOOL")]
    pub(super) enable_incoming_peering: bool,

    /// Leave it to a person to accept what other clusters offer
    #[arg(long, env = "LIQO_OFFER_DISABLE_AUTO_ACCEPT", default_value = "false", default_missing_value = "true", num_args = 0..=1, require_equals = true, value_parser = parse_bool, action = ArgAction::Set, value_name = "BOOL")]
    pub(super) offer_disable_auto_accept: bool,

    /// By how much a resource must change for an offer to be changed
    #[arg(long, env = "LIQO_OFFER_UPDATE_THRESHOLD_PERCENTAGE", default_value = "5", value_name = "PERCENT")]
    pub(super) offer_update_threshold_percentage: Percent,
}

/// How other clusters are found and met.
#[derive(Debug, Args)]
#[command(next_help_heading = "Peering")]
pub(super) struct Peering {
    /// Peer with clusters that are found in the local network
    #[arg(long, env = "LIQO_AUTO_JOIN_DISCOVERED_CLUSTERS", default_value = "true", default_missing_value = "true", num_args = 0..=1, require_equals = true, value_parser = parse_bool, action = ArgAction::Set, value_name = "BOOL")]
    pub(super) auto_join_discovered_clusters: bool,

    /// Let clusters that are not known yet come in only with a token. Without, a proof of their key is enough; what they get is for the policies to say
    #[arg(long, env = "LIQO_ENABLE_AUTHENTICATION", default_value = "true", default_missing_value = "true", num_args = 0..=1, require_equals = true, value_parser = parse_bool, action = ArgAction::Set, value_name = "BOOL")]
    pub(super) enable_authentication: bool,

    /// Where to answer other clusters, over HTTPS
    #[arg(long, env = "LIQO_AUTH_ADDRESS", default_value = ":5000", value_name = "ADDRESS")]
    pub(super) auth_address: Listen,

    /// Where other clusters reach the authentication service
    #[arg(
        long,
        env = "LIQO_AUTH_SERVICE_ADDRESS_OVERRIDE",
        default_value = "",
        hide_default_value = true,
        value_name = "HOST"
    )]
    pub(super) auth_service_address_override: Maybe<Host>,

    /// The port of the authentication service
    #[arg(
        long,
        env = "LIQO_AUTH_SERVICE_PORT_OVERRIDE",
        default_value = "",
        hide_default_value = true,
        value_name = "PORT"
    )]
    pub(super) auth_service_port_override: Maybe<Port>,

    /// Say that public authorities vouch for the API server, so that peers need not be told its own
    #[arg(long, env = "LIQO_API_SERVER_TRUSTED_CA", default_value = "false", default_missing_value = "true", num_args = 0..=1, require_equals = true, value_parser = parse_bool, action = ArgAction::Set, value_name = "BOOL")]
    pub(super) api_server_trusted_ca: bool,

    /// The name servers for search domains, as ADDRESS:PORT,ADDRESS:PORT; the services that they name are called by name, so
    /// the pod must be able to find these hosts as well [default: those that the pod uses]
    #[arg(long, env = "LIQO_NAME_SERVERS", value_delimiter = ',', value_name = "ADDRESSES")]
    pub(super) name_servers: Vec<SocketAddr>,

    /// Peers that are worked on at the same time
    #[arg(long, env = "LIQO_FOREIGN_CLUSTER_WORKERS", default_value = "1", value_name = "NUMBER")]
    pub(super) foreign_cluster_workers: Workers,
}

/// How pods and namespaces reach other clusters.
#[derive(Debug, Args)]
#[command(next_help_heading = "Offloading")]
pub(super) struct Offloading {
    /// How often the state of offloaded namespaces would be asked for
    #[arg(
        long,
        env = "LIQO_OFFLOADING_STATUS_REQUEUE_PERIOD",
        default_value = "10s",
        value_name = "DURATION"
    )]
    pub(super) offloading_status_requeue_period: Span,

    /// Shadow pods that are worked on at the same time
    #[arg(long, env = "LIQO_SHADOW_POD_CTRL_WORKERS", default_value = "10", value_name = "NUMBER")]
    pub(super) shadow_pod_ctrl_workers: Workers,

    /// Which objects go to providers, as kind=DenyList|AllowList|Never,…: all that no annotation keeps here, those alone that one lets go, or none
    #[arg(long, env = "LIQO_REFLECTION", action = ArgAction::Append, value_name = "POLICIES")]
    pub(super) reflection: Vec<liqo_reflection::Policies>,

    /// Where to answer the API server about pods, over HTTPS
    #[arg(long, env = "LIQO_WEBHOOK_ADDRESS", default_value = ":9443", value_name = "ADDRESS")]
    pub(super) webhook_address: Listen,
}

/// The nodes that stand for other clusters.
#[derive(Debug, Args)]
#[command(next_help_heading = "Virtual nodes")]
pub(super) struct VirtualNodes {
    /// Annotations of virtual nodes, as key=value,key=value
    #[arg(long, env = "LIQO_NODE_EXTRA_ANNOTATIONS", action = ArgAction::Append, value_name = "ANNOTATIONS")]
    pub(super) node_extra_annotations: Vec<Annotations>,

    /// Labels of virtual nodes, as key=value,key=value
    #[arg(long, env = "LIQO_NODE_EXTRA_LABELS", action = ArgAction::Append, value_name = "LABELS")]
    pub(super) node_extra_labels: Vec<Labels>,

    /// Where the API server asks for logs and terminals of pods on virtual nodes, over HTTPS
    #[arg(long, env = "LIQO_KUBELET_ADDRESS", default_value = ":10250", value_name = "ADDRESS")]
    pub(super) kubelet_address: Listen,

    /// The address of this pod, which virtual nodes have too. Without it, there are no logs of pods on them
    #[arg(long, env = "POD_IP", default_value = "", hide_default_value = true, value_name = "ADDRESS")]
    pub(super) pod_ip: Maybe<IpAddr>,

    /// How long Kubernetes believes a virtual node without hearing of it; it hears of it four times as often
    #[arg(long, env = "LIQO_NODE_LEASE_DURATION", default_value = "40s", value_name = "DURATION")]
    pub(super) node_lease_duration: Span,

    /// Image of virtual kubelets
    #[arg(
        long,
        env = "LIQO_KUBELET_IMAGE",
        default_value = "",
        hide_default_value = true,
        value_name = "IMAGE"
    )]
    pub(super) kubelet_image: Maybe<String>,

    /// Image of the init containers of virtual kubelets
    #[arg(
        long,
        env = "LIQO_INIT_KUBELET_IMAGE",
        default_value = "",
        hide_default_value = true,
        value_name = "IMAGE"
    )]
    pub(super) init_kubelet_image: Maybe<String>,

    /// Have no certificates made by virtual kubelets
    #[arg(long, env = "LIQO_DISABLE_KUBELET_CERTIFICATE_GENERATION", default_value = "false", default_missing_value = "true", num_args = 0..=1, require_equals = true, value_parser = parse_bool, action = ArgAction::Set, value_name = "BOOL")]
    pub(super) disable_kubelet_certificate_generation: bool,

    /// Annotations of the pods of virtual kubelets
    #[arg(long, env = "LIQO_KUBELET_EXTRA_ANNOTATIONS", action = ArgAction::Append, value_name = "ANNOTATIONS")]
    pub(super) kubelet_extra_annotations: Vec<Annotations>,

    /// Labels of the pods of virtual kubelets
    #[arg(long, env = "LIQO_KUBELET_EXTRA_LABELS", action = ArgAction::Append, value_name = "LABELS")]
    pub(super) kubelet_extra_labels: Vec<Labels>,

    /// Arguments of virtual kubelets; may be given several times
    #[arg(long, env = "LIQO_KUBELET_EXTRA_ARGS", action = ArgAction::Append, allow_hyphen_values = true, value_name = "ARGUMENT")]
    pub(super) kubelet_extra_args: Vec<String>,

    /// CPU that a virtual kubelet's pod asks for
    #[arg(long, env = "LIQO_KUBELET_CPU_REQUESTS", default_value = "250m", value_name = "QUANTITY")]
    pub(super) kubelet_cpu_requests: Amount,

    /// CPU that a virtual kubelet's pod may use
    #[arg(long, env = "LIQO_KUBELET_CPU_LIMITS", default_value = "1000m", value_name = "QUANTITY")]
    pub(super) kubelet_cpu_limits: Amount,

    /// Memory that a virtual kubelet's pod asks for
    #[arg(long, env = "LIQO_KUBELET_RAM_REQUESTS", default_value = "100M", value_name = "QUANTITY")]
    pub(super) kubelet_ram_requests: Amount,

    /// Memory that a virtual kubelet's pod may use
    #[arg(long, env = "LIQO_KUBELET_RAM_LIMITS", default_value = "250M", value_name = "QUANTITY")]
    pub(super) kubelet_ram_limits: Amount,
}

/// Volumes that follow pods to other clusters.
#[derive(Debug, Args)]
#[command(next_help_heading = "Storage")]
pub(super) struct Storage {
    /// Provide volumes that may be in other clusters
    #[arg(long, env = "LIQO_ENABLE_STORAGE", default_value = "false", default_missing_value = "true", num_args = 0..=1, require_equals = true, value_parser = parse_bool, action = ArgAction::Set, value_name = "BOOL")]
    pub(super) enable_storage: bool,

    /// The storage class that users ask for
    #[arg(long, env = "LIQO_VIRTUAL_STORAGE_CLASS_NAME", default_value = "liqo", value_name = "NAME")]
    pub(super) virtual_storage_class_name: ObjectName,

    /// The storage class behind it [default: the cluster's default]
    #[arg(
        long,
        env = "LIQO_REAL_STORAGE_CLASS_NAME",
        default_value = "",
        hide_default_value = true,
        value_name = "NAME"
    )]
    pub(super) real_storage_class_name: Maybe<ObjectName>,

    /// The namespace of the claims behind virtual volumes
    #[arg(long, env = "LIQO_STORAGE_NAMESPACE", default_value = "liqo-storage", value_name = "NAMESPACE")]
    pub(super) storage_namespace: NamespaceName,
}

impl Arguments {
    /// Sets up logging, unless its filter is nonsense.
    pub(crate) fn start_logging(&self) -> Result<(), String> {
        self.process.start_logging()
    }

    /// Whether the flags make sense together; the error says which do not.
    pub(crate) fn check(&self) -> Result<(), String> {
        let Leading { lease_duration, lease_renew_deadline, lease_retry_period, .. } = &self.leading;
        if lease_duration.0.subsec_nanos() != 0 || lease_duration.0.is_zero() {
            // A Lease holds whole seconds; others would wait for less than the leader believes.
            return Err("--lease-duration must be a whole number of seconds, and not 0".to_owned());
        }
        if lease_retry_period.0.is_zero()
            || lease_retry_period.0 >= lease_renew_deadline.0
            || lease_renew_deadline.0 >= lease_duration.0
        {
            return Err(
                "--lease-retry-period must be shorter than --lease-renew-deadline, and that shorter than \
                        --lease-duration: a leader must have ended before another begins"
                    .to_owned(),
            );
        }
        let lease = self.virtual_nodes.node_lease_duration.0;
        if lease.subsec_nanos() != 0 || lease < SHORTEST_NODE_LEASE {
            return Err("--node-lease-duration must be a whole number of seconds, and 4s at least".to_owned());
        }
        Ok(())
    }
}
