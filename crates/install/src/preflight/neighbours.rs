//! Who is in the cluster already: another Liqo, Helm, remains of either.

use super::{World, anchor, refusal};
use crate::existing::Webhook;
use crate::finding::Finding;
use crate::names::{MANAGER, NAMESPACE, RELEASE};
use crate::objects::Owner;

/// More names than this are counted, not listed.
const LISTED: usize = 4;

fn list(names: &[String]) -> String {
    let shown = names.iter().take(LISTED).cloned().collect::<Vec<_>>().join(", ");
    if names.len() > LISTED { format!("{shown} and {} more", names.len() - LISTED) } else { shown }
}

pub(super) fn another_liqo(world: &World<'_>) -> Finding {
    const NAME: &str = "no other Liqo is in the cluster";
    helm(world, NAME).or_else(|| elsewhere(world, NAME)).or_else(|| foreign(world, NAME)).unwrap_or_else(
        || {
            let here = world.existing.managers.iter().any(|one| one.namespace == world.namespace);
            let seen = match &world.existing.notes {
                Some(notes) if here => format!("version {} is installed: this is an upgrade", notes.version),
                Some(notes) => format!("an installation of version {} was begun; it goes on", notes.version),
                None => String::new(),
            };
            Finding::ok(NAME, seen)
        },
    )
}

fn helm(world: &World<'_>, name: &str) -> Option<Finding> {
    let managed = world.existing.managers.iter().find(|one| one.owner == Owner::Helm);
    let release = world.existing.releases.iter().find(|release| match managed {
        Some(manager) => release.namespace == manager.namespace,
        None => true,
    });
    let (namespace, what) = match (managed, release) {
        (None, None) => return None,
        // A release of ours has labels of ours on what it made.
        (Some(manager), release) => {
            let release = release.map_or(RELEASE, |release| release.name.as_str());
            (
                manager.namespace.clone(),
                format!(
                    "liqo was installed with Helm, as release {release} of namespace {}",
                    manager.namespace
                ),
            )
        }
        (None, Some(release)) => (
            release.namespace.clone(),
            format!("there is a Helm release {} in namespace {}", release.name, release.namespace),
        ),
    };
    let release = release.map_or(RELEASE, |release| release.name.as_str());
    Some(
        refusal(world, name, what)
            .hint(format!(
                "go on with Helm: helm upgrade {release} deploy/helm/liqo --namespace {namespace}\n\
                 or remove it first: helm uninstall {release} --namespace {namespace}"
            ))
            .docs(anchor::NEIGHBOUR),
    )
}

fn elsewhere(world: &World<'_>, name: &str) -> Option<Finding> {
    let other = world.existing.managers.iter().find(|one| one.namespace != world.namespace)?;
    let (what, hint) = match other.owner {
        Owner::Foreign => (
            format!("another Liqo runs in namespace {}", other.namespace),
            "remove it first with the program that installed it".to_owned(),
        ),
        Owner::Ours | Owner::Helm => {
            let flag =
                if other.namespace == NAMESPACE { String::new() } else { format!(" -n {}", other.namespace) };
            (
                format!("liqo is installed in namespace {}", other.namespace),
                format!(
                    "a cluster has one: upgrade that with liqoctl install{flag}, or remove it with liqoctl uninstall{flag}"
                ),
            )
        }
    };
    Some(refusal(world, name, what).hint(hint).docs(anchor::NEIGHBOUR))
}

fn foreign(world: &World<'_>, name: &str) -> Option<Finding> {
    let here =
        world.existing.managers.iter().find(|one| one.owner == Owner::Foreign && !is_noted(world, MANAGER));
    // Where we installed, a definition of ours whose labels somebody took off is still ours.
    let installed = |name: &str| {
        world.existing.notes.is_some() && world.planned.iter().any(|planned| planned.id.name == name)
    };
    let kinds: Vec<String> = world
        .existing
        .definitions
        .iter()
        .filter(|one| one.owner == Owner::Foreign && !installed(&one.name))
        .map(|one| one.name.clone())
        .collect();
    let what = match (here, kinds.as_slice()) {
        (Some(manager), _) => format!("another Liqo runs in namespace {}", manager.namespace),
        (None, []) => return None,
        (None, kinds) => format!("kinds of another Liqo are there: {}", list(kinds)),
    };
    let delete = if kinds.is_empty() {
        "remove it first with the program that installed it".to_owned()
    } else {
        format!(
            "remove it first with the program that installed it. If only its kinds are left, this deletes them with all \
             their objects:\n  kubectl delete crd {}",
            kinds.join(" ")
        )
    };
    Some(refusal(world, name, what).hint(delete).docs(anchor::NEIGHBOUR))
}

