//! Volumes: what they are filled from has other names at the provider, and tokens come as Secrets.

use std::collections::BTreeSet;

use k8s_openapi::api::core::v1::{KeyToPath, PodSpec, SecretProjection, Volume, VolumeProjection};

use super::outgoing::DEFAULT_ACCOUNT;
use crate::route::{Route, config_map_name, token_key, token_secret_name};

/// The storage class here that means "some class of the provider's", unless the manager is told another name.
pub(crate) const VIRTUAL_CLASS: &str = "liqo";
/// The key of a token's Secret with the namespace that the account is in.
pub(crate) const NAMESPACE_KEY: &str = "namespace";

/// The volume at the provider.
pub(super) fn translate(mut volume: Volume, route: &Route<'_>, account: &str) -> Volume {
    if let Some(map) = &mut volume.config_map {
        map.name = config_map_name(&map.name, route.home);
    }
    if let Some(projected) = &mut volume.projected {
        let sources = projected.sources.take().unwrap_or_default();
        projected.sources = Some(sources.into_iter().flat_map(|it| project(it, route, account)).collect());
    }
    let claim = volume.ephemeral.as_mut().and_then(|it| it.volume_claim_template.as_mut());
    if let Some(template) = claim
        && template.spec.storage_class_name.as_deref() == Some(VIRTUAL_CLASS)
    {
        template.spec.storage_class_name = route.storage_class.map(str::to_owned);
    }
    volume
}

fn project(mut source: VolumeProjection, route: &Route<'_>, account: &str) -> Vec<VolumeProjection> {
    if let Some(token) = source.service_account_token.take() {
        let key = token_key(token.audience.as_deref());
        return vec![from_token_secret(account, &key, token.path, None)];
    }
    if let Some(map) = &mut source.config_map {
        map.name = config_map_name(&map.name, route.home);
    }
    // Programs ask the API server of home about the namespace at home.
    let mut namespaces = vec![];
    if let Some(fields) = &mut source.downward_api
        && let Some(items) = &mut fields.items
    {
        let is_namespace = |path: Option<&str>| path == Some("metadata.namespace");
        items.retain(|item| {
            let field = item.field_ref.as_ref().map(|field| field.field_path.as_str());
            if is_namespace(field) {
                namespaces.push(from_token_secret(account, NAMESPACE_KEY, item.path.clone(), item.mode));
            }
            !is_namespace(field)
        });
        if items.is_empty() {
            return namespaces;
        }
    }
    let mut all = vec![source];
    all.append(&mut namespaces);
    all
}

fn from_token_secret(account: &str, key: &str, path: String, mode: Option<i32>) -> VolumeProjection {
    let item = KeyToPath { key: key.to_owned(), path, mode };
    let secret =
        SecretProjection { name: token_secret_name(account), items: Some(vec![item]), optional: None };
    VolumeProjection { secret: Some(secret), ..VolumeProjection::default() }
}

/// Which tokens a pod reads: of which account, for which audiences.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Tokens {
    pub(crate) account: Box<str>,
    /// Sorted; none is the API server itself.
    pub(crate) audiences: Box<[Option<Box<str>>]>,
}

/// The tokens that this pod reads, if any.
pub(crate) fn tokens(spec: &PodSpec) -> Option<Box<Tokens>> {
    let sources = spec.volumes.iter().flatten().filter_map(|volume| volume.projected.as_ref());
    let sources = sources.flat_map(|it| it.sources.iter().flatten());
    let mut audiences = BTreeSet::new();
    for token in sources.filter_map(|source| source.service_account_token.as_ref()) {
        audiences.insert(token.audience.as_deref().filter(|it| !it.is_empty()).map(Box::from));
    }
    let account = spec.service_account_name.as_deref().filter(|name| !name.is_empty());
    (!audiences.is_empty()).then(|| {
        Box::new(Tokens {
            account: account.unwrap_or(DEFAULT_ACCOUNT).into(),
            audiences: audiences.into_iter().collect(),
        })
    })
}
