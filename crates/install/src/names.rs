//! Names that liqoctl and the chart share.

/// Where liqo is installed unless told otherwise.
pub const NAMESPACE: &str = "liqo";
/// The release's name: liqo is installed once per cluster.
pub const RELEASE: &str = "liqo";
/// Who renders the chart, hence the value of the label `app.kubernetes.io/managed-by`.
pub const SERVICE: &str = "liqoctl";
/// The value of that label on what Helm installed.
pub const HELM: &str = "Helm";
/// The owner of the fields that an installation sets.
pub const FIELD_MANAGER: &str = "liqoctl";
/// Deployment of the manager, and name of nearly everything that belongs to it.
pub const MANAGER: &str = "liqo-controller-manager";
/// Secret with liqoctl's own notes, and the Lease of whoever is changing the installation.
pub const INSTALLATION: &str = "liqo-installation";
/// The type of that Secret.
pub const INSTALLATION_TYPE: &str = "liqo.io/installation";
/// All API groups of liqo end like this.
pub const GROUP_SUFFIX: &str = "liqo.io";
/// Label: who renders and owns an object.
pub const MANAGED_BY: &str = "app.kubernetes.io/managed-by";
/// Label: the part of liqo that made an object.
pub const COMPONENT: &str = "app.kubernetes.io/component";
/// Label: the release.
pub const INSTANCE: &str = "app.kubernetes.io/instance";

/// How the requests for certificates begin with which the manager answers for virtual nodes.
pub(crate) const SERVING_REQUESTS: &str = "liqo-kubelet-serving-";