/// Whether the notes of the last installation list an object of this name: it is ours, whatever became of its labels.
fn is_noted(world: &World<'_>, name: &str) -> bool {
    world.existing.notes.as_ref().is_some_and(|notes| notes.objects.iter().any(|id| id.name == name))
}

/// Objects by the names of ours that are somebody else's.
pub(super) fn foreign_objects(world: &World<'_>) -> Option<Finding> {
    const NAME: &str = "the names of liqo's objects are free";
    let definition = |kind: &str| kind == "CustomResourceDefinition";
    let taken: Vec<String> = world
        .planned
        .iter()
        .filter(|one| one.owner == Some(Owner::Foreign) && !definition(&one.id.kind))
        .filter(|one| !is_noted(world, &one.id.name))
        .map(|one| one.id.to_string())
        .collect();
    let helms: Vec<String> = world
        .planned
        .iter()
        .filter(|one| one.owner == Some(Owner::Helm) && !definition(&one.id.kind))
        .map(|one| one.id.to_string())
        .collect();
    if !helms.is_empty() && world.existing.managers.is_empty() {
        return Some(
            refusal(world, NAME, format!("Helm installed {}", list(&helms)))
                .hint("remove what Helm installed with helm uninstall, or go on with helm upgrade")
                .docs(anchor::NEIGHBOUR),
        );
    }
    (!taken.is_empty()).then(|| {
        refusal(world, NAME, format!("there is something else by that name: {}", list(&taken)))
            .hint("remove or rename it; with --force it is taken over and changed")
            .docs(anchor::NEIGHBOUR)
    })
}

pub(super) fn webhooks(world: &World<'_>) -> Option<Finding> {
    const NAME: &str = "no webhook of a dead manager is left";
    let dead: Vec<&Webhook> = world.existing.webhooks.iter().filter(|one| one.is_dead()).collect();
    let (ours, foreign): (Vec<&Webhook>, Vec<&Webhook>) =
        dead.into_iter().partition(|one| one.owner != Owner::Foreign);
    let describe = |one: &Webhook| {
        format!("{} {} calls {}, where nobody is", one.kind, one.name, one.dead.join(" and "))
    };
    if !foreign.is_empty() {
        let what: Vec<String> = foreign.iter().map(|one| describe(one)).collect();
        let commands: Vec<String> = foreign
            .iter()
            .map(|one| format!("  kubectl delete {} {}", one.kind.to_lowercase(), one.name))
            .collect();
        let finding = if foreign.iter().any(|one| one.closed) {
            refusal(world, NAME, what.join("; "))
        } else {
            Finding::warning(NAME, what.join("; "))
        };
        return Some(
            finding
                .hint(format!(
                    "if the program behind it is gone for good, remove it (--force does it too):\n{}",
                    commands.join("\n")
                ))
                .docs(anchor::WEBHOOKS),
        );
    }
    (!ours.is_empty()).then(|| {
        let what: Vec<String> = ours.iter().map(|one| describe(one)).collect();
        Finding::warning(NAME, what.join("; "))
            .hint("it is ours, and is put right by this installation")
            .docs(anchor::WEBHOOKS)
    })
}

pub(super) fn being_deleted(world: &World<'_>) -> Option<Finding> {
    const NAME: &str = "nothing of ours is still being deleted";
    let mut going: Vec<String> = world
        .existing
        .definitions
        .iter()
        .filter(|one| one.terminating)
        .map(|one| format!("CustomResourceDefinition {}", one.name))
        .collect();
    if world.existing.namespace.as_ref().is_some_and(|one| one.terminating) {
        going.insert(0, format!("Namespace {}", world.namespace));
    }
    let object = |one: &&crate::changes::Planned| {
        one.terminating && one.id.kind != "Namespace" && one.id.kind != "CustomResourceDefinition"
    };
    going.extend(world.planned.iter().filter(object).map(|one| one.id.to_string()));
    (!going.is_empty()).then(|| {
        Finding::failed(NAME, list(&going))
            .hint(format!(
                "wait until it is gone and run the same command again; if it does not go, liqoctl uninstall --purge{} helps",
                world.flags
            ))
            .docs(anchor::DELETED)
    })
}
