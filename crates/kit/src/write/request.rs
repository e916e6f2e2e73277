//! A write as the API server wants it, and its answer as the queue needs it.

use std::fmt;
use std::time::Duration;

use http::StatusCode;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams, Preconditions};
use kube::core::{ApiResource, DynamicObject, Request, Resource};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::Reason;
use crate::key::Key;
use crate::watch::Chain;

/// The object a write is for.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Target {
    path: String,
    key: Key,
}

impl Target {
    /// An object of a kind known at compile time.
    pub fn of<K: Resource<DynamicType = ()>>(key: Key) -> Self {
        Self { path: K::url_path(&(), key.namespace()), key }
    }

    /// An object of a kind known at run time.
    pub fn dynamic(resource: &ApiResource, key: Key) -> Self {
        Self { path: DynamicObject::url_path(resource, key.namespace()), key }
    }

    /// Namespace and name.
    pub fn key(&self) -> &Key {
        &self.key
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.path, self.key.name())
    }
}

impl fmt::Debug for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The part of an object that a write is for. Writes to different parts do not replace one another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Part {
    /// The object itself.
    Object,
    /// Its status.
    Status,
    /// A subresource with this name, such as `resize`.
    Subresource(&'static str),
}

impl Part {
    /// The last part of the address, if it is not the object's own.
    const fn name(self) -> Option<&'static str> {
        match self {
            Self::Object => None,
            Self::Status => Some("status"),
            Self::Subresource(name) => Some(name),
        }
    }
}

/// One write to one object.
#[derive(Clone, Debug)]
pub struct Write {
    target: Target,
    part: Part,
    verb: Verb,
}

#[derive(Clone, Debug)]
enum Verb {
    Create { object: Value, or_exists: bool },
    Apply { object: Value, force: bool },
    Merge(Value),
    Strategic(Value),
    Replace(Value),
    Delete(DeleteParams),
}

impl Write {
    /// Creates the object. With a name that follows from what it is for, a repeated attempt is harmless.
    pub fn create(target: Target, object: &impl Serialize) -> Result<Self, serde_json::Error> {
        Ok(Self {
            target,
            part: Part::Object,
            verb: Verb::Create { object: serde_json::to_value(object)?, or_exists: false },
        })
    }

    /// An object of that name is as good, whatever it says; only for [`Write::create`]. For objects whose name
    /// follows from their content, such as events.
    #[must_use]
    pub fn or_exists(mut self) -> Self {
        if let Verb::Create { or_exists, .. } = &mut self.verb {
            *or_exists = true;
        }
        self
    }

    /// Server-side apply: owns exactly the fields given, takes them from others when they conflict.
    pub fn apply(target: Target, object: &impl Serialize) -> Result<Self, serde_json::Error> {
        let object = serde_json::to_value(object)?;
        Ok(Self { target, part: Part::Object, verb: Verb::Apply { object, force: true } })
    }

    /// Server-side apply to the status.
    pub fn apply_status(target: Target, object: &impl Serialize) -> Result<Self, serde_json::Error> {
        Ok(Self { part: Part::Status, ..Self::apply(target, object)? })
    }

    /// Merges into the status, if the object is still at the version the plan saw.
    pub fn merge_status(
        target: Target,
        resource_version: &str,
        status: &impl Serialize,
    ) -> Result<Self, serde_json::Error> {
        let patch = json!({
            "metadata": { "resourceVersion": resource_version },
            "status": serde_json::to_value(status)?,
        });
        Ok(Self { target, part: Part::Status, verb: Verb::Merge(patch) })
    }

    /// Merges into the status of the object with this uid, lists element by element as their kind prescribes: what others
    /// say beside us stays, whoever wrote last. Only for Kubernetes' own kinds.
    pub fn strategic_status(
        target: Target,
        uid: &str,
        status: &impl Serialize,
    ) -> Result<Self, serde_json::Error> {
        let patch = json!({ "metadata": { "uid": uid }, "status": serde_json::to_value(status)? });
        Ok(Self { target, part: Part::Status, verb: Verb::Strategic(patch) })
    }

    /// Merges into a part of the object with this uid, lists element by element as their kind prescribes: what the patch
    /// does not name stays. Only for Kubernetes' own kinds.
    pub fn strategic(
        target: Target,
        part: Part,
        uid: &str,
        patch: &impl Serialize,
    ) -> Result<Self, serde_json::Error> {
        let mut patch = serde_json::to_value(patch)?;
        patch["metadata"]["uid"] = json!(uid);
        Ok(Self { target, part, verb: Verb::Strategic(patch) })
    }

    /// Puts this in the place of the object, if it is still the one and at the version the plan saw.
    pub fn replace(
        target: Target,
        uid: &str,
        resource_version: &str,
        object: &impl Serialize,
    ) -> Result<Self, serde_json::Error> {
        let mut object = serde_json::to_value(object)?;
        object["metadata"]["uid"] = json!(uid);
        object["metadata"]["resourceVersion"] = json!(resource_version);
        Ok(Self { target, part: Part::Object, verb: Verb::Replace(object) })
    }

    /// Merges into the object, if it is still at the version the plan saw.
    pub fn merge(
        target: Target,
        resource_version: &str,
        patch: &impl Serialize,
    ) -> Result<Self, serde_json::Error> {
        let mut patch = serde_json::to_value(patch)?;
        patch["metadata"]["resourceVersion"] = json!(resource_version);
        Ok(Self { target, part: Part::Object, verb: Verb::Merge(patch) })
    }

