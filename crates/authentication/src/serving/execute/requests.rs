//! Requests to our API server, each within its time.

use std::fmt;
use std::time::Duration;

use kube::Api;
use kube::api::{DeleteParams, ListParams, PatchParams, PostParams, Preconditions};
use serde::de::DeserializeOwned;

use super::Trouble;
use crate::objects::FIELD_MANAGER;

/// How long one request may take.
const TIMEOUT: Duration = Duration::from_secs(10);
/// Objects that are read at once.
const PAGE: u32 = 500;

pub(super) async fn within<T>(request: impl Future<Output = Result<T, kube::Error>>) -> Result<T, Trouble> {
    match tokio::time::timeout(TIMEOUT, request).await {
        Ok(Ok(answer)) => Ok(answer),
        Ok(Err(error)) if namespace_goes(&error) => Err(Trouble::GoingAway),
        Ok(Err(error)) => Err(Trouble::because(error.to_string())),
        Err(_) => {
            Err(Trouble::because(format!("no answer from the API server within {} s", TIMEOUT.as_secs())))
        }
    }
}

/// Whether it did not work because the namespace goes away or is gone. The watch may tell of that only a moment later.
fn namespace_goes(error: &kube::Error) -> bool {
    let kube::Error::Api(status) = error else { return false };
    let details = status.details.as_ref();
    let terminating =
        details.is_some_and(|details| details.causes.iter().any(|it| it.reason == "NamespaceTerminating"));
    let gone = status.code == 404 && details.is_some_and(|details| details.kind == "namespaces");
    terminating || gone
}

/// `None` when the object is not as it was thought to be: there already, gone, or changed. Then it is read again.
pub(super) async fn put<T>(
    request: impl Future<Output = Result<T, kube::Error>>,
) -> Result<Option<T>, Trouble> {
    within(async {
        match request.await {
            Ok(answer) => Ok(Some(answer)),
            Err(kube::Error::Api(status)) if status.code == 409 || status.code == 404 => Ok(None),
            Err(error) => Err(error),
        }
    })
    .await
}

/// All objects, page by page.
pub(super) async fn all<K>(api: &Api<K>) -> Result<Vec<K>, Trouble>
where
    K: Clone + DeserializeOwned + fmt::Debug,
{
    let mut params = ListParams::default().limit(PAGE);
    let mut found = Vec::new();
    loop {
        let page = within(api.list(&params)).await?;
        found.extend(page.items);
        match page.metadata.continue_.filter(|token| !token.is_empty()) {
            Some(token) => params = params.continue_token(&token),
            None => return Ok(found),
        }
    }
}

pub(super) fn posting() -> PostParams {
    PostParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PostParams::default() }
}

pub(super) fn patching() -> PatchParams {
    PatchParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PatchParams::default() }
}

pub(super) fn applying() -> PatchParams {
    PatchParams::apply(FIELD_MANAGER).force()
}

pub(super) fn deleting(uid: &str) -> DeleteParams {
    let preconditions = Preconditions { uid: Some(uid.to_owned()), resource_version: None };
    DeleteParams { preconditions: Some(preconditions), ..DeleteParams::default() }
}
