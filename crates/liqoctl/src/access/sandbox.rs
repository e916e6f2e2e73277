//! Clusters of sandboxes that run on this machine.

use std::path::PathBuf;

use liqo_sandbox::{Place, Sandbox};

use super::Environment;
use super::failure::AccessError;

/// A cluster of a running sandbox.
#[derive(Debug)]
pub(super) struct Found {
    pub(super) sandbox: String,
    pub(super) kubeconfig: PathBuf,
}

/// The sandboxes that run, the one that is meant by default first. None for those who may not look at them.
pub(super) fn running(environment: &Environment) -> Vec<Sandbox> {
    let mut names = liqo_sandbox::list(&environment.sandbox_dir);
    names.sort_by_key(|name| *name != environment.sandbox_name);
    let places = names.iter().filter_map(|name| Place::new(&environment.sandbox_dir, name).ok());
    places.filter_map(|place| Sandbox::open(&place).ok()).collect()
}

/// The cluster with this name: in the sandbox that is meant by default, else in the only one that has it.
pub(super) fn with_cluster(environment: &Environment, cluster: &str) -> Option<Result<Found, AccessError>> {
    let found: Vec<Found> = running(environment)
        .iter()
        .filter_map(|sandbox| {
            let kubeconfig = sandbox.cluster(cluster).ok()?.kubeconfig();
            Some(Found { sandbox: sandbox.place().name().to_owned(), kubeconfig })
        })
        .collect();
    let names: Vec<String> = found.iter().map(|found| found.sandbox.clone()).collect();
    let several = found.len() > 1;
    let first = found.into_iter().next()?;
    if several && first.sandbox != environment.sandbox_name {
        return Some(Err(AccessError::several_sandboxes(cluster, &names)));
    }
    Some(Ok(first))
}
