//! The tables in `tests/objects`.

use std::{fs, path::Path};

use serde::Deserialize;
use serde_json::Value;

/// What must be accepted and refused of one kind.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Table {
    base: Value,
    accept: Vec<Accept>,
    refuse: Vec<Refuse>,
    update: Vec<Update>,
    status: Vec<Status>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Accept {
    why: String,
    set: Value,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Refuse {
    why: String,
    set: Value,
    says: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Update {
    why: String,
    first: Option<Value>,
    set: Value,
    says: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Status {
    why: String,
    set: Value,
    says: Option<String>,
}

/// One thing to try.
pub(crate) struct Case {
    /// For messages: the kind and what is special.
    pub(crate) title: String,
    /// How to write it.
    pub(crate) attempt: Attempt,
    /// What to write.
    pub(crate) object: Value,
    /// What the refusal must say; accepted if there is nothing.
    pub(crate) refusal: Option<String>,
}

/// A way to write an object.
pub(crate) enum Attempt {
    /// Create it.
    Create,
    /// Create this first, then change it to the case's object.
    Change(Value),
    /// Create this first, then write the status of the case's object.
    Status(Value),
}

impl Table {
    /// All cases, the unchanged base first.
    pub(crate) fn cases(self) -> Vec<Case> {
        let kind = self.base["kind"].as_str().expect("the base has a kind").to_owned();
        let title = |why: &str| format!("{kind}: {why}");
        let base = || self.base.clone();
        let unchanged =
            Case { title: title("the base"), attempt: Attempt::Create, object: base(), refusal: None };
        let accept = self.accept.iter().map(|case| Case {
            title: title(&case.why),
            attempt: Attempt::Create,
            object: merged(base(), &case.set),
            refusal: None,
        });
        let refuse = self.refuse.iter().map(|case| Case {
            title: title(&case.why),
            attempt: Attempt::Create,
            object: merged(base(), &case.set),
            refusal: Some(case.says.clone()),
        });
        let update = self.update.iter().map(|case| {
            let before = case.first.iter().fold(base(), merged);
            Case {
                title: title(&format!("changed: {}", case.why)),
                object: merged(before.clone(), &case.set),
                attempt: Attempt::Change(before),
                refusal: case.says.clone(),
            }
        });
        let status = self.status.iter().map(|case| {
            let mut object = base();
            object["status"] = case.set.clone();
            Case {
                title: title(&format!("status: {}", case.why)),
                attempt: Attempt::Status(base()),
                object,
                refusal: case.says.clone(),
            }
        });
        std::iter::once(unchanged).chain(accept).chain(refuse).chain(update).chain(status).collect()
    }
}

/// The table of the kind with this plural name; panics if it cannot be read, as no test can do without it.
pub(crate) fn table(plural: &str) -> Table {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/objects/{plural}.yaml"));
    let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    serde_saphyr::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// A JSON merge patch (RFC 7386).
fn merged(target: Value, patch: &Value) -> Value {
    let Value::Object(patch) = patch else {
        return patch.clone();
    };
    let mut fields = match target {
        Value::Object(fields) => fields,
        _ => serde_json::Map::new(),
    };
    for (name, value) in patch {
        let old = fields.remove(name).unwrap_or_default();
        if !value.is_null() {
            fields.insert(name.clone(), merged(old, value));
        }
    }
    Value::Object(fields)
}
