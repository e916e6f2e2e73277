//! YAML, JSON, base64 and digests.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value as Json;
use sha2::{Digest as _, Sha256};

use super::{Answer, Args, Function, plain};
use crate::template::budget::TREE_COST;
use crate::template::value::Value;
use crate::yaml;

pub(super) static TABLE: &[Function] = &[
    plain("toYaml", 1, 1, |args| {
        let json = args.get(0).to_json(args.budget)?;
        args.give_text(yaml::write(&json).trim_end_matches('\n'))
    }),
    plain("fromYaml", 1, 1, |args| from_yaml(args).map(map_or_error)),
    plain("fromYamlArray", 1, 1, |args| from_yaml(args).map(list_or_error)),
    plain("toJson", 1, 1, |args| json(args, |json| Ok(escape_html(&json.to_string())))),
    plain("mustToJson", 1, 1, |args| json(args, |json| Ok(escape_html(&json.to_string())))),
    plain("toRawJson", 1, 1, |args| json(args, |json| Ok(json.to_string()))),
    plain("toPrettyJson", 1, 1, |args| {
        json(args, |json| Ok(escape_html(&serde_json::to_string_pretty(json)?)))
    }),
    plain("fromJson", 1, 1, |args| from_json(args).map(map_or_error)),
    plain("fromJsonArray", 1, 1, |args| from_json(args).map(list_or_error)),
    plain("b64enc", 1, 1, |args| args.give_text(STANDARD.encode(args.text(0)?))),
    plain("b64dec", 1, 1, b64dec),
    plain("sha256sum", 1, 1, |args| {
        let digest = Sha256::digest(args.text(0)?);
        args.give_text(digest.iter().map(|byte| format!("{byte:02x}")).collect::<String>())
    }),
];

fn json(args: &Args<'_>, write: fn(&Json) -> serde_json::Result<String>) -> Answer {
    let json = args.get(0).to_json(args.budget)?;
    args.give_text(write(&json).map_err(|error| error.to_string())?)
}

/// Go writes what HTML could take for a tag as an escape.
fn escape_html(json: &str) -> String {
    json.replace('<', "\\u003c")
        .replace('>', "\\u003e")
        .replace('&', "\\u0026")
        .replace('\u{2028}', "\\u2028")
        .replace('\u{2029}', "\\u2029")
}

/// The outer error is that of the call, the inner one that of the text.
fn from_yaml(args: &Args<'_>) -> Result<Result<Json, String>, String> {
    Ok(yaml::read(source(args)?).map_err(|error| error.to_string()))
}

fn from_json(args: &Args<'_>) -> Result<Result<Json, String>, String> {
    Ok(serde_json::from_str(source(args)?).map_err(|error| error.to_string()))
}

fn source<'a>(args: &Args<'a>) -> Result<&'a str, String> {
    let text = args.text(0)?;
    args.budget.make(text.len() * TREE_COST)?;
    Ok(text)
}

/// What is no map gives a map with the reason at the key `Error`; templates ask for that.
fn map_or_error(read: Result<Json, String>) -> Value {
    let message = match read {
        Ok(Json::Null) => return Value::map(BTreeMap::new()),
        Ok(json @ Json::Object(_)) => return Value::from_json(&json),
        Ok(_) => "this is not a map".to_owned(),
        Err(message) => message,
    };
    Value::map(BTreeMap::from([("Error".to_owned(), Value::text(message))]))
}

/// What is no list gives a list with the reason.
fn list_or_error(read: Result<Json, String>) -> Value {
    let message = match read {
        Ok(Json::Null) => return Value::list(Vec::new()),
        Ok(json @ Json::Array(_)) => return Value::from_json(&json),
        Ok(_) => "this is not a list".to_owned(),
        Err(message) => message,
    };
    Value::list(vec![Value::text(message)])
}

/// What is not base64 gives the reason, as in Sprig.
fn b64dec(args: &Args<'_>) -> Answer {
    let decoded = STANDARD.decode(args.text(0)?).map_err(|error| error.to_string());
    let text = decoded.and_then(|bytes| String::from_utf8(bytes).map_err(|error| error.to_string()));
    args.give_text(text.unwrap_or_else(|message| message))
}
