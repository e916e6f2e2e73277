//! Choosing clusters and nodes by their labels, as Kubernetes' label selectors do.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::field::Problems;
use crate::quantity::Excerpt;
use crate::resources::ResourceName;

#[cfg(test)]
mod tests;

/// Labels of a cluster or a node.
pub type Labels = BTreeMap<String, String>;

/// Requirements of a selector and values of a requirement; a person writes a handful.
const MOST_REQUIREMENTS: usize = 32;
const MOST_VALUES: usize = 256;
const LONGEST_VALUE: usize = 63;

/// A selector as it is written in an object: a metav1.LabelSelector.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct SelectorSpec {
    /// Labels that must have exactly these values.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub match_labels: BTreeMap<String, String>,
    /// Further requirements.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub match_expressions: Vec<RequirementSpec>,
}

/// A requirement as it is written in an object.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct RequirementSpec {
    /// The key of the label.
    pub key: String,
    /// `In`, `NotIn`, `Exists` or `DoesNotExist`.
    pub operator: String,
    /// The values to compare with.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub values: Vec<String>,
}

/// Requirements on labels, all of which must hold; without any, everything is selected.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Selector(Vec<Requirement>);

/// One requirement: `tier=gold`, `zone in (a,b)`, `gpu`, `!spot`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Requirement {
    key: String,
    test: Test,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Test {
    In(BTreeSet<String>),
    NotIn(BTreeSet<String>),
    Exists,
    DoesNotExist,
}

impl Selector {
    /// Selects everything.
    pub const fn everything() -> Self {
        Self(Vec::new())
    }

    /// Whether these labels are selected.
    pub fn matches(&self, labels: &Labels) -> bool {
        self.first_unmet(labels).is_none()
    }

    /// The first requirement that these labels do not meet.
    pub fn first_unmet(&self, labels: &Labels) -> Option<&Requirement> {
        self.0.iter().find(|requirement| !requirement.is_met_by(labels))
    }

    /// How many requirements there are: the more, the more specific.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether everything is selected.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The requirements, all of which must hold.
    pub fn requirements(&self) -> impl ExactSizeIterator<Item = &Requirement> {
        self.0.iter()
    }

    pub(crate) fn read(spec: &SelectorSpec, path: &str, problems: &mut Problems) -> Self {
        let count = spec.match_labels.len() + spec.match_expressions.len();
        if !problems.at_most(path, count, MOST_REQUIREMENTS) {
            return Self::everything();
        }
        let labels = spec.match_labels.iter().filter_map(|(key, value)| {
            let at = format!("{path}.matchLabels[{}]", shown(key));
            let fine = check_key(key, &at, problems) & check_value(value, &at, problems);
            fine.then(|| Requirement { key: key.clone(), test: Test::In([value.clone()].into()) })
        });
        let mut requirements: Vec<Requirement> = labels.collect();
        requirements.extend(spec.match_expressions.iter().enumerate().filter_map(|(index, requirement)| {
            Requirement::read(requirement, &format!("{path}.matchExpressions[{index}]"), problems)
        }));
        Self(requirements)
    }
}

impl Requirement {
    /// The requirement that is met by exactly those that do not meet this one.
    #[must_use]
    pub fn negated(&self) -> Self {
        let test = match &self.test {
            Test::In(values) => Test::NotIn(values.clone()),
            Test::NotIn(values) => Test::In(values.clone()),
            Test::Exists => Test::DoesNotExist,
            Test::DoesNotExist => Test::Exists,
        };
        Self { key: self.key.clone(), test }
    }

    /// As it is written in an object.
    pub fn to_spec(&self) -> RequirementSpec {
        let (operator, values) = match &self.test {
            Test::In(values) => ("In", values.iter().cloned().collect()),
            Test::NotIn(values) => ("NotIn", values.iter().cloned().collect()),
            Test::Exists => ("Exists", Vec::new()),
            Test::DoesNotExist => ("DoesNotExist", Vec::new()),
        };
        RequirementSpec { key: self.key.clone(), operator: operator.to_owned(), values }
    }

    fn is_met_by(&self, labels: &Labels) -> bool {
        let value = labels.get(&self.key);
        match &self.test {
            Test::In(values) => value.is_some_and(|value| values.contains(value)),
            Test::NotIn(values) => value.is_none_or(|value| !values.contains(value)),
            Test::Exists => value.is_some(),
            Test::DoesNotExist => value.is_none(),
        }
    }

