//! One namespace: its NamespaceOffloading, its labels, and what its owner is told.

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Namespace;
use kube::ResourceExt;
use kube::api::ObjectMeta;
use liqo_api::names::NAMESPACE_OFFLOADING;
use liqo_api::namespace_offloading::PodOffloadingStrategy;
use liqo_api::{NamespaceOffloading, NamespaceOffloadingSpec, annotations, finalizers, labels};

use super::{Planned, View, drain, fail_back, status};
use crate::events::{Report, labels_of};
use crate::selector;
use crate::steps::{Step, Where};

/// Namespaces without which the cluster is none.
const SYSTEM: [&str; 3] = ["kube-system", "kube-public", "kube-node-lease"];
/// What the annotation says on NamespaceOffloadings made for a label.
const BY_LABEL: &str = "liqo.io/enabled";

/// Why this namespace must not be offloaded like this; nothing if it may.
pub(super) fn refused(view: &View<'_>, offloading: &NamespaceOffloading) -> Option<String> {
    let name = offloading.metadata.namespace.as_deref().unwrap_or_default();
    // Clusters that have to reach something of ours see its Services; those who reflect let nothing else of it out.
    let spec = &offloading.spec;
    let shown = spec.pod_offloading_strategy == PodOffloadingStrategy::Local && spec.reflect.is_empty();
    if shown && is_own(view, name) { None } else { protected(view, name) }
}

/// Whether this is where we run.
fn is_own(view: &View<'_>, name: &str) -> bool {
    name == view.settings.namespace.as_str()
}

/// Why the pods of this namespace must never run elsewhere; nothing if they may.
fn protected(view: &View<'_>, name: &str) -> Option<String> {
    if SYSTEM.contains(&name) {
        return Some(format!("{name} belongs to Kubernetes itself, and its pods must run in this cluster"));
    }
    if is_own(view, name) {
        return Some(format!(
            "{name} is where Liqo itself runs; only its Services may be shown to other clusters, with \
             podOffloadingStrategy Local and nothing in reflect"
        ));
    }
    let tenant = view.index.namespaces.get(name).is_some_and(|it| is_true(it, labels::TENANT_NAMESPACE));
    tenant.then(|| format!("{name} holds what is exchanged with a peer"))
}

fn is_true(namespace: &Namespace, label: &str) -> bool {
    namespace.labels().get(label).is_some_and(|value| value == labels::TRUE)
}

/// What is missing of this namespace.
pub(super) fn plan(view: &View<'_>, name: &str) -> Planned {
    let Some(namespace) = view.index.namespaces.get(name) else { return Planned::default() };
    let offloading = view.index.offloadings.get(name);
    let mut steps: Vec<_> = follow_label(view, namespace, offloading).into_iter().collect();
    steps.extend(mark(view, namespace, offloading));
    let mut wake = None;
    if let Some(offloading) = offloading {
        // One after the other: two writes to one object at once would conflict.
        match keep_or_release(view, offloading) {
            Some(step) => steps.push(step),
            None => steps.extend(status::tell(view, offloading)),
        }
        wake = drain::due(view, offloading).into_iter().chain(fail_back::due(view, offloading)).min();
    }
    Planned { steps, wake }
}

/// Makes and removes the NamespaceOffloading of a namespace that has a label instead.
fn follow_label(
    view: &View<'_>,
    namespace: &Namespace,
    offloading: Option<&NamespaceOffloading>,
) -> Option<Step> {
    let name = namespace.name_any();
    let wanted = is_true(namespace, labels::OFFLOADING_ENABLED);
    match offloading {
        None if wanted && namespace.metadata.deletion_timestamp.is_none() => {
            Some(match protected(view, &name) {
                None => Step::create(Where::Here, &by_label(&name), "offload"),
                Some(why) => {
                    let report = Report {
                        warning: true,
                        reason: "ProtectedNamespace".to_owned(),
                        message: format!(
                            "this namespace is not offloaded though its label asks for it: {why}"
                        ),
                        occasion: String::new(),
                    };
                    report.about(namespace, &view.settings.pod, view.now)
                }
            })
        }
        Some(offloading)
            if !wanted
                && offloading.metadata.deletion_timestamp.is_none()
                && offloading.annotations().contains_key(annotations::CONTROLLED_BY) =>
        {
            Some(Step::delete(Where::Here, offloading, "withdraw"))
        }
        _ => None,
    }
}

