//! Who asks, and whether they may: as a kubelet finds out.

use std::collections::{BTreeMap, HashMap};
use std::convert::Infallible;
use std::hash::Hash;
use std::time::Duration;

use axum::extract::FromRequestParts;
use http::header::AUTHORIZATION;
use http::request::Parts;
use http::{Extensions, HeaderMap, HeaderValue, StatusCode};
use k8s_openapi::api::authentication::v1::{TokenReview, TokenReviewSpec};
use k8s_openapi::api::authorization::v1::{ResourceAttributes, SubjectAccessReview, SubjectAccessReviewSpec};
use kube::Api;
use kube::api::PostParams;
use liqo_kit::serve::Peer;
use parking_lot::Mutex;
use rustls::pki_types::CertificateDer;
use sha2::{Digest, Sha256};
use tokio::time::Instant;
use x509_parser::prelude::{FromDer, X509Certificate};

use super::Refused;

#[cfg(test)]
mod tests;

/// How long an answer of the API server is believed.
const BELIEVED: Duration = Duration::from_secs(10);
/// Answers kept at most.
const ANSWERS: usize = 1024;
/// How long the API server may take.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Somebody, as the API server knows them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct User {
    name: String,
    uid: Option<String>,
    groups: Vec<String>,
    extra: BTreeMap<String, Vec<String>>,
}

/// What somebody shows.
#[derive(Clone, Debug, Default)]
pub(super) struct Shown {
    /// A client certificate, verified.
    certificate: Option<CertificateDer<'static>>,
    /// The authorization header.
    authorization: Option<HeaderValue>,
}

impl Shown {
    pub(super) fn of<B>(request: &http::Request<B>) -> Self {
        Self::read(request.extensions(), request.headers())
    }

    fn read(extensions: &Extensions, headers: &HeaderMap) -> Self {
        let certificate = extensions.get::<Peer>().and_then(|peer| peer.certificate.clone());
        Self { certificate, authorization: headers.get(AUTHORIZATION).cloned() }
    }
}

impl<S: Send + Sync> FromRequestParts<S> for Shown {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        Ok(Self::read(&parts.extensions, &parts.headers))
    }
}

/// Finds out.
pub(super) struct Callers {
    client: kube::Client,
    tokens: Answers<[u8; 32], Option<User>>,
    rights: Answers<Question, bool>,
}

type Question = (User, String, String, String);

impl Callers {
    pub(super) fn new(client: kube::Client) -> Self {
        Self { client, tokens: Answers::default(), rights: Answers::default() }
    }

    /// Who shows this certificate, which was verified, or else this token.
    pub(super) async fn identify(&self, shown: &Shown) -> Result<User, Refused> {
        let nobody = || Refused::new(StatusCode::UNAUTHORIZED, "Unauthorized");
        if let Some(user) = shown.certificate.as_ref().and_then(subject) {
            return Ok(user);
        }
        let header = shown.authorization.as_ref().and_then(|value| value.to_str().ok());
        let token = header.and_then(bearer).ok_or_else(nobody)?;
        self.review(token).await?.ok_or_else(nobody)
    }

    async fn review(&self, token: &str) -> Result<Option<User>, Refused> {
        // The token itself is not kept.
        let key: [u8; 32] = Sha256::digest(token.as_bytes()).into();
        if let Some(user) = self.tokens.get(&key) {
            return Ok(user);
        }
        let review = TokenReview {
            spec: TokenReviewSpec { token: Some(token.to_owned()), audiences: None },
            ..TokenReview::default()
        };
        let reviews: Api<TokenReview> = Api::all(self.client.clone());
        let status =
            within(reviews.create(&PostParams::default(), &review)).await?.status.unwrap_or_default();
        let user = status.user.filter(|_| status.authenticated == Some(true)).and_then(|user| {
            Some(User {
                name: user.username?,
                uid: user.uid,
                groups: user.groups.unwrap_or_default(),
                extra: user.extra.unwrap_or_default(),
            })
        });
        self.tokens.put(key, user.clone());
        Ok(user)
    }

