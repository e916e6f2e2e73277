//! What applying objects would change, asked of the API server itself.

mod compare;
mod look;
#[cfg(test)]
pub(crate) mod testing;

use serde::Serialize;
use serde_json::Value;

pub(crate) use compare::{differences, without_bookkeeping};
pub(crate) use look::{AT_ONCE, Look, is_immutable, removals};

use crate::kinds::Kind;
use crate::objects::{Id, Owner};

/// What would happen to an object.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Action {
    /// It is not there yet.
    Create,
    /// It is there and differs.
    Change,
    /// It is as it should be.
    Keep,
    /// It is no longer needed.
    Remove,
}

/// One object: what it should be, what it is, and what would happen.
#[derive(Debug, Clone)]
pub struct Planned {
    /// Which object.
    pub id: Id,
    /// What would happen.
    pub action: Action,
    /// What differs, as `path: before → after`.
    pub differences: Vec<String>,
    /// The object as it would be: the server's answer where it was asked, else as rendered. `None` if it goes.
    pub object: Option<Value>,
    /// Why the server could not be asked.
    pub unasked: Option<String>,
    /// The object as rendered.
    pub(crate) wanted: Option<Value>,
    pub(crate) kind: Kind,
    /// Whose the existing object is.
    pub(crate) owner: Option<Owner>,
    /// Being deleted at this moment.
    pub(crate) terminating: bool,
}

impl Planned {
    /// Whether anything happens to it.
    pub fn is_change(&self) -> bool {
        self.action != Action::Keep
    }
}
