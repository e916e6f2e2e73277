//! Fields of maps, and methods of Helm's built-in objects.

use super::{Fault, Frame};
use crate::template::value::Value;

impl Frame<'_> {
    /// `receiver.a.b`. A receiver that is nothing at all has fields that are nothing; so Go and Helm have it, and the
    /// idiom `((.Values.a).b).c` relies on it. But `.Values.a.b` with nothing at `a` is an error.
    pub(super) fn fields(
        &self,
        receiver: &Value,
        origin: &str,
        fields: &[String],
        line: u32,
    ) -> Result<Value, Fault> {
        let mut value = receiver.clone();
        for (at, field) in fields.iter().enumerate() {
            if at == 0 && matches!(value, Value::Nil) {
                return Ok(Value::Nil);
            }
            let path = || format!("{origin}.{}", fields[..at].join("."));
            value = field_of(&value, field, &[]).map_err(|why| {
                let message = match why {
                    NoField::Nothing => format!("{} is not set, so it has no field {field:?}", path()),
                    NoField::NoMap(noun) => format!("{} is {noun}, so it has no field {field:?}", path()),
                    NoField::Failed(message) => message,
                };
                self.fault(line, message)
            })?;
        }
        Ok(value)
    }

    /// `receiver.a.b argument…`
    pub(super) fn method(
        &self,
        receiver: &Value,
        origin: &str,
        fields: &[String],
        arguments: &[Value],
        line: u32,
    ) -> Result<Value, Fault> {
        let no_function = || self.fault(line, format!("{origin}.{} is no function", fields.join(".")));
        let (name, path) = fields.split_last().ok_or_else(no_function)?;
        let receiver = self.fields(receiver, origin, path, line)?;
        match field_of(&receiver, name, arguments) {
            Ok(value) => Ok(value),
            Err(NoField::Failed(message)) => Err(self.fault(line, message)),
            Err(_) => Err(no_function()),
        }
    }
}

/// Why there is no such field.
enum NoField {
    Nothing,
    NoMap(&'static str),
    Failed(String),
}

fn field_of(receiver: &Value, name: &str, arguments: &[Value]) -> Result<Value, NoField> {
    let failed = |message: String| NoField::Failed(format!("{name}: {message}"));
    match (receiver, name, arguments) {
        (Value::Map(map), _, []) => Ok(map.0.borrow().get(name).cloned().unwrap_or(Value::Nil)),
        (Value::Files(files), "Get" | "GetBytes", [Value::Text(path)]) => {
            files.get(path).map(Value::text).map_err(failed)
        }
        (Value::Files(files), "Lines", [Value::Text(path)]) => {
            let text = files.get(path).map_err(failed)?;
            // Helm splits at every line break, so a last one is followed by an empty line, which it leaves out.
            let text = text.strip_suffix('\n').unwrap_or(text);
            let lines =
                if text.is_empty() { Vec::new() } else { text.split('\n').map(Value::text).collect() };
            Ok(Value::list(lines))
        }
        (Value::Files(files), "Glob", [Value::Text(pattern)]) => {
            files.glob(pattern).map(|chosen| Value::Files(chosen.into())).map_err(failed)
        }
        (Value::Files(files), "AsConfig", []) => files
            .as_config()
            .map(|data| Value::text(crate::yaml::write(&data).trim_end_matches('\n')))
            .map_err(failed),
        (Value::Files(files), "AsSecrets", []) => {
            Ok(Value::text(crate::yaml::write(&files.as_secrets()).trim_end_matches('\n')))
        }
        (Value::ApiVersions(versions), "Has", [Value::Text(version)]) => {
            Ok(Value::Bool(versions.iter().any(|known| known.as_str() == &**version)))
        }
        (Value::Files(_) | Value::ApiVersions(_), _, _) => {
            Err(failed("there is no such method with such arguments".into()))
        }
        (Value::Nil, _, []) => Err(NoField::Nothing),
        (other, _, _) => Err(NoField::NoMap(other.noun())),
    }
}