    /// Deletes the object with this uid, never one that took its name since.
    pub fn delete(target: Target, uid: &str) -> Self {
        let params = DeleteParams {
            preconditions: Some(Preconditions { uid: Some(uid.to_owned()), resource_version: None }),
            ..DeleteParams::default()
        };
        Self { target, part: Part::Object, verb: Verb::Delete(params) }
    }

    /// The time a deleted object is given to end; only for [`Write::delete`].
    #[must_use]
    pub fn grace(mut self, seconds: u32) -> Self {
        if let Verb::Delete(params) = &mut self.verb {
            params.grace_period_seconds = Some(seconds);
        }
        self
    }

    /// The object it is for.
    pub fn target(&self) -> &Target {
        &self.target
    }

    /// The slot: writes to different parts of an object do not replace one another.
    pub(super) fn slot(&self) -> Slot {
        Slot { target: self.target.clone(), part: self.part }
    }

    pub(super) fn request(
        &self,
        manager: &str,
    ) -> Result<http::Request<Vec<u8>>, kube::core::request::Error> {
        let request = Request::new(self.target.path.as_str());
        let name = self.target.key.name();
        match &self.verb {
            Verb::Create { object, .. } => {
                let params = PostParams { field_manager: Some(manager.to_owned()), ..PostParams::default() };
                request.create(&params, object.to_string().into_bytes())
            }
            Verb::Apply { object, force } => {
                let params = PatchParams { force: *force, ..PatchParams::apply(manager) };
                self.patch(&request, &params, &Patch::Apply(object))
            }
            Verb::Merge(patch) => {
                let params =
                    PatchParams { field_manager: Some(manager.to_owned()), ..PatchParams::default() };
                self.patch(&request, &params, &Patch::Merge(patch))
            }
            Verb::Strategic(patch) => {
                let params =
                    PatchParams { field_manager: Some(manager.to_owned()), ..PatchParams::default() };
                self.patch(&request, &params, &Patch::Strategic(patch))
            }
            Verb::Replace(object) => {
                let params = PostParams { field_manager: Some(manager.to_owned()), ..PostParams::default() };
                request.replace(name, &params, object.to_string().into_bytes())
            }
            Verb::Delete(params) => request.delete(name, params),
        }
    }

    fn patch(
        &self,
        request: &Request,
        params: &PatchParams,
        patch: &Patch<&Value>,
    ) -> Result<http::Request<Vec<u8>>, kube::core::request::Error> {
        let name = self.target.key.name();
        match self.part.name() {
            Some(part) => request.patch_subresource(part, name, params, patch),
            None => request.patch(name, params, patch),
        }
    }

    /// Whether the server's refusal means that nothing is left to do.
    fn is_so_already(&self, code: u16) -> bool {
        match self.verb {
            Verb::Delete(_) => code == StatusCode::NOT_FOUND,
            Verb::Create { or_exists: true, .. } => code == StatusCode::CONFLICT,
            _ => false,
        }
    }

    /// Makes the write, within `timeout`.
    pub(super) async fn send(
        &self,
        client: &kube::Client,
        manager: &str,
        timeout: Duration,
    ) -> Result<Answer, Refusal> {
        let request = self.request(manager).map_err(|error| Refusal {
            reason: Reason::Refused,
            message: format!("the write to {} cannot be put into a request: {error}", self.target),
            retry_after: None,
        })?;
        match tokio::time::timeout(timeout, client.request::<Answer>(request)).await {
            Ok(Ok(answer)) => Ok(answer),
            Ok(Err(kube::Error::Api(status))) if self.is_so_already(status.code) => Ok(Answer::default()),
            Ok(Err(error)) => Err(Refusal::from(&error)),
            Err(_) => Err(Refusal {
                reason: Reason::Timeout,
                message: format!("no answer within {} s", timeout.as_secs_f32()),
                retry_after: None,
            }),
        }
    }
}

/// A part of an object.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Slot {
    pub(super) target: Target,
    pub(super) part: Part,
}

/// What of the server's answer is read.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Answer {
    #[serde(default)]
    pub(super) metadata: AnswerMeta,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct AnswerMeta {
    pub(super) resource_version: Option<String>,
}

/// A failed attempt.
#[derive(Debug)]
pub(super) struct Refusal {
    pub(super) reason: Reason,
    pub(super) message: String,
    pub(super) retry_after: Option<Duration>,
}

impl From<&kube::Error> for Refusal {
    fn from(error: &kube::Error) -> Self {
        let kube::Error::Api(status) = error else {
            let message = Chain(error).to_string();
            return Self { reason: Reason::Unreachable, message, retry_after: None };
        };
        let reason = match status.code {
            409 | 404 | 410 => Reason::Conflict,
            429 => Reason::Throttled,
            401 | 403 => Reason::Forbidden,
            408 | 504 => Reason::Timeout,
            500.. => Reason::ServerError,
            _ => Reason::Refused,
        };
        let seconds = status.details.as_ref().map_or(0, |details| details.retry_after_seconds);
        let retry_after = (seconds > 0).then(|| Duration::from_secs(seconds.into()));
        Self { reason, message: format!("{} ({})", status.message, status.code), retry_after }
    }
}
