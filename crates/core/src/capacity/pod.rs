//! What a pod requests, as the Kubernetes scheduler counts it.

use crate::resources::Resources;

/// A pod's requests, taken out of its spec.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PodRequests {
    /// Requests of the ordinary containers.
    pub containers: Vec<Resources>,
    /// Requests of the init containers, in their order.
    pub init_containers: Vec<InitContainer>,
    /// Requests of the pod as a whole, where it has such: they replace the containers' sums.
    pub pod_level: Resources,
    /// What the runtime class adds.
    pub overhead: Resources,
}

/// An init container's requests.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct InitContainer {
    /// What it requests.
    pub requests: Resources,
    /// Whether it keeps running beside the others (`restartPolicy: Always`, a sidecar).
    pub sidecar: bool,
}

impl PodRequests {
    /// What has to be free on a node for the pod to run there.
    ///
    /// Ordinary containers and sidecars run at the same time, so that theirs add up. Init containers run before,
    /// one after the other, each beside the sidecars that were started before it: the pod needs the largest of
    /// these moments. What the pod requests as a whole replaces that per resource, and the overhead comes on top.
    pub fn effective(&self) -> Resources {
        let mut sidecars = Resources::new();
        let mut starting = Resources::new();
        for init in &self.init_containers {
            let moment = sidecars.saturating_add(&init.requests);
            starting = starting.max(&moment);
            if init.sidecar {
                sidecars = moment;
            }
        }
        let running = self.containers.iter().fold(sidecars, |sum, requests| sum.saturating_add(requests));
        let mut needed = running.max(&starting);
        needed.extend(self.pod_level.clone());
        needed.saturating_add(&self.overhead)
    }
}
