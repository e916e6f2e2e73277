//! Lists objects of all kinds.

use std::collections::BTreeMap;

use futures::{StreamExt, stream};
use kube::Client;
use kube::api::ListParams;

use crate::changes::AT_ONCE;
use crate::facts::Unread;
use crate::kinds::Kind;
use crate::objects::Id;
use crate::trouble::{self, patiently};

/// Objects per request; a list of thousands must not become one answer of megabytes.
const PAGE: u32 = 500;

/// An object that was seen.
#[derive(Debug, Clone)]
pub(crate) struct Seen {
    pub(crate) id: Id,
    pub(crate) kind: Kind,
    pub(crate) labels: BTreeMap<String, String>,
    pub(crate) finalizers: Vec<String>,
    /// Changes with every write.
    pub(crate) version: String,
    /// Another object owns it, and takes it along.
    pub(crate) owned: bool,
    pub(crate) terminating: bool,
}

/// What was seen, and what could not be looked at.
#[derive(Debug, Clone, Default)]
pub(crate) struct Inventory {
    pub(crate) objects: Vec<Seen>,
    pub(crate) unread: Vec<Unread>,
}

/// Lists the objects of these kinds: everywhere, or in one namespace; all, or those with certain labels.
pub(crate) async fn list(
    client: &Client,
    kinds: &[Kind],
    namespace: Option<&str>,
    labels: Option<&str>,
) -> Inventory {
    let lists = kinds.iter().map(async |kind| (kind, one(client, kind, namespace, labels).await));
    let lists: Vec<_> = stream::iter(lists).buffered(AT_ONCE).collect().await;
    let mut inventory = Inventory::default();
    for (kind, answer) in lists {
        match answer {
            Ok(objects) => inventory.objects.extend(objects),
            // The kind went away since it was asked for.
            Err(error) if trouble::is_not_found(&error) => {}
            Err(error) => {
                let what = format!("{}.{}", kind.resource.plural, kind.resource.group);
                inventory.unread.push(Unread { what, why: trouble::text(&error) });
            }
        }
    }
    inventory
}

async fn one(
    client: &Client,
    kind: &Kind,
    namespace: Option<&str>,
    labels: Option<&str>,
) -> Result<Vec<Seen>, kube::Error> {
    let api = kind.api(client, namespace);
    let mut params =
        ListParams { label_selector: labels.map(str::to_owned), ..ListParams::default().limit(PAGE) };
    let mut seen = Vec::new();
    loop {
        let page = patiently(async || api.list_metadata(&params).await).await?;
        let token = page.metadata.continue_.clone().filter(|token| !token.is_empty());
        seen.extend(page.items.into_iter().map(|object| {
            let metadata = object.metadata;
            Seen {
                id: Id {
                    api_version: kind.resource.api_version.clone(),
                    kind: kind.resource.kind.clone(),
                    namespace: metadata.namespace,
                    name: metadata.name.unwrap_or_default(),
                },
                kind: kind.clone(),
                labels: metadata.labels.unwrap_or_default(),
                finalizers: metadata.finalizers.unwrap_or_default(),
                version: metadata.resource_version.unwrap_or_default(),
                owned: metadata.owner_references.is_some_and(|owners| !owners.is_empty()),
                terminating: metadata.deletion_timestamp.is_some(),
            }
        }));
        match token {
            Some(token) => params.continue_token = Some(token),
            None => return Ok(seen),
        }
    }
}