fn by_label(namespace: &str) -> NamespaceOffloading {
    let mut offloading = NamespaceOffloading::new(NAMESPACE_OFFLOADING, NamespaceOffloadingSpec::default());
    offloading.metadata = ObjectMeta {
        name: Some(NAMESPACE_OFFLOADING.to_owned()),
        namespace: Some(namespace.to_owned()),
        labels: Some(labels_of()),
        annotations: Some([(annotations::CONTROLLED_BY.to_owned(), BY_LABEL.to_owned())].into()),
        finalizers: Some(vec![finalizers::NAMESPACE_OFFLOADING.to_owned()]),
        ..ObjectMeta::default()
    };
    offloading
}

/// The labels by which admission knows the namespace. They are there whenever a NamespaceOffloading is, also while no cluster is
/// selected: pods of a namespace that is remote must not run here for lack of anywhere else. Never in our own namespace: the
/// manager's pods could not be made while no manager answers for them.
fn mark(view: &View<'_>, namespace: &Namespace, offloading: Option<&NamespaceOffloading>) -> Option<Step> {
    let active = offloading.filter(|offloading| {
        offloading.metadata.deletion_timestamp.is_none() && protected(view, &namespace.name_any()).is_none()
    });
    let mut wanted = namespace.clone();
    let all = wanted.labels_mut();
    match active {
        Some(offloading) => {
            let strategy = format!("{:?}", offloading.spec.pod_offloading_strategy);
            all.insert(labels::SCHEDULING_ENABLED.to_owned(), labels::TRUE.to_owned());
            all.insert(labels::OFFLOADING_STRATEGY.to_owned(), strategy);
        }
        None => {
            all.remove(labels::SCHEDULING_ENABLED);
            all.remove(labels::OFFLOADING_STRATEGY);
        }
    }
    // A namespace that goes takes no more labels than it needs to go.
    if active.is_some() && namespace.metadata.deletion_timestamp.is_some() {
        return None;
    }
    if namespace.metadata.labels.is_none() && wanted.labels().is_empty() {
        return None;
    }
    Step::bring(Where::Here, namespace, &wanted, "mark")
}

/// Holds the NamespaceOffloading until nothing of the namespace is elsewhere, with an end.
fn keep_or_release(view: &View<'_>, offloading: &NamespaceOffloading) -> Option<Step> {
    let held = offloading.finalizers().iter().any(|it| it == finalizers::NAMESPACE_OFFLOADING);
    let mut wanted = offloading.clone();
    match (&offloading.metadata.deletion_timestamp, held) {
        (None, false) => wanted.finalizers_mut().push(finalizers::NAMESPACE_OFFLOADING.to_owned()),
        (Some(deleted), true) if is_clear(view, offloading, deleted.0) => {
            wanted.finalizers_mut().retain(|it| it != finalizers::NAMESPACE_OFFLOADING);
        }
        _ => return None,
    }
    Step::bring(Where::Here, offloading, &wanted, if held { "release" } else { "hold" })
}

/// Whether nothing of the namespace is mapped any more, or it took too long.
fn is_clear(view: &View<'_>, offloading: &NamespaceOffloading, deleted: Timestamp) -> bool {
    let namespace = offloading.namespace().unwrap_or_default();
    let clear = view.index.clusters().iter().all(|cluster| {
        let original =
            view.index.original(cluster).is_some_and(|map| map.spec.desired_mapping.contains_key(&namespace));
        // A cluster that does not answer cannot say that the namespace is gone; it cleans up when it is back.
        let gone =
            view.index.peers.get(cluster).is_none_or(|peer| peer.health.is_gone() || peer.place.is_err());
        let copy = view.index.copy(cluster).filter(|_| !gone).is_some_and(|map| {
            map.spec.desired_mapping.contains_key(&namespace)
                || map.status.as_ref().is_some_and(|status| status.current_mapping.contains_key(&namespace))
        });
        !original && !copy
    });
    clear || view.now >= drain::end(view, deleted)
}

/// What is wrong with what the owner asked for; nothing if it makes sense.
pub(super) fn problem(view: &View<'_>, offloading: &NamespaceOffloading) -> Option<(&'static str, String)> {
    let namespace = offloading.namespace().unwrap_or_default();
    if let Some(why) = refused(view, offloading) {
        return Some(("ProtectedNamespace", format!("this namespace is not offloaded: {why}")));
    }
    if let Err(error) = selector::check(offloading.spec.cluster_selector.as_ref()) {
        return Some(("InvalidSelector", format!("the clusterSelector is not valid: {error}")));
    }
    if let Err(error) = view.index.failover(&namespace) {
        return Some(("InvalidFailover", error));
    }
    view.index.fail_back(&namespace).err().map(|error| ("InvalidFailBack", error))
}
