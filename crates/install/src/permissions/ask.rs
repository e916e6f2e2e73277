//! Asks the API server what the user may do.

use futures::{StreamExt, stream};
use k8s_openapi::api::authentication::v1::SelfSubjectReview;
use k8s_openapi::api::authorization::v1::{SelfSubjectAccessReview, SelfSubjectAccessReviewSpec};
use kube::api::PostParams;
use kube::{Api, Client};

use super::{Grant, Right, Subject};
use crate::changes::AT_ONCE;
use crate::trouble::{self, patiently};

/// What the user may not do.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Rights {
    /// Needed, and missing.
    pub(crate) missing: Vec<Right>,
    /// Needed to hand out rights to the manager, and missing.
    pub(crate) ungrantable: Vec<Right>,
    /// Useful, and missing.
    pub(crate) useful: Vec<Right>,
    /// Who asks, as the API server knows them.
    pub(crate) subject: Option<Subject>,
    /// Why it could not be asked.
    pub(crate) unasked: Option<String>,
}

/// Asks about all of them, a few at a time.
pub(crate) async fn ask(
    client: &Client,
    needed: Vec<Right>,
    useful: Vec<Right>,
    granted: &[Grant],
) -> Rights {
    match everything(client, needed, useful, granted).await {
        Ok(rights) => rights,
        Err(error) => Rights { unasked: Some(trouble::text(&error)), ..Rights::default() },
    }
}

async fn everything(
    client: &Client,
    needed: Vec<Right>,
    useful: Vec<Right>,
    granted: &[Grant],
) -> Result<Rights, kube::Error> {
    let all = Right::new("*", "*", "*", None);
    if allowed(client, &all).await? {
        return Ok(Rights::default());
    }
    let missing = denied(client, needed).await?;
    let mut ungrantable = Vec::new();
    for grant in granted {
        let escalate = denied(client, grant.escalate.clone()).await?;
        if !escalate.is_empty() && !denied(client, grant.own.clone()).await?.is_empty() {
            ungrantable.extend(escalate);
        }
    }
    let useful = denied(client, useful).await?;
    let someone = !(missing.is_empty() && ungrantable.is_empty());
    let subject = if someone { who(client).await } else { None };
    Ok(Rights { missing, ungrantable, useful, subject, unasked: None })
}

async fn denied(client: &Client, rights: Vec<Right>) -> Result<Vec<Right>, kube::Error> {
    let asked = stream::iter(rights.into_iter().map(async |right| {
        let allowed = allowed(client, &right).await?;
        Ok((!allowed).then_some(right))
    }));
    let answers: Vec<Result<Option<Right>, kube::Error>> = asked.buffered(AT_ONCE).collect().await;
    Ok(answers.into_iter().collect::<Result<Vec<_>, _>>()?.into_iter().flatten().collect())
}

async fn allowed(client: &Client, right: &Right) -> Result<bool, kube::Error> {
    let review = SelfSubjectAccessReview {
        spec: SelfSubjectAccessReviewSpec {
            resource_attributes: Some(right.attributes()),
            ..SelfSubjectAccessReviewSpec::default()
        },
        ..SelfSubjectAccessReview::default()
    };
    let api = Api::<SelfSubjectAccessReview>::all(client.clone());
    let answer = patiently(async || api.create(&PostParams::default(), &review).await).await?;
    Ok(answer.status.is_some_and(|status| status.allowed))
}

async fn who(client: &Client) -> Option<Subject> {
    let api = Api::<SelfSubjectReview>::all(client.clone());
    let review = api.create(&PostParams::default(), &SelfSubjectReview::default()).await.ok()?;
    Some(Subject::of(&review.status?.user_info?.username?))
}
