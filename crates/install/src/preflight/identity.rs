//! The cluster's name, and the version that is there.

use liqo_api::names::{ClusterId, ClusterName};
use semver::Version;

use super::{World, anchor, refusal};
use crate::finding::Finding;

pub(super) fn name(world: &World<'_>) -> Finding {
    const NAME: &str = "the cluster's name is valid and stays the same";
    let settings = world.settings;
    let wanted = settings.cluster_name.as_deref();
    let id = settings.cluster_id.as_deref();
    let invalid = wanted
        .and_then(|name| name.parse::<ClusterName>().err().map(|error| (error, "--cluster-name")))
        .or_else(|| id.and_then(|id| id.parse::<ClusterId>().err().map(|error| (error, "--cluster-id"))));
    if let Some((error, flag)) = invalid {
        return Finding::failed(NAME, error.to_string())
            .hint(format!("choose another with {flag}"))
            .docs(anchor::NAME);
    }
    if let Some(finding) = contradiction(world, NAME, wanted, id) {
        return finding;
    }
    Finding::ok(NAME, wanted.unwrap_or_default())
}

/// Who a cluster is, is decided once.
fn contradiction(world: &World<'_>, name: &str, wanted: Option<&str>, id: Option<&str>) -> Option<Finding> {
    let identity = world.existing.identity.as_ref()?;
    let differs = |known: &Option<String>, wanted: Option<&str>| {
        let (known, wanted) = (known.as_deref()?, wanted?);
        (known != wanted).then(|| (known.to_owned(), wanted.to_owned()))
    };
    let (what, flag, (known, wanted)) = differs(&identity.name, wanted)
        .map(|pair| ("is called", "--cluster-name", pair))
        .or_else(|| differs(&identity.id, id).map(|pair| ("has the ID", "--cluster-id", pair)))?;
    Some(
        Finding::failed(name, format!("the cluster {what} {known} since it was first installed ({}), not {wanted}", identity.source))
            .hint(format!(
                "peers know it as that: leave out {flag} (and the value behind it: --reset-values forgets what was given \
                 before), or begin anew with another identity: liqoctl uninstall --purge{}",
                world.flags
            ))
            .docs(anchor::NAME),
    )
}

pub(super) fn downgrade(world: &World<'_>) -> Finding {
    const NAME: &str = "no newer version is installed";
    let ours = world.version;
    let Some(there) =
        world.existing.notes.as_ref().map(|notes| notes.version.as_str()).filter(|there| !there.is_empty())
    else {
        return Finding::ok(NAME, format!("this is {ours}"));
    };
    let number = |text: &str| Version::parse(text.trim_start_matches('v')).ok();
    match (number(there), number(ours)) {
        (Some(before), Some(after)) if before > after => {
            refusal(world, NAME, format!("{there} is installed, this liqoctl brings {ours}"))
                .hint(format!(
                    "use liqoctl {there} or later. An older manager may not understand what a newer one wrote; --force goes \
                     back all the same"
                ))
                .docs(anchor::DOWNGRADE)
        }
        _ if there == ours => Finding::ok(NAME, format!("{there}, as this")),
        _ => Finding::ok(NAME, format!("{there} is installed, this is {ours}")),
    }
}