    /// Whether they may do this with one of these parts of a node; with no node named, with all nodes.
    pub(super) async fn allow(
        &self,
        user: &User,
        verb: &str,
        parts: &[&str],
        node: &str,
    ) -> Result<(), Refused> {
        for part in parts {
            if self.may(user, verb, part, node).await? {
                return Ok(());
            }
        }
        let part = parts.first().copied().unwrap_or_default();
        let why = format!("Forbidden (user={}, verb={verb}, resource=nodes, subresource={part})", user.name);
        Err(Refused::new(StatusCode::FORBIDDEN, why))
    }

    async fn may(&self, user: &User, verb: &str, part: &str, node: &str) -> Result<bool, Refused> {
        let question = (user.clone(), verb.to_owned(), part.to_owned(), node.to_owned());
        if let Some(answer) = self.rights.get(&question) {
            return Ok(answer);
        }
        let attributes = ResourceAttributes {
            verb: Some(verb.to_owned()),
            version: Some("v1".to_owned()),
            resource: Some("nodes".to_owned()),
            subresource: Some(part.to_owned()),
            name: (!node.is_empty()).then(|| node.to_owned()),
            ..ResourceAttributes::default()
        };
        let review = SubjectAccessReview {
            spec: SubjectAccessReviewSpec {
                user: Some(user.name.clone()),
                uid: user.uid.clone(),
                groups: Some(user.groups.clone()),
                extra: Some(user.extra.clone()),
                resource_attributes: Some(attributes),
                ..SubjectAccessReviewSpec::default()
            },
            ..SubjectAccessReview::default()
        };
        let reviews: Api<SubjectAccessReview> = Api::all(self.client.clone());
        let status = within(reviews.create(&PostParams::default(), &review)).await?.status;
        let answer = status.is_some_and(|status| status.allowed && status.denied != Some(true));
        self.rights.put(question, answer);
        Ok(answer)
    }
}

async fn within<T>(request: impl Future<Output = Result<T, kube::Error>>) -> Result<T, Refused> {
    let unknown = |why: String| Refused::new(StatusCode::INTERNAL_SERVER_ERROR, why);
    let answer = tokio::time::timeout(TIMEOUT, request).await;
    answer
        .map_err(|_| unknown("the API server does not say who may ask".to_owned()))?
        .map_err(|error| unknown(format!("the API server does not say who may ask: {error}")))
}

/// The token of an authorization header.
fn bearer(header: &str) -> Option<&str> {
    let (scheme, token) = header.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim()).filter(|token| !token.is_empty())
}

/// The user of a client certificate: its common name, and its organizations as groups.
fn subject(certificate: &CertificateDer<'_>) -> Option<User> {
    let (_, certificate) = X509Certificate::from_der(certificate).ok()?;
    let subject = certificate.subject();
    let name = subject.iter_common_name().next()?.as_str().ok()?.to_owned();
    let groups = subject.iter_organization().filter_map(|group| group.as_str().ok()).map(str::to_owned);
    // Who was authenticated is in this group, whatever else.
    let groups = groups.chain(["system:authenticated".to_owned()]).collect();
    (!name.is_empty()).then(|| User { name, groups, ..User::default() })
}

/// What was answered not long ago.
struct Answers<Q, A>(Mutex<HashMap<Q, (Instant, A)>>);

impl<Q, A> Default for Answers<Q, A> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<Q: Eq + Hash, A: Clone> Answers<Q, A> {
    fn get(&self, question: &Q) -> Option<A> {
        let known = self.0.lock();
        let (at, answer) = known.get(question)?;
        (at.elapsed() < BELIEVED).then(|| answer.clone())
    }

    fn put(&self, question: Q, answer: A) {
        let mut known = self.0.lock();
        if known.len() >= ANSWERS {
            known.retain(|_, (at, _)| at.elapsed() < BELIEVED);
        }
        // Whoever asks for ever new things is answered, but not remembered.
        if known.len() < ANSWERS {
            known.insert(question, (Instant::now(), answer));
        }
    }
}
