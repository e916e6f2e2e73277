//! What an offer has besides resources.

use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::sync::Arc;

use liqo_core::policy::Extras;

use super::{Image, Stock};

/// Images in an offer; the API takes no more.
const MOST_IMAGES: usize = 256;
/// Names of an image, and how long each may be; the API takes no more.
const MOST_NAMES: usize = 8;
const LONGEST_NAME: usize = 1024;
/// Storage classes and services in an offer; the API takes no more.
const MOST_CLASSES: usize = 64;
const MOST_SERVICES: usize = 256;

/// What an offer has besides resources, in an order that depends on nothing else.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Goods {
    /// Storage classes, and whether each is the default; at most one is.
    pub storage_classes: Vec<(String, bool)>,
    /// Services, as namespace and name.
    pub services: Vec<(String, String)>,
    /// Images that the nodes have.
    pub images: Vec<Arc<Image>>,
}

impl Stock {
    /// What there is of what `extras` allows.
    pub fn goods(&self, extras: &Extras) -> Goods {
        Goods {
            storage_classes: self.storage_classes(extras),
            services: self.offered_services(extras),
            images: self.offered_images(extras),
        }
    }

    fn storage_classes(&self, extras: &Extras) -> Vec<(String, bool)> {
        let allowed = self.classes.iter().filter(|(key, _)| extras.storage_classes.matches(key.name()));
        let names: Vec<&str> = allowed.clone().map(|(key, _)| key.name()).collect();
        let chosen = extras.default_storage_class.as_deref().filter(|chosen| names.contains(chosen));
        // Kubernetes takes the newest of several defaults; here the first in the alphabet does, as there must be one.
        let usual = allowed.clone().find(|(_, class)| class.default).map(|(key, _)| key.name());
        let default = chosen.or(usual);
        let first = default.into_iter().chain(names.iter().copied().filter(|name| Some(*name) != default));
        let mut classes: Vec<(String, bool)> =
            first.take(MOST_CLASSES).map(|name| (name.to_owned(), Some(name) == default)).collect();
        classes.sort();
        classes
    }

    fn offered_services(&self, extras: &Extras) -> Vec<(String, String)> {
        let offered = self.services.iter().filter(|key| extras.services.matches(key.as_str()));
        let names = offered.filter_map(|key| Some((key.namespace()?.to_owned(), key.name().to_owned())));
        names.take(MOST_SERVICES).collect()
    }

    fn offered_images(&self, extras: &Extras) -> Vec<Arc<Image>> {
        if extras.images.is_empty() {
            return Vec::new();
        }
        let images: BTreeSet<&Arc<Image>> = self.images.values().flatten().collect();
        let fits = |name: &&String| name.len() <= LONGEST_NAME && extras.images.matches(name);
        let told = images.into_iter().filter_map(|image| {
            let names: Vec<String> = image.names.iter().filter(fits).take(MOST_NAMES).cloned().collect();
            (!names.is_empty()).then(|| Arc::new(Image { names, size: image.size }))
        });
        let mut told: Vec<Arc<Image>> = told.collect();
        // The largest ones are those whose download is saved.
        told.sort_by_key(|image| (Reverse(image.size), Arc::clone(image)));
        told.truncate(MOST_IMAGES);
        told.sort();
        told.dedup();
        told
    }
}
