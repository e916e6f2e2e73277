//! What a room needs to be allowed, declared beside the code that needs it.
//!
//! Each room has a list of [`Rule`]s. The process that the rooms run in collects them, and the chart's roles are
//! generated from that: there is no second list that could lag behind, and nothing is allowed that no room asked for.

/// Where a rule holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Scope {
    /// In the whole cluster: kinds without namespace, and all namespaces of the others.
    Cluster,
    /// In the namespace that the process runs in.
    Namespace,
    /// In [`NODE_LEASES`].
    NodeLeases,
}

/// The namespace in which Kubernetes has the leases of nodes.
pub const NODE_LEASES: &str = "kube-node-lease";

/// One thing that a process must be allowed to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rule {
    /// Where.
    pub scope: Scope,
    /// API groups; the empty text is the core group.
    pub groups: &'static [&'static str],
    /// Resources in their plural names, with a subresource behind a slash.
    pub resources: &'static [&'static str],
    /// The names of the objects; empty means any. The verb `create` cannot be bound to names.
    pub names: &'static [&'static str],
    /// Verbs of the API.
    pub verbs: &'static [&'static str],
    /// What it is needed for, for those who read the role.
    pub why: &'static str,
}

impl Rule {
    /// In the whole cluster, on any object.
    pub const fn cluster(
        groups: &'static [&'static str],
        resources: &'static [&'static str],
        verbs: &'static [&'static str],
        why: &'static str,
    ) -> Self {
        Self { scope: Scope::Cluster, groups, resources, names: &[], verbs, why }
    }

    /// In the process's own namespace, on any object there.
    pub const fn namespace(
        groups: &'static [&'static str],
        resources: &'static [&'static str],
        verbs: &'static [&'static str],
        why: &'static str,
    ) -> Self {
        Self { scope: Scope::Namespace, ..Self::cluster(groups, resources, verbs, why) }
    }

    /// In the namespace of the leases of nodes, on any object there.
    pub const fn node_leases(
        groups: &'static [&'static str],
        resources: &'static [&'static str],
        verbs: &'static [&'static str],
        why: &'static str,
    ) -> Self {
        Self { scope: Scope::NodeLeases, ..Self::cluster(groups, resources, verbs, why) }
    }

    /// Only on the objects with these names.
    #[must_use]
    pub const fn named(mut self, names: &'static [&'static str]) -> Self {
        self.names = names;
        self
    }
}
