//! A stock by plain lists, for programs that look once.

use k8s_openapi::api::core::v1::{Namespace, Node, Pod, Service};
use k8s_openapi::api::storage::v1::StorageClass;
use kube::api::ListParams;
use kube::core::Request;
use kube::{Client, Resource};
use liqo_api::SharingPolicy;
use liqo_core::policy::Policy;
use liqo_kit::watch::{MetaOnly, Wire};
use liqo_kit::{Index, Key};
use serde::Deserialize;

use super::{
    ClassFacts, ClassOnWire, Lodging, NodeFacts, NodeOnWire, PodFacts, PodOnWire, ServiceFacts, Stock,
    is_lodging_selector, read_policy,
};

/// Objects per page: 500 pods are about 4 MiB.
const PAGE: u32 = 500;

/// Why a cluster could not be looked at.
#[derive(Debug, thiserror::Error)]
#[error("cannot list {what}: {source}")]
pub struct NotGathered {
    /// What was to be listed, as kubectl calls it.
    pub what: String,
    /// Why not.
    pub source: Box<kube::Error>,
}

#[derive(Deserialize)]
struct Page<W> {
    #[serde(default)]
    metadata: PageMeta,
    items: Option<Vec<W>>,
}

#[derive(Default, Deserialize)]
struct PageMeta {
    #[serde(rename = "continue", default)]
    next: Option<String>,
}

/// Looks at everything that offers depend on.
pub async fn gather(client: &Client) -> Result<Stock, NotGathered> {
    let mut stock = Stock::default();
    let all = ListParams::default();
    let lodgings = all.clone().labels(is_lodging_selector());
    let read = Reader { client, stock: &mut stock };
    let read = read.list::<SharingPolicy, _, Policy>(&all, read_policy).await?;
    let read = read.list::<Node, NodeOnWire, _>(&all, NodeFacts::read).await?;
    let read = read.list::<Namespace, MetaOnly, _>(&lodgings, |it| Lodging::read(&it)).await?;
    let read = read.list::<Pod, PodOnWire, _>(&all, PodFacts::read).await?;
    let read = read.list::<StorageClass, ClassOnWire, _>(&all, |it| ClassFacts::read(&it)).await?;
    read.list::<Service, MetaOnly, _>(&all, |it| ServiceFacts::read(&it)).await?;
    Ok(stock)
}

struct Reader<'a> {
    client: &'a Client,
    stock: &'a mut Stock,
}

impl Reader<'_> {
    /// Lists all objects of a kind, page by page, and puts into the stock what `project` makes of them.
    async fn list<K, W, T>(
        self,
        params: &ListParams,
        project: impl Fn(W) -> Option<T>,
    ) -> Result<Self, NotGathered>
    where
        K: Resource<DynamicType = ()>,
        W: Wire,
        Stock: Index<T>,
    {
        let failed =
            |source: kube::Error| NotGathered { what: K::plural(&()).into_owned(), source: Box::new(source) };
        let mut params = params.clone().limit(PAGE);
        loop {
            let request = Request::new(K::url_path(&(), None)).list(&params);
            let request = request.map_err(|error| failed(kube::Error::BuildRequest(error)))?;
            let page: Page<W> = self.client.request(request).await.map_err(failed)?;
            for object in page.items.into_iter().flatten() {
                let identity = object.identity();
                let key = Key::new(identity.namespace, identity.name);
                if let Some(facts) = project(object) {
                    self.stock.apply(&key, facts);
                }
            }
            match page.metadata.next.filter(|next| !next.is_empty()) {
                Some(next) => params.continue_token = Some(next),
                None => return Ok(self),
            }
        }
    }
}