    fn read(spec: &RequirementSpec, path: &str, problems: &mut Problems) -> Option<Self> {
        let mut fine = check_key(&spec.key, &format!("{path}.key"), problems);
        let at = format!("{path}.values");
        fine &= problems.at_most(&at, spec.values.len(), MOST_VALUES);
        if fine {
            fine = spec.values.iter().all(|value| check_value(value, &at, problems));
        }
        let values = || spec.values.iter().cloned().collect();
        let test = match (spec.operator.as_str(), spec.values.is_empty()) {
            ("In", false) => Test::In(values()),
            ("NotIn", false) => Test::NotIn(values()),
            ("Exists", true) => Test::Exists,
            ("DoesNotExist", true) => Test::DoesNotExist,
            ("In" | "NotIn", true) => {
                problems.add(at, "the operators In and NotIn need at least one value");
                return None;
            }
            ("Exists" | "DoesNotExist", false) => {
                problems.add(at, "the operators Exists and DoesNotExist take no values");
                return None;
            }
            (other, _) => {
                let message =
                    format!("{} is not one of In, NotIn, Exists and DoesNotExist", Excerpt::of(other));
                problems.add(format!("{path}.operator"), message);
                return None;
            }
        };
        fine.then(|| Self { key: spec.key.clone(), test })
    }
}

/// A key of a map, short and harmless enough for a path.
pub(crate) fn shown(key: &str) -> String {
    key.chars().take(LONGEST_VALUE).flat_map(char::escape_default).collect()
}

/// Labels that are all legal; others are noted.
pub(crate) fn read_labels(labels: &Labels, path: &str, problems: &mut Problems) -> Labels {
    let legal = labels.iter().filter(|(key, value)| {
        let at = format!("{path}[{}]", shown(key));
        check_key(key, &at, problems) & check_value(value, &at, problems)
    });
    legal.map(|(key, value)| (key.clone(), value.clone())).collect()
}

/// Label keys have the syntax of resource names.
fn check_key(key: &str, path: &str, problems: &mut Problems) -> bool {
    let fine = key.parse::<ResourceName>().is_ok();
    if !fine {
        problems.add(path, format_args!("{} is not a label key, such as liqo.io/provider", Excerpt::of(key)));
    }
    fine
}

fn check_value(value: &str, path: &str, problems: &mut Problems) -> bool {
    let outer = |byte: Option<&u8>| byte.is_none_or(u8::is_ascii_alphanumeric);
    let bytes = value.as_bytes();
    let fine = bytes.len() <= LONGEST_VALUE
        && outer(bytes.first())
        && outer(bytes.last())
        && bytes.iter().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(byte));
    if !fine {
        problems.add(
            path,
            format_args!(
                "{} is not a label value: at most {LONGEST_VALUE} letters, digits, '-', '_' and '.', beginning and \
                 ending with a letter or digit",
                Excerpt::of(value)
            ),
        );
    }
    fine
}

impl fmt::Display for Requirement {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let key = &self.key;
        match &self.test {
            Test::In(values) if values.len() == 1 => write!(formatter, "{key}={}", Values(values)),
            Test::In(values) => write!(formatter, "{key} in ({})", Values(values)),
            Test::NotIn(values) => write!(formatter, "{key} not in ({})", Values(values)),
            Test::Exists => formatter.write_str(key),
            Test::DoesNotExist => write!(formatter, "!{key}"),
        }
    }
}

impl fmt::Display for Selector {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let requirements: Vec<String> = self.0.iter().map(ToString::to_string).collect();
        formatter.write_str(&requirements.join(", "))
    }
}

/// The first few values; a list of hundreds helps nobody in a sentence.
struct Values<'a>(&'a BTreeSet<String>);

impl fmt::Display for Values<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        const SHOWN: usize = 5;
        let shown: Vec<&str> = self.0.iter().take(SHOWN).map(String::as_str).collect();
        formatter.write_str(&shown.join(", "))?;
        if self.0.len() > SHOWN { write!(formatter, " and {} more", self.0.len() - SHOWN) } else { Ok(()) }
    }
}
