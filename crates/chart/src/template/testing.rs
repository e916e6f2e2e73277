//! Running a template in a test.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::{Budget, Files, Templates, Value, add, execute, parse};
use crate::yaml;

/// What a template gives, or its error as `line: message`. The values are YAML.
pub(crate) fn render(text: &str, values: &str) -> Result<String, String> {
    let mut templates = Templates::new();
    let parsed = parse("t", text).map_err(|error| format!("{}: {}", error.line, error.message))?;
    add(&mut templates, parsed);
    let root = context(values);
    let fail = |fault: super::Fault| format!("{}: {}", fault.place.line, fault.message);
    execute(&templates, &templates["t"], &root, &Budget::default()).map_err(fail)
}

fn context(values: &str) -> Value {
    let files = [("conf/a.txt", "A\nB\n"), ("conf/b.json", "{}")];
    let files = files.map(|(path, text)| (path.to_owned(), Arc::from(text.as_bytes())));
    Value::map(BTreeMap::from([
        ("Values".to_owned(), Value::from_json(&yaml::read(values).expect("values are YAML"))),
        ("Files".to_owned(), Value::Files(Files(files.into()).into())),
        ("Versions".to_owned(), Value::ApiVersions(["v1".to_owned(), "apps/v1".to_owned()].into())),
    ]))
}

/// Values that most tables use.
pub(crate) const VALUES: &str = "
num: 2
big: 1000000
float: 1.5
text: words
yes1: true
no1: false
nothing: null
list: [a, b, 3]
map: {x: 1, deep: {z: end}}
emptyMap: {}
emptyList: []
";

/// Checks a table of templates and what they give with [`VALUES`].
pub(crate) fn check(table: &[(&str, &str)]) {
    for (template, expected) in table {
        assert_eq!(render(template, VALUES).as_deref(), Ok(*expected), "{template}");
    }
}

/// Checks a table of templates and the words that their errors must have.
pub(crate) fn check_errors(table: &[(&str, &str)]) {
    for (template, expected) in table {
        match render(template, VALUES) {
            Ok(text) => panic!("{template} gives {text:?} instead of an error"),
            Err(error) => {
                assert!(error.contains(expected), "{template}: {error:?} does not say {expected:?}");
            }
        }
    }
}
