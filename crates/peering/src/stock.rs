//! What this cluster has: nodes, pods, storage classes, services, policies.
